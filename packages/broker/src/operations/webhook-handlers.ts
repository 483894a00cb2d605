// Webhooks: only owners create, see, replay and delete them. Posting is the background's work.

import { mintSecret } from "@claudemesh/members/credentials";
import type { Member } from "@claudemesh/members/ports";
import { requireOwner } from "@claudemesh/members/require-owner";
import type { StoredWebhook, WebhookDeliveryItem } from "@claudemesh/messages/ports/webhooks";
import { webhookFingerprint } from "@claudemesh/messages/webhook-request";
import { MeshError } from "@claudemesh/protocol/errors";
import type { Answer } from "@claudemesh/protocol/messages/accept-result";
import type {
  PageInput,
  WebhookCreateInput,
  WebhookDeliveriesInput,
  WebhookInput,
  WebhookReplayInput,
} from "@claudemesh/protocol/wire/operations";
import type { BrokerContext } from "../context.ts";
import { isPlainlyPrivate } from "../webhooks/address-guard.ts";
import { checkName, type Handlers, ok, pageLimit } from "./handler.ts";
import { meshLimitReached } from "./mesh-caps.ts";

/** Deliveries made due in one transaction. */
const replayedPerStep = 1_000;

export const webhookHandlers = {
  "webhook.create": async (broker, { member }, input: WebhookCreateInput) => {
    requireOwner(member, "create a webhook");
    const wanted = readWebhook(input);
    // What exists is answered first: a setting that has changed since must not turn a retry into a refusal.
    const existing = await answerExisting(broker, member, wanted);
    if (existing !== undefined) return existing;
    if (!broker.config.webhookAllowPrivate && isPlainlyPrivate(new URL(wanted.url))) {
      throw new MeshError("webhook_address_refused", undefined, { field: "url" });
    }
    await broker.admitNew(member.meshId, `webhook/${wanted.id}`);
    const secret = wanted.secret ?? mintSecret("cmw");
    const nowMs = broker.nowMs();
    const { id, url, topics, fingerprint } = wanted;
    const head = { meshId: member.meshId, id, incarnation: broker.nextId() };
    const webhook = { ...head, url, topics, secret, fingerprint, createdBy: member.pubkey };
    const { max_webhooks: most } = await broker.settings.of(member.meshId);
    const outcome = await broker.messages.webhooks.create(webhook, nowMs, most);
    if (outcome === "full") throw meshLimitReached("max_webhooks", most);
    if (outcome === "created") return { status: 201, body: { ...bodyOf(wanted, nowMs), secret } };
    return (await answerExisting(broker, member, wanted)) ?? ok(bodyOf(wanted, nowMs));
  },

  "webhook.list": async (broker, { member }, input: PageInput) => {
    requireOwner(member, "list webhooks");
    const page = await broker.messages.webhooks.list(member.meshId, input.after ?? "", pageLimit(input));
    return ok({ items: page.items.map(toWebhookItem), next_cursor: page.nextCursor ?? null });
  },

  "webhook.delete": async (broker, { member }, input: WebhookInput) => {
    requireOwner(member, "delete a webhook");
    const id = checkName(input.webhook, "webhook");
    await broker.messages.webhooks.delete(member.meshId, id, broker.nowMs());
    return ok({ id, deleted: true });
  },

  "webhook.deliveries": async (broker, { member }, input: WebhookDeliveriesInput) => {
    requireOwner(member, "see a webhook's deliveries");
    const id = checkName(input.webhook, "webhook");
    const page = await broker.messages.webhooks.deliveries({
      meshId: member.meshId,
      id,
      state: input.state,
      after: input.after ?? 0,
      limit: pageLimit(input),
    });
    if (page === undefined) throw webhookNotFound(id);
    return ok({ items: page.items.map(toDeliveryItem), next_after: page.nextAfter ?? null });
  },

  "webhook.replay": async (broker, { member }, input: WebhookReplayInput) => {
    requireOwner(member, "replay a webhook");
    const id = checkName(input.webhook, "webhook");
    const { history_ids: historyIds, from_history_id: from } = input;
    if (historyIds !== undefined && from !== undefined) {
      throw new MeshError("invalid_request", "Give history_ids or from_history_id, not both.", {
        field: "from_history_id",
      });
    }
    const { webhooks } = broker.messages;
    if (from !== undefined) {
      if (!(await webhooks.replayFrom(member.meshId, id, from))) throw webhookNotFound(id);
      return ok({ id, replayed: 0, from_history_id: from });
    }
    const replayed =
      historyIds === undefined
        ? await replayStuck(broker, member, id)
        : await webhooks.replay(member.meshId, id, { historyIds }, broker.nowMs());
    if (replayed === undefined) throw webhookNotFound(id);
    return ok({ id, replayed, from_history_id: null });
  },
} satisfies Handlers;

type WantedWebhook = {
  readonly id: string;
  readonly url: string;
  readonly topics: readonly string[] | undefined;
  readonly secret: string | undefined;
  readonly fingerprint: Uint8Array;
};

function readWebhook(input: WebhookCreateInput): WantedWebhook {
  const id = checkName(input.webhook, "webhook");
  const topics = input.topics?.map((name) => checkName(name, "topics")).toSorted();
  const url = URL.parse(input.url);
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:") || url.hostname === "") {
    throw new MeshError("invalid_request", "A webhook's url is https://… or http://….", { field: "url" });
  }
  if (url.username !== "" || url.password !== "" || url.hash !== "") {
    const message = "A webhook's url has no user, password or fragment: it is listed to every owner.";
    throw new MeshError("invalid_request", message, { field: "url" });
  }
  const wanted = { url: input.url, topics, secret: input.secret };
  return { id, ...wanted, fingerprint: webhookFingerprint(wanted) };
}

async function answerExisting(
  broker: BrokerContext,
  member: Member,
  wanted: WantedWebhook,
): Promise<Answer | undefined> {
  const stored = await broker.messages.webhooks.find(member.meshId, wanted.id);
  if (stored === undefined) return undefined;
  if (Buffer.compare(stored.fingerprint, wanted.fingerprint) === 0) return ok(bodyOf(wanted, stored.createdAtMs));
  const message = `The webhook ${wanted.id} exists with another url, other topics or another secret.`;
  throw new MeshError("exists_with_other_content", message, { name: wanted.id });
}

function bodyOf({ id, url, topics }: WantedWebhook, createdAtMs: number): Record<string, unknown> {
  return { id, url, topics: topics ?? null, created_at: createdAtMs };
}

function toWebhookItem(webhook: StoredWebhook): Record<string, unknown> {
  const { id, url, topics, createdBy, createdAtMs, writtenUpTo, pending, parked } = webhook;
  const head = { id, url, topics: topics ?? null, created_by: createdBy, created_at: createdAtMs };
  return { ...head, read_up_to: writtenUpTo, pending, parked };
}

function toDeliveryItem(delivery: WebhookDeliveryItem): Record<string, unknown> {
  return {
    history_id: delivery.historyId,
    broker_message_id: delivery.brokerMessageId,
    state: delivery.state,
    attempts: delivery.attempts,
    next_attempt_at: delivery.dueAtMs ?? null,
    last_attempt_at: delivery.lastAttemptAtMs ?? null,
    last_status: delivery.lastStatus ?? null,
    last_error: delivery.lastError ?? null,
    settled_at: delivery.settledAtMs ?? null,
  };
}

/** What is parked or waits for its next try. */
async function replayStuck(broker: BrokerContext, member: Member, id: string): Promise<number | undefined> {
  const { webhooks } = broker.messages;
  let total = 0;
  // What is stuck again meanwhile was tried after this moment, and is not gone after.
  for (;;) {
    const replayed = await webhooks.replay(member.meshId, id, { limit: replayedPerStep }, broker.nowMs());
    if (replayed === undefined) return undefined;
    total += replayed;
    if (replayed < replayedPerStep) return total;
  }
}

function webhookNotFound(id: string): MeshError {
  return new MeshError("not_found", `There is no webhook ${id}; \`claudemesh webhook list\` shows those that are.`);
}
