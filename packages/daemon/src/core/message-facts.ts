// «Where is my message?» as facts: what the outbox, the inbox and the broker each know of it, side by side. Nothing is
// guessed: a stage is listed only where one of the three has it durably.
import type {
  MessageChainLink,
  MessageDelivery,
  MessageFacts,
  MessageStage,
  MessageStateName,
} from "@claudemesh/client/daemon";
import type { Destination } from "@claudemesh/protocol/messages/addresses";
import { type Fate, fateOf } from "@claudemesh/protocol/messages/fate";
import { notesOf, type WayNow } from "./message-notes.ts";
import type { Delivery, MessageState } from "./message-state.ts";
import type { OutboxRecord } from "./outbox-row.ts";

/** A message in this host's inbox, or what retention has left of it, less its body. */
export type InboxEntry = {
  readonly id: string;
  readonly clientMessageId: string;
  readonly brokerMessageId: string;
  readonly historyId: number;
  readonly receivedAt: number;
  readonly readAt: number | undefined;
  /** Undefined where retention has removed the message. */
  readonly envelope: InboxEntryEnvelope | undefined;
};

type InboxEntryEnvelope = {
  readonly senderPubkey: string;
  readonly senderName: string | undefined;
  readonly topic: string | undefined;
  readonly acceptedAt: number;
};

/** `not_asked`: it cannot know the message yet. `not_found`: it does not, or no longer, or not for this member. */
export type BrokerWord =
  | { readonly type: "asked"; readonly state: MessageState }
  | { readonly type: "not_asked" | "not_found" | "not_reachable" };

export type KnownMessage = {
  readonly askedId: string;
  readonly row: OutboxRecord | undefined;
  /** Oldest first; empty where nothing was sent from here. */
  readonly chain: readonly OutboxRecord[];
  readonly entry: InboxEntry | undefined;
  readonly broker: BrokerWord;
};

export type FactsContext = {
  readonly way: () => WayNow;
  readonly ownPubkey: string;
  readonly nameOf: (pubkey: string, remembered?: string) => string | undefined;
};

export function showMessageFacts(known: KnownMessage, context: FactsContext): MessageFacts {
  const { row, entry } = known;
  const state = known.broker.type === "asked" ? known.broker.state : undefined;
  const deliveries = knownDeliveries(known, context);
  const destination = destinationOf(known, context);
  const sender = row === undefined ? (entry?.envelope ?? state?.message)?.senderPubkey : context.ownPubkey;
  return {
    id: known.askedId,
    client_message_id: row?.client_message_id ?? entry?.clientMessageId ?? state?.message?.clientMessageId ?? null,
    outbox_id: row?.id ?? null,
    inbox_id: entry?.id ?? null,
    broker_message_id: row?.broker_message_id ?? entry?.brokerMessageId ?? state?.brokerMessageId ?? null,
    history_id: row?.history_id ?? entry?.historyId ?? state?.message?.historyId ?? null,
    to: row?.to_address ?? null,
    destination: destination ?? null,
    sender_pubkey: sender ?? null,
    sender_name: sender === undefined ? null : (context.nameOf(sender, entry?.envelope?.senderName) ?? null),
    state: stateOf(known, context),
    fate: row === undefined ? null : fateOfRecord(row),
    attempts: row?.attempts ?? null,
    next_attempt_at: row?.status === "pending" ? row.next_attempt_at : null,
    last_error: row?.last_error ?? null,
    broker: known.broker.type,
    stages: stagesOf(known, deliveries, context),
    counts: state?.counts ?? null,
    deliveries: deliveries?.map((delivery) => showDelivery(delivery, context)) ?? null,
    queue: state?.queue === undefined ? null : showQueue(state.queue),
    dismissed: row === undefined ? null : dismissalOf(row),
    notes: notesOf(row, destination, state?.counts, context.way()),
    chain: known.chain.map(showLink),
  };
}

function fateOfRecord(row: OutboxRecord): Fate {
  return fateOf({ ...row, fenced: row.fenced === 1 });
}

function destinationOf({ row, entry, broker }: KnownMessage, { ownPubkey }: FactsContext): Destination | undefined {
  if (row !== undefined) return { kind: row.destination_kind, ref: row.destination_ref };
  if (broker.type === "asked" && broker.state.message !== undefined) return broker.state.message.destination;
  if (entry?.envelope === undefined) return undefined;
  const { topic } = entry.envelope;
  return topic === undefined ? { kind: "dm", ref: ownPubkey } : { kind: "topic", ref: topic };
}

/** For its own member this host's inbox replaces the broker's record: it knows of a delivery before the broker has the ack. */
function knownDeliveries({ entry, broker }: KnownMessage, { ownPubkey }: FactsContext): Delivery[] | undefined {
  const own: Delivery[] =
    entry === undefined ? [] : [{ recipientPubkey: ownPubkey, state: "delivered", settledAt: entry.receivedAt }];
  const isSeen = broker.type === "asked" && broker.state.message !== undefined;
  if (!isSeen) return own.length === 0 ? undefined : own;
  const others = broker.state.deliveries.filter((each) => own.length === 0 || each.recipientPubkey !== ownPubkey);
  return [...own, ...others];
}

const openStates = { pending: "queued", inflight: "inflight", dead: "dead", aborted: "aborted" } as const;

/**
 * The stage that the message has reached for all its recipients, as far as that is known. For a message that another member
 * sent, the stage that it has reached on this host.
 */
function stateOf({ row, entry, broker }: KnownMessage, { ownPubkey }: FactsContext): MessageStateName {
  if (row !== undefined && row.status !== "done") return openStates[row.status];
  const here = entry?.readAt === undefined ? "delivered" : "read";
  if (row === undefined && entry !== undefined) return here;
  if (entry !== undefined && row?.destination_kind === "dm" && row.destination_ref === ownPubkey) return here;
  if (broker.type !== "asked") return "stored";
  const { unsettled, delivered, expired } = broker.state.counts;
  if (unsettled > 0 || delivered + expired === 0) return "stored";
  return delivered > 0 ? "delivered" : "expired";
}

function stagesOf(
  known: KnownMessage,
  deliveries: readonly Delivery[] | undefined,
  context: FactsContext,
): MessageStage[] {
  const { row, entry } = known;
  const stages: MessageStage[] = [];
  if (row !== undefined) stages.push({ stage: "queued", at: row.enqueued_at, outbox_id: row.id });
  if (row?.status === "inflight") stages.push({ stage: "inflight", at: null });
  const stored = storedStage(known);
  if (stored !== undefined) stages.push(stored);
  for (const { recipientPubkey, state, settledAt } of deliveries ?? []) {
    if (state === "unsettled") continue;
    stages.push({ stage: state, at: settledAt ?? null, ...showRecipient(recipientPubkey, context) });
  }
  stages.push(...queueStages(known));
  if (entry?.readAt !== undefined) {
    stages.push({ stage: "read", at: entry.readAt, ...showRecipient(context.ownPubkey, context) });
  }
  if (row?.status === "dead") {
    stages.push({ stage: "dead", at: null, fate: fateOfRecord(row), last_error: row.last_error });
  }
  if (row?.status === "aborted") {
    const { aborted_by: by, superseded_by } = row;
    stages.push({ stage: "aborted", at: row.aborted_at, by, superseded_by, fate: fateOfRecord(row) });
  }
  return stages;
}

/** A queue's message is delivered when one consumer has acked it. Which one that was is not shown. */
function queueStages({ broker }: KnownMessage): MessageStage[] {
  const queue = broker.type === "asked" ? broker.state.queue : undefined;
  if (queue?.state === "acked") return [{ stage: "delivered", at: queue.settledAt ?? null }];
  return queue?.state === "expired" ? [{ stage: "expired", at: queue.settledAt ?? null }] : [];
}

/** When the broker accepted it, by its own clock where that is known, else when its answer was recorded here. */
function storedStage({ row, entry, broker }: KnownMessage): MessageStage | undefined {
  const state = broker.type === "asked" ? broker.state : undefined;
  const acceptedAt = state?.acceptedAt ?? entry?.envelope?.acceptedAt ?? row?.delivered_at ?? null;
  const brokerMessageId = state?.brokerMessageId ?? entry?.brokerMessageId ?? row?.broker_message_id ?? undefined;
  if (brokerMessageId === undefined) return undefined;
  const historyId = state?.message?.historyId ?? entry?.historyId ?? row?.history_id ?? null;
  return { stage: "stored", at: acceptedAt, broker_message_id: brokerMessageId, history_id: historyId };
}

function showRecipient(pubkey: string, { nameOf }: FactsContext) {
  return { recipient_pubkey: pubkey, recipient_name: nameOf(pubkey) ?? null };
}

function showDelivery({ recipientPubkey, state, settledAt }: Delivery, context: FactsContext): MessageDelivery {
  return { ...showRecipient(recipientPubkey, context), state, settled_at: settledAt ?? null };
}

function showQueue({ state, deliveries, settledAt }: NonNullable<MessageState["queue"]>): MessageFacts["queue"] {
  return { state, deliveries, settled_at: settledAt ?? null };
}

function dismissalOf({ status, dismissed_at: at, dismissed_by: by, dismissed_why: why }: OutboxRecord) {
  return status === "dead" && at !== null ? { at, by: by ?? "", why: why ?? "" } : null;
}

function showLink(row: OutboxRecord): MessageChainLink {
  return {
    outbox_id: row.id,
    client_message_id: row.client_message_id,
    status: row.status,
    fate: fateOfRecord(row),
    enqueued_at: row.enqueued_at,
    broker_message_id: row.broker_message_id,
    superseded_by: row.superseded_by,
    accept_duplicate: row.accept_duplicate === 1,
  };
}
