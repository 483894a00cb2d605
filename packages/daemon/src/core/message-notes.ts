// What the sender of a message should know or do now, as sentences with the commands that help. Advice fits the reason: a
// requeue that would meet the same refusal is not called a way out.
import type { MessageNote, RateLimited } from "@claudemesh/client/daemon";
import type { Destination } from "@claudemesh/protocol/messages/addresses";
import { fateOf } from "@claudemesh/protocol/messages/fate";
import type { MessageState } from "./message-state.ts";
import type { OutboxRecord } from "./outbox-row.ts";

/** The way to the broker, as it is now. */
export type WayNow = {
  readonly membershipEndedAt?: number | undefined;
  readonly brokerAway?: boolean;
  readonly rateLimited?: RateLimited | undefined;
};

/** `counts`: of its deliveries, where the broker could be asked. */
export function notesOf(
  row: OutboxRecord | undefined,
  destination: Destination | undefined,
  counts: MessageState["counts"] | undefined,
  way: WayNow,
): MessageNote[] {
  const notes: MessageNote[] = [];
  const isWaiting = row?.status === "pending" || row?.status === "inflight";
  if (isWaiting && way.membershipEndedAt !== undefined) notes.push(membershipNote(row, way.membershipEndedAt));
  if (isWaiting && way.brokerAway === true) notes.push(awayNote);
  if (isWaiting && way.rateLimited !== undefined) notes.push(rateLimitNote(way.rateLimited));
  if (row?.status === "dead") notes.push(deadNote(row));
  const isToTopic = destination?.kind === "topic";
  if (isToTopic && counts !== undefined && counts.unsettled + counts.delivered + counts.expired === 0) {
    const text = `No member but its sender was subscribed to #${destination.ref} when it was stored, so it reaches no one.`;
    notes.push({ code: "no_recipients", text });
  }
  return notes;
}

const awayNote: MessageNote = {
  code: "broker_away",
  text: "The broker is away: the message waits on this host until it is back; `claudemesh daemon status` says why.",
};

function membershipNote(row: OutboxRecord, endedAt: number): MessageNote {
  const text = `This member was removed from the mesh on ${timeText(endedAt)}: the message waits here until it is too old, or is let go with ${dismiss(row)}.`;
  return { code: "membership_ended", text };
}

function rateLimitNote({ since, until }: RateLimited): MessageNote {
  const text = `The mesh's budget is spent: what is queued waits since ${timeText(since)} until ${timeText(until)}.`;
  return { code: "rate_limited", text };
}

function deadNote(row: OutboxRecord): MessageNote {
  if (row.dismissed_at !== null) {
    return { code: "dismissed", text: `It was dismissed: ${row.dismissed_why ?? ""}` };
  }
  const advice = adviceOf(row);
  return { code: "dead", text: `It is not tried any more. ${advice} Or let it go with ${dismiss(row)}.` };
}

const requeue = ({ client_message_id: id }: OutboxRecord, rest = "") =>
  `\`claudemesh daemon outbox requeue ${id}${rest}\``;
const dismiss = ({ client_message_id: id }: OutboxRecord) => `\`claudemesh daemon outbox dismiss ${id} --why <text>\``;

/** By the stable code with which `last_error` begins. */
function adviceOf(row: OutboxRecord): string {
  const [reason = ""] = (row.last_error ?? "").split(":", 1);
  switch (reason) {
    case "destination_not_found":
      return missingAdvice(row);
    case "not_subscribed":
      return `Subscribe with \`claudemesh topic subscribe ${row.destination_ref}\`, then requeue it with ${requeue(row)}.`;
    case "payload_too_large":
      return `Requeue it with less in it: ${requeue(row, " --patch-payload <path>")}.`;
    case "fenced":
    case "idempotency_key_reused":
    case "taken":
      return `Its id can never be accepted; if it is still wanted, give it a new one with ${requeue(row)}.`;
    case "expired":
      return expiredAdvice(row);
    default:
      return `Once the cause is mended, requeue it with ${requeue(row)} (--patch-payload <path> changes it).`;
  }
}

function missingAdvice(row: OutboxRecord): string {
  const { destination_kind: kind, destination_ref: ref } = row;
  if (kind === "dm") return "Its recipient is no member of this mesh, so it can only be sent to another member.";
  return `Create the ${kind} with \`claudemesh ${kind} create ${ref}\`, then requeue it with ${requeue(row)}.`;
}

function expiredAdvice(row: OutboxRecord): string {
  const isUnknown = fateOf({ ...row, fenced: row.fenced === 1 }) === "unknown";
  const whether = isUnknown
    ? "It may have arrived, and a requeue asks the broker first"
    : "If it is still wanted, requeue it";
  return `${whether}: ${requeue(row)}.`;
}

function timeText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}
