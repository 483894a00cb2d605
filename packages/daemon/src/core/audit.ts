// Do the records of outbox, broker, deliveries and inbox agree? Each record that was examined is counted in one class of its
// layer, and each disagreement is listed. Reading the records, and examining one again that may just have changed, is the
// work of services/audit.ts.
import type { AuditImbalance, AuditLayer, AuditReport } from "@claudemesh/client/daemon";
import { fateOf } from "@claudemesh/protocol/messages/fate";
import type { Delivery, MessageState } from "./message-state.ts";
import type { OutboxRecord } from "./outbox-row.ts";

const auditLayers = ["outbox", "broker", "deliveries", "inbox"] as const satisfies readonly AuditLayer[];

type Classes = Readonly<Record<string, number>>;

/** What examining some records gives: `total` is how many there are, counted apart from their classes. */
export type Verdict = {
  readonly counted: readonly { readonly layer: AuditLayer; readonly total: number; readonly classes: Classes }[];
  readonly imbalances: readonly AuditImbalance[];
};

export type OutboxSnapshot = {
  readonly rows: number;
  readonly tombstones: number;
  readonly classes: Classes;
  /** Requeued rows whose successor is missing. */
  readonly withoutSuccessor: readonly string[];
  /** Client ids that have both a row and a tombstone. */
  readonly heldTwice: readonly string[];
  /** Rows and tombstones that another program removed; the daemon removes none. */
  readonly removed: readonly RemovedRow[];
};

/** `status` as it was, `pruned` for a tombstone. */
type RemovedRow = { readonly clientMessageId: string; readonly status: string };

/** What a tombstone says of its message. */
export type PrunedRow = {
  readonly id: string;
  readonly clientMessageId: string;
  readonly wireFingerprint: Uint8Array;
  readonly brokerMessageId: string;
  readonly historyId: number;
};

export type FateWord =
  | {
      readonly fate: "committed";
      readonly brokerMessageId: string;
      readonly historyId: number;
      /** False: the broker says that retention has removed the message. */
      readonly historyAvailable: boolean;
    }
  | { readonly fate: "not_committed" };

/**
 * What the broker says of one message. `all` holds every page of its deliveries. `not_found`: the broker has no such
 * message, or none that this member may see. `not_asked`: there is no message to ask about.
 */
export type StateWord = FoundState | { readonly type: "not_found" } | { readonly type: "not_asked" };

export type FoundState = { readonly type: "found"; readonly state: MessageState; readonly all: readonly Delivery[] };

export type InboxAuditRow = {
  readonly id: string;
  readonly clientMessageId: string;
  readonly brokerMessageId: string;
  readonly historyId: number;
  readonly restored: boolean;
};

const nothing: Verdict = { counted: [], imbalances: [] };

const inClass = (layer: AuditLayer, name: string): Verdict => ({
  counted: [{ layer, total: 1, classes: { [name]: 1 } }],
  imbalances: [],
});

const misfit = (layer: AuditLayer, name: string, id: string, what: string): Verdict => ({
  ...inClass(layer, name),
  imbalances: [{ layer, id, what }],
});

function join(...verdicts: readonly Verdict[]): Verdict {
  return {
    counted: verdicts.flatMap(({ counted }) => counted),
    imbalances: verdicts.flatMap(({ imbalances }) => imbalances),
  };
}

export function judgeOutbox(snapshot: OutboxSnapshot): Verdict {
  const layer = "outbox";
  const { rows, tombstones, classes, withoutSuccessor, heldTwice, removed } = snapshot;
  const total = rows + tombstones;
  const sum = sumOf(classes);
  return {
    counted: [{ layer, total, classes }],
    imbalances: [
      ...(sum === total
        ? []
        : ([{ layer, id: "*", what: `${total} rows and tombstones, and ${sum} of a known class` }] as const)),
      ...withoutSuccessor.map(
        (id) => ({ layer, id, what: "requeued, and the row that it became is not here" }) as const,
      ),
      ...heldTwice.map((id) => ({ layer, id, what: "both a row and a tombstone" }) as const),
      ...removed.map(({ clientMessageId: id, status }) => {
        const what = `its ${status === "pruned" ? "tombstone" : `${status} row`} was removed by another program`;
        return { layer, id, what } as const;
      }),
    ],
  };
}

/** True where the broker has something to say about the row. */
export function isAuditedAtBroker(row: OutboxRecord): boolean {
  return row.status !== "pending" && row.status !== "inflight";
}

/** `isTooOld`: the broker may have forgotten the id by now, so that its silence proves nothing. */
export function judgeRow(row: OutboxRecord, fate: FateWord, state: StateWord, isTooOld: boolean): Verdict {
  if (!isAuditedAtBroker(row)) return nothing;
  return row.status === "done" ? judgeStored(row, fate, state, isTooOld) : judgeUnstored(row, fate);
}

function judgeStored(row: OutboxRecord, fate: FateWord, state: StateWord, isTooOld: boolean): Verdict {
  const id = row.client_message_id;
  if (row.broker_message_id === null || row.history_id === null) {
    const what = "stored, and the row does not say which message it became";
    return { counted: [], imbalances: [{ layer: "outbox", id, what }] };
  }
  if (fate.fate !== "committed") {
    if (isTooOld) return inClass("broker", "past_dedupe_window");
    return misfit("broker", "missing", id, withoutDedupe);
  }
  if (fate.brokerMessageId !== row.broker_message_id || fate.historyId !== row.history_id) {
    const brokerSays = `${fate.brokerMessageId} with history id ${fate.historyId}`;
    return misfit("broker", "different", id, `the broker's dedupe record says message ${brokerSays}`);
  }
  if (state.type !== "found") {
    if (!fate.historyAvailable) return inClass("broker", "removed_by_retention");
    return misfit("broker", "missing", id, "the broker has its dedupe record, and no message or no history row");
  }
  const { message } = state.state;
  if (message?.historyId !== row.history_id || message.clientMessageId !== id) {
    return misfit("broker", "different", id, "the broker's history row is that of another message");
  }
  return join(inClass("broker", "committed"), judgeDeliveries(row, state));
}

const withoutDedupe = "stored by the outbox, and the broker has no dedupe record of it";

/** Its message may be gone by retention; its id may not, as long as the broker remembers ids. */
export function judgeTombstone(row: PrunedRow, fate: FateWord): Verdict {
  const id = row.clientMessageId;
  if (fate.fate !== "committed") return misfit("broker", "missing", id, withoutDedupe);
  if (fate.brokerMessageId !== row.brokerMessageId || fate.historyId !== row.historyId) {
    const brokerSays = `${fate.brokerMessageId} with history id ${fate.historyId}`;
    return misfit("broker", "different", id, `the broker's dedupe record says message ${brokerSays}`);
  }
  return inClass("broker", "tombstones");
}

/** A row that was refused or never sent must not be at the broker. A row of unknown fate may be there or not. */
function judgeUnstored(row: OutboxRecord, fate: FateWord): Verdict {
  if (fate.fate !== "committed") return nothing;
  if (fateOf({ ...row, fenced: row.fenced === 1 }) === "unknown") {
    return inClass("broker", row.accept_duplicate === 1 ? "accepted_duplicates" : "fate_unknown_here");
  }
  const what = `${row.status} in the outbox as never stored, and the broker has it as ${fate.brokerMessageId}`;
  return misfit("broker", "not_expected", row.client_message_id, what);
}

function judgeDeliveries(row: OutboxRecord, { state, all }: FoundState): Verdict {
  const layer = "deliveries";
  const id = row.client_message_id;
  const { unsettled, delivered: settled, expired } = state.counts;
  const classes = { settled, unsettled, expired };
  const isQueued = row.destination_kind === "queue";
  const total = isQueued ? 1 : all.length;
  const counted = [{ layer, total, classes }] as const;
  if (isQueued && state.queue === undefined) {
    return { counted, imbalances: [{ layer, id, what: "sent to a queue, and has no place in it" }] };
  }
  if (total !== sumOf(classes)) {
    return {
      counted,
      imbalances: [{ layer, id, what: `${total} deliveries, and ${sumOf(classes)} of a known class` }],
    };
  }
  const isFor = ({ recipientPubkey }: Delivery) => recipientPubkey === row.destination_ref;
  if (row.destination_kind === "dm" && !(all.length === 1 && all.every(isFor))) {
    return {
      counted,
      imbalances: [{ layer, id, what: "a direct message without exactly one delivery, its recipient's" }],
    };
  }
  return { counted, imbalances: [] };
}

/** A send of this member that no outbox row stands for. */
export const judgeDirectSend = (): Verdict => inClass("broker", "direct");

/** A send of this member whose row another program removed from the outbox. The outbox part of the report names it. */
export const judgeRemovedSend = (): Verdict => inClass("broker", "row_removed");

/** `own`: the broker's delivery of the message to this member, where there is one. */
export function judgeInboxRow(row: InboxAuditRow, state: StateWord, own: Delivery | undefined): Verdict {
  // The message may be gone by retention; whether it was lost instead, only its sender's audit can tell.
  if (state.type !== "found") return inClass("inbox", "gone_from_broker");
  const { message } = state.state;
  const isSame = message?.clientMessageId === row.clientMessageId && message.historyId === row.historyId;
  if (message !== undefined && !isSame) {
    return misfit("inbox", "different", row.clientMessageId, "the broker has another message under its broker id");
  }
  if (own !== undefined) return inClass("inbox", own.state === "delivered" ? "settled" : own.state);
  if (row.restored) return inClass("inbox", "restored");
  return misfit("inbox", "without_delivery", row.clientMessageId, "in the inbox, and the broker has no delivery of it");
}

/** A message for this member that its inbox does not know, not even as removed. */
export function judgeAbsent(clientMessageId: string, own: Delivery | undefined): Verdict {
  if (own === undefined || own.state !== "delivered") return nothing;
  const what = "the broker has it as delivered here, and the inbox has no row of it";
  return misfit("inbox", "missing", clientMessageId, what);
}

export function judgeInboxTombstones(count: number): Verdict {
  return { counted: [{ layer: "inbox", total: count, classes: { removed_by_retention: count } }], imbalances: [] };
}

function sumOf(classes: Classes): number {
  return Object.values(classes).reduce((sum, count) => sum + count, 0);
}

/** At most so many imbalances of each layer are listed; their number is always complete. */
const namedMax = 100;

type LayerSum = { total: number; classes: Record<string, number>; imbalances: number; named: AuditImbalance[] };

/** Adds verdicts up. */
export class AuditLedger {
  readonly #layers: Readonly<Record<AuditLayer, LayerSum>>;

  constructor() {
    const empty = (): LayerSum => ({ total: 0, classes: {}, imbalances: 0, named: [] });
    this.#layers = { outbox: empty(), broker: empty(), deliveries: empty(), inbox: empty() };
  }

  add({ counted, imbalances }: Verdict): void {
    for (const { layer, total, classes } of counted) {
      const sum = this.#layers[layer];
      sum.total += total;
      for (const [name, count] of Object.entries(classes)) sum.classes[name] = (sum.classes[name] ?? 0) + count;
    }
    for (const imbalance of imbalances) {
      const sum = this.#layers[imbalance.layer];
      sum.imbalances++;
      if (sum.named.length < namedMax) sum.named.push(imbalance);
    }
  }

  report(complete: boolean): AuditReport {
    const layers = auditLayers.map((layer) => {
      const { total, classes, imbalances } = this.#layers[layer];
      return { layer, total, classes, imbalances, balanced: imbalances === 0 && total === sumOf(classes) };
    });
    const imbalances = auditLayers.flatMap((layer) => this.#layers[layer].named);
    return { layers, imbalances, balanced: layers.every(({ balanced }) => balanced), complete };
  }
}
