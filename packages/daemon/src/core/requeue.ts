// Giving a stuck row a new id: when that is allowed, as one pure decision, and what is ordered from the store. The one
// rule is that no two rows of a chain may both reach the broker, unless the operator accepts that.

import type { EnvelopeVersion } from "@claudemesh/protocol/messages/envelope";
import { fateOf } from "@claudemesh/protocol/messages/fate";
import { canTransition } from "@claudemesh/protocol/messages/outbox-row";
import type { SendContent } from "@claudemesh/protocol/messages/send-request";
import type { FenceTarget, NewOutboxRow } from "./outbox-row.ts";

/** The row that is to be requeued, less what only a patch needs. */
export type RequeueTarget = FenceTarget & {
  readonly envelopeVersion: EnvelopeVersion;
  readonly payloadBytes: number;
  readonly brokerMessageId: string | undefined;
  readonly historyId: number | undefined;
  readonly successor: Successor | undefined;
};

export type Successor = Pick<FenceTarget, "id" | "clientMessageId" | "status">;

/** What a row says and to whom. `body` is as it is stored: sealed where it is a direct message. */
export type StoredContent = SendContent & Pick<NewOutboxRow, "to" | "destination" | "envelopeVersion">;

/** What a patch replaces in the new row; everything else is kept to the byte. */
export type PatchedColumns = Pick<
  NewOutboxRow,
  "requestFingerprint" | "wireFingerprint" | "priority" | "canonicalMeta" | "replyToId" | "envelopeVersion" | "payload"
>;

export type RequeueOrder = {
  readonly oldId: string;
  readonly newId: string;
  readonly newClientMessageId: string;
  readonly nowMs: number;
  readonly patched: PatchedColumns | undefined;
  /** The broker has said that no try of the old row can commit any more. */
  readonly provenUncommitted: boolean;
  /** The operator accepts a duplicate. Written to both rows. */
  readonly acceptDuplicate: boolean;
  /** The operator's consent is needed and used: the broker could not be asked, or gave no clear answer. */
  readonly despiteUnknownFate: boolean;
};

export type RequeueOutcome =
  | { readonly type: "requeued" }
  | { readonly type: "client_id_consumed" }
  | { readonly type: "fate_unknown" }
  | { readonly type: "not_requeueable"; readonly row: RequeueTarget }
  | { readonly type: "not_found" };

/** `unchanged`: there is no such pending row, or it is not due before that moment anyway. */
export type HoldBackOutcome =
  | { readonly type: "held_back"; readonly wasDueAt: number }
  | { readonly type: "unchanged" };

export type RequeueDecision = "go" | "fate_unknown" | "not_requeueable";

/**
 * A fence holds for every try of the row, also for those that began after it was asked for; so the proof is good
 * whatever has happened to the row meanwhile, as long as no try of it is open.
 */
export function decideRequeue(
  row: Pick<FenceTarget, "status" | "attempts" | "unanswered" | "fenced">,
  order: Pick<RequeueOrder, "provenUncommitted" | "despiteUnknownFate">,
): RequeueDecision {
  if (!canTransition(row.status, "aborted")) return "not_requeueable";
  if (fateOf(row) !== "unknown" || order.provenUncommitted || order.despiteUnknownFate) return "go";
  return "fate_unknown";
}
