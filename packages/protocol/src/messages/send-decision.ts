// The eleven rows of the send table as one pure function, and the answer of each row. Every state of a row has one
// deterministic answer; only "no row" lets a send in.
import { fingerprintPrefix, sameFingerprint } from "./fingerprint.ts";
import type { OutboxStatus } from "./outbox-row.ts";

/** What the outbox holds for an id. A tombstone counts as a done row. */
export type ExistingSend = {
  readonly outboxId: string;
  readonly status: OutboxStatus;
  readonly fingerprint: Uint8Array;
  readonly brokerMessageId: string | undefined;
  readonly historyId: number | undefined;
  readonly lastError: string | undefined;
};

export type SendConflict = `outbox_${OutboxStatus}_fingerprint_${"match" | "mismatch"}`;

export type SendDecision =
  | { readonly type: "insert" }
  | { readonly type: "queued_already"; readonly status: "queued" | "inflight" }
  | { readonly type: "done_already" }
  | { readonly type: "conflict"; readonly conflict: SendConflict };

export function decideSend(existing: ExistingSend | undefined, fingerprint: Uint8Array): SendDecision {
  if (existing === undefined) return { type: "insert" };
  const match = sameFingerprint(existing.fingerprint, fingerprint);
  if (match) {
    if (existing.status === "pending") return { type: "queued_already", status: "queued" };
    if (existing.status === "inflight") return { type: "queued_already", status: "inflight" };
    if (existing.status === "done") return { type: "done_already" };
  }
  return { type: "conflict", conflict: `outbox_${existing.status}_fingerprint_${match ? "match" : "mismatch"}` };
}

export type SendAnswer = { readonly status: 200 | 202 | 409; readonly body: Record<string, unknown> };

/** The answer to a send that was just inserted. */
export function answerInserted(clientMessageId: string, outboxId: string, fingerprint: Uint8Array): SendAnswer {
  return queuedAnswer(clientMessageId, outboxId, "queued", false, fingerprint);
}

/** The answer to a send for whose id there is a row already. */
export function answerExisting(
  clientMessageId: string,
  existing: ExistingSend,
  decision: Exclude<SendDecision, { type: "insert" }>,
  fingerprint: Uint8Array,
): SendAnswer {
  switch (decision.type) {
    case "queued_already":
      return queuedAnswer(clientMessageId, existing.outboxId, decision.status, true, fingerprint);
    case "done_already":
      return {
        status: 200,
        body: {
          client_message_id: clientMessageId,
          outbox_id: existing.outboxId,
          status: "done",
          duplicate: true,
          broker_message_id: existing.brokerMessageId,
          history_id: existing.historyId,
          request_fingerprint: fingerprintPrefix(fingerprint),
        },
      };
    case "conflict":
      return conflictAnswer(clientMessageId, existing, decision.conflict, fingerprint);
  }
}

function queuedAnswer(
  clientMessageId: string,
  outboxId: string,
  status: "queued" | "inflight",
  duplicate: boolean,
  fingerprint: Uint8Array,
): SendAnswer {
  return {
    status: 202,
    body: {
      client_message_id: clientMessageId,
      outbox_id: outboxId,
      status,
      duplicate,
      request_fingerprint: fingerprintPrefix(fingerprint),
    },
  };
}

function conflictAnswer(
  clientMessageId: string,
  existing: ExistingSend,
  conflict: SendConflict,
  fingerprint: Uint8Array,
): SendAnswer {
  return {
    status: 409,
    body: {
      error: "idempotency_key_reused",
      message: conflictMessages[existing.status],
      retryable: false,
      conflict,
      client_message_id: clientMessageId,
      daemon_fingerprint_prefix: fingerprintPrefix(fingerprint),
      stored_fingerprint_prefix: fingerprintPrefix(existing.fingerprint),
      ...(existing.status === "dead" ? { reason: existing.lastError ?? "" } : {}),
      ...(existing.brokerMessageId === undefined ? {} : { broker_message_id: existing.brokerMessageId }),
    },
  };
}

const conflictMessages: Readonly<Record<OutboxStatus, string>> = {
  pending: "This id is queued with other content; send with a new id.",
  inflight: "This id is being sent with other content; send with a new id.",
  done: "This id was sent with other content; send with a new id.",
  dead: "This id's send ended dead and is never retried by itself; `claudemesh status <id>` says why and what to do, or send with a new id.",
  aborted: "This id was retired by a requeue and is never used again; send with a new id.",
};
