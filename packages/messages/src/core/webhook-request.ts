// What a webhook's receiver gets: body, headers and the signature that proves who sent them. The body's bytes and the
// message id are the same in every try and every replay. The timestamp is the try's own, so that a receiver can refuse a
// recorded request by its age.
import { createHash, createHmac } from "node:crypto";
import { writeStrictJson } from "@claudemesh/protocol/json";
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";

export type WebhookEvent = {
  readonly meshId: string;
  readonly meshName: string;
  readonly webhook: string;
  readonly item: HistoryItem;
};

export type WebhookRequest = { readonly headers: Readonly<Record<string, string>>; readonly body: Buffer };

export function composeWebhookRequest(
  event: WebhookEvent,
  secret: string,
  attempt: number,
  nowMs: number,
): WebhookRequest {
  const { meshId, meshName, webhook, item } = event;
  const content = { type: "message", mesh: meshName, mesh_id: meshId, webhook, message: item };
  const body = Buffer.from(writeStrictJson(content));
  return {
    body,
    headers: {
      "content-type": "application/json",
      "content-length": String(body.length),
      "user-agent": "claudemesh-webhook/1",
      "x-claudemesh-webhook": webhook,
      "x-claudemesh-message-id": item.broker_message_id,
      "x-claudemesh-attempt": String(attempt),
      "x-claudemesh-timestamp": String(nowMs),
      "x-claudemesh-signature": `sha256=${signWebhook(secret, nowMs, body)}`,
    },
  };
}

/** HMAC-SHA-256 over the timestamp's digits, a dot and the body's bytes, in lower-case hex. */
export function signWebhook(secret: string, timestampMs: number, body: Uint8Array): string {
  return createHmac("sha256", secret).update(`${timestampMs}.`).update(body).digest("hex");
}

/** Over what a webhook was created with: the same request again means the same webhook. */
export function webhookFingerprint(request: {
  readonly url: string;
  readonly topics: readonly string[] | undefined;
  readonly secret: string | undefined;
}): Buffer {
  const { url, topics, secret } = request;
  return createHash("sha256")
    .update(JSON.stringify([url, topics ?? null, secret ?? null]))
    .digest();
}
