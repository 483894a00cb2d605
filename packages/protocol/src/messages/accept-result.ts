// The outcomes of a broker's accept as a closed union, and the one answer that each has on HTTP and WebSocket.
import type { ErrorCode } from "../errors/errors.ts";
import { MeshError } from "../errors/errors.ts";

export type AcceptResult =
  | {
      readonly type: "accepted";
      readonly brokerMessageId: string;
      readonly clientMessageId: string;
      readonly historyId: number;
    }
  | {
      readonly type: "duplicate";
      readonly brokerMessageId: string;
      readonly clientMessageId: string;
      readonly historyId: number;
      readonly historyAvailable: boolean;
      readonly firstSeenAt: number;
    }
  | { readonly type: "reused"; readonly clientMessageId: string; readonly brokerFingerprintPrefix: string }
  | { readonly type: "owned_by_another"; readonly clientMessageId: string }
  | { readonly type: "fenced"; readonly clientMessageId: string }
  | { readonly type: "rate_limited"; readonly retryAfterSeconds: number }
  /** The request waited too long inside the broker; it is looked up again when it is sent again. */
  | { readonly type: "outdated" }
  | { readonly type: "refused"; readonly code: AcceptRefusal };

/** The refusals of B1 and B2. None of these leaves a dedupe row. */
export type AcceptRefusal = Extract<
  ErrorCode,
  | "destination_not_found"
  | "not_subscribed"
  | "unauthorized"
  | "payload_too_large"
  | "dm_not_sealed"
  | "limiter_unavailable"
>;

export type Answer = {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly retryAfterSeconds?: number;
};

export function answerAccept(result: AcceptResult): Answer {
  switch (result.type) {
    case "accepted":
      return { status: 201, body: acceptedBody(result, false) };
    case "duplicate":
      return {
        status: 200,
        body: {
          ...acceptedBody(result, true),
          history_available: result.historyAvailable,
          first_seen_at: result.firstSeenAt,
        },
      };
    case "reused":
      return answerError(
        new MeshError("idempotency_key_reused", undefined, {
          conflict: "request_fingerprint_mismatch",
          client_message_id: result.clientMessageId,
          broker_fingerprint_prefix: result.brokerFingerprintPrefix,
        }),
      );
    case "owned_by_another":
      return answerError(
        new MeshError("idempotency_key_reused", "Another member has used this client_message_id; use a new one.", {
          conflict: "client_id_owned_by_another_member",
          client_message_id: result.clientMessageId,
        }),
      );
    case "fenced":
      return answerError(new MeshError("fenced", undefined, { client_message_id: result.clientMessageId }));
    case "rate_limited":
      return answerError(new MeshError("rate_limited", undefined, { retry_after_s: result.retryAfterSeconds }));
    case "outdated":
      return answerError(
        new MeshError("storage_unavailable", "The broker could not take the send in time; send it again."),
      );
    case "refused":
      return answerError(new MeshError(result.code));
  }
}

export function answerError(error: MeshError): Answer {
  const { retry_after_s: retryAfterSeconds } = error.details;
  const answer = { status: error.status, body: error.toBody() };
  return typeof retryAfterSeconds === "number" ? { ...answer, retryAfterSeconds } : answer;
}

function acceptedBody(
  result: Extract<AcceptResult, { type: "accepted" | "duplicate" }>,
  duplicate: boolean,
): Record<string, unknown> {
  return {
    broker_message_id: result.brokerMessageId,
    client_message_id: result.clientMessageId,
    history_id: result.historyId,
    duplicate,
  };
}
