// One message's way as people read it: what it is, a line for everything that happened to it, and what to do next.

import type { Cell } from "./cell.ts";
import { toned, toneOf } from "./colours.ts";
import { shortenKeys, showMember } from "./members.ts";
import { formatTable } from "./table.ts";
import { timeCell } from "./times.ts";

type Stage = { readonly stage: string; readonly at: number | null; readonly [fact: string]: unknown };
type Delivery = { readonly recipient_pubkey: string; readonly recipient_name: string | null; readonly state: string };
type ChainLink = { readonly client_message_id: string; readonly status: string; readonly accept_duplicate: boolean };

/** What GET /v1/messages/:id answers, as far as it is shown. */
export type MessageStatus = {
  readonly id: string;
  readonly client_message_id: string | null;
  readonly to: string | null;
  readonly destination: { readonly kind: string; readonly ref: string } | null;
  readonly sender_pubkey: string | null;
  readonly sender_name: string | null;
  readonly state: string;
  readonly fate: string | null;
  readonly attempts: number | null;
  readonly next_attempt_at: number | null;
  readonly last_error: string | null;
  readonly broker: string;
  readonly stages: readonly Stage[];
  readonly deliveries: readonly Delivery[] | null;
  readonly queue: { readonly state: string; readonly deliveries: number } | null;
  /** An older daemon has none. */
  readonly notes?: readonly { readonly text: string }[];
  readonly chain: readonly ChainLink[];
};

/** `hint` makes what is to be typed next fit the home. */
export function describeMessage(
  facts: MessageStatus,
  columns: number | undefined,
  hint: (text: string) => string = (text) => text,
): string {
  const rows = [...facts.stages.map(describeStage), ...waitingRows(facts)];
  return [
    `${facts.client_message_id ?? facts.id}  ${toned(facts.state, toneOf(facts.state))}${describeFate(facts)}`,
    ...describeWay(facts),
    formatTable(["WHEN", "WHAT", "DETAILS"], rows, columns),
    ...describeChain(facts),
    ...remarks(facts).map(hint),
  ].join("\n");
}

function describeFate({ state, fate }: MessageStatus): string {
  const isTelling = state === "dead" || state === "aborted" || fate === "unknown";
  return isTelling && fate !== null ? ` (fate: ${fate})` : "";
}

function describeWay({ to, destination, sender_name, sender_pubkey }: MessageStatus): string[] {
  const from = sender_pubkey === null ? (sender_name ?? undefined) : showMember(sender_name, sender_pubkey);
  const where = to === null ? describeDestination(destination) : shortenKeys(to);
  const parts = [from === undefined ? [] : [`from ${from}`], where === undefined ? [] : [`to ${where}`]].flat();
  return parts.length === 0 ? [] : [parts.join(" ")];
}

function describeDestination(destination: MessageStatus["destination"]): string | undefined {
  if (destination === null) return undefined;
  if (destination.kind === "topic") return `#${destination.ref}`;
  return destination.kind === "queue" ? `queue:${destination.ref}` : showMember(null, destination.ref);
}

function describeStage(stage: Stage): Cell[] {
  return [timeCell(stage.at), stageCell(stage.stage), detailsOf(stage)];
}

/** What a message has left behind it is no state to think about, unless it ended there. */
function stageCell(stage: string): Cell {
  const tone = toneOf(stage);
  return tone === "waiting" ? stage : { text: stage, tone };
}

function detailsOf(stage: Stage): string {
  switch (stage.stage) {
    case "queued":
      return `outbox ${text(stage.outbox_id)}`;
    case "stored":
      return `broker ${text(stage.broker_message_id)}, history ${text(stage.history_id)}`;
    case "delivered":
    case "expired":
    case "read":
      return recipientOf(stage);
    case "dead":
      return text(stage.last_error);
    case "aborted":
      return `by ${text(stage.by)}, superseded by ${text(stage.superseded_by)}`;
    default:
      return "";
  }
}

/** Who has not got it yet is as much a fact as who has. */
function waitingRows(facts: MessageStatus): Cell[][] {
  const { deliveries, queue, state, attempts, next_attempt_at, last_error } = facts;
  const waiting = (deliveries ?? []).filter((delivery) => delivery.state === "unsettled");
  const rows: Cell[][] = waiting.map((delivery) => ["-", "waiting", `for ${recipientOf(delivery)}`]);
  if (queue !== null && state === "stored") {
    rows.push(["-", queue.state, `in its queue, handed out ${queue.deliveries} times`]);
  }
  if (state !== "queued" || next_attempt_at === null || attempts === null || attempts === 0) return rows;
  const why = last_error === null ? "" : `: ${last_error}`;
  return [...rows, [timeCell(next_attempt_at), "next try", `after ${attempts}${why}`]];
}

function describeChain({ chain }: MessageStatus): string[] {
  if (chain.length < 2) return [];
  const links = chain.map(({ client_message_id, status, accept_duplicate }) => {
    return `${client_message_id} (${status}${accept_duplicate ? ", duplicate accepted" : ""})`;
  });
  return [`Chain: ${links.join(" → ")}`];
}

function remarks({ broker, notes = [] }: MessageStatus): string[] {
  return [
    ...(broker === "not_reachable" ? ["The broker could not be asked: this is what is known here."] : []),
    ...(broker === "not_found" ? ["The broker no longer keeps it: this is what is known here."] : []),
    ...notes.map(({ text }) => text),
  ];
}

function recipientOf(facts: { readonly [fact: string]: unknown }): string {
  const { recipient_name, recipient_pubkey } = facts;
  return showMember(typeof recipient_name === "string" ? recipient_name : null, text(recipient_pubkey));
}

function text(value: unknown): string {
  return value === null || value === undefined ? "-" : String(value);
}
