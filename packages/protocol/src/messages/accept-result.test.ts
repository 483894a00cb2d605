// Every end of a broker's accept and the answer it has: status, exact bytes of the body, Retry-After.
import { describe, expect, it } from "vitest";
import { errorCatalogue } from "../errors/catalogue.ts";
import { MeshError } from "../errors/errors.ts";
import { type AcceptRefusal, type AcceptResult, answerAccept, answerError } from "./accept-result.ts";

const brokerMessageId = "018f3c1e-7b2a-7c3d-9e4f-5a6b7c8d9e0f";
const clientMessageId = "order-42";

/** The bytes of a refusal less its words for people. */
function withoutMessage(body: Readonly<Record<string, unknown>>): string {
  const { message, ...rest } = body;
  expect(message).toMatch(/^[A-Z].+\.$/);
  return JSON.stringify(rest);
}

describe("an accept", () => {
  it("that is the first is 201", () => {
    expect(answerAccept({ type: "accepted", brokerMessageId, clientMessageId, historyId: 7 })).toEqual({
      status: 201,
      body: {
        broker_message_id: brokerMessageId,
        client_message_id: clientMessageId,
        history_id: 7,
        duplicate: false,
      },
    });
  });

  it.each([true, false])("that is an exact retry is 200 and says whether history still has it: %s", (available) => {
    const result: AcceptResult = {
      type: "duplicate",
      brokerMessageId,
      clientMessageId,
      historyId: 7,
      historyAvailable: available,
      firstSeenAt: 1_700_000_000_000,
    };
    const { status, body } = answerAccept(result);
    expect(status).toBe(200);
    expect(JSON.stringify(body)).toBe(
      `{"broker_message_id":"${brokerMessageId}","client_message_id":"order-42","history_id":7,"duplicate":true,` +
        `"history_available":${available},"first_seen_at":1700000000000}`,
    );
  });

  it("of a taken id with other content is 409 and shows the broker's prefix", () => {
    const { status, body } = answerAccept({
      type: "reused",
      clientMessageId,
      brokerFingerprintPrefix: "0011223344556677",
    });
    expect(status).toBe(409);
    expect(withoutMessage(body)).toBe(
      '{"error":"idempotency_key_reused","retryable":false,"conflict":"request_fingerprint_mismatch",' +
        '"client_message_id":"order-42","broker_fingerprint_prefix":"0011223344556677"}',
    );
  });

  it("of another member's id is 409 and shows nothing of that member's send", () => {
    const { status, body } = answerAccept({ type: "owned_by_another", clientMessageId });
    expect(status).toBe(409);
    expect(withoutMessage(body)).toBe(
      '{"error":"idempotency_key_reused","retryable":false,"conflict":"client_id_owned_by_another_member",' +
        '"client_message_id":"order-42"}',
    );
  });

  it("of a fenced id is 409 fenced", () => {
    const { status, body } = answerAccept({ type: "fenced", clientMessageId });
    expect(status).toBe(409);
    expect(withoutMessage(body)).toBe('{"error":"fenced","retryable":false,"client_message_id":"order-42"}');
  });

  it("above the budget is 429 with the rest of the window in the body and for Retry-After", () => {
    const answer = answerAccept({ type: "rate_limited", retryAfterSeconds: 17 });
    expect(answer.status).toBe(429);
    expect(answer.retryAfterSeconds).toBe(17);
    expect(withoutMessage(answer.body)).toBe('{"error":"rate_limited","retryable":true,"retry_after_s":17}');
  });

  const refusals: [AcceptRefusal, number][] = [
    ["destination_not_found", 404],
    ["not_subscribed", 403],
    ["unauthorized", 401],
    ["payload_too_large", 413],
    ["limiter_unavailable", 503],
  ];
  it.each(refusals)("refused as %s is %i", (code, status) => {
    const answer = answerAccept({ type: "refused", code });
    expect(answer.status).toBe(status);
    expect(withoutMessage(answer.body)).toBe(JSON.stringify({ error: code, retryable: status >= 500 }));
  });

  it("asks for a pause only when the budget is spent", () => {
    for (const [code] of refusals)
      expect(answerAccept({ type: "refused", code })).not.toHaveProperty("retryAfterSeconds");
    expect(answerAccept({ type: "fenced", clientMessageId })).not.toHaveProperty("retryAfterSeconds");
  });
});

describe("an error as an answer", () => {
  it("has the catalogue's status and the error's body", () => {
    const error = new MeshError("not_found", "No such token.", { token_id: "t" });
    expect(answerError(error)).toEqual({
      status: errorCatalogue.not_found.status,
      body: { error: "not_found", message: "No such token.", retryable: false, token_id: "t" },
    });
  });
});
