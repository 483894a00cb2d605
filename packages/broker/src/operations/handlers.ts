// One handler per operation of the protocol: authorise, call the service, shape the answer. Both transports dispatch
// here; neither knows what an operation does.

import type { PlainMember } from "@claudemesh/members/ports";
import { requireOwner } from "@claudemesh/members/require-owner";
import type { FateResult, FenceRequest, TopicCounts } from "@claudemesh/messages/ports";
import { acceptMessage } from "@claudemesh/messages/services/accept";
import { MeshError } from "@claudemesh/protocol/errors";
import type { AcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import { answerAccept } from "@claudemesh/protocol/messages/accept-result";
import { isClientMessageId } from "@claudemesh/protocol/messages/client-message-id";
import type {
  AckInput,
  FateInput,
  HistoryInput,
  OperationName,
  TopicCreateInput,
  TopicInput,
  TopicListInput,
} from "@claudemesh/protocol/wire/operations";
import { dedupeRetentionMs } from "../config.ts";
import { checkName, type Handler, ok, pageLimit } from "./handler.ts";
import { healthHandlers } from "./health-handlers.ts";
import { memberHandlers } from "./member-handlers.ts";
import { admitCreation } from "./mesh-caps.ts";
import { onceHandlers } from "./once-handlers.ts";
import { presenceHandlers } from "./presence-handlers.ts";
import { queueHandlers } from "./queue-handlers.ts";
import { readingHandlers } from "./reading-handlers.ts";
import { registrarHandlers } from "./registrar-handlers.ts";
import { settingHandlers } from "./setting-handlers.ts";
import { spaceHandlers } from "./space-handlers.ts";
import { webhookHandlers } from "./webhook-handlers.ts";

export const handlers: { readonly [Name in OperationName]: Handler<Name> } = {
  send: async (broker, { member, lookUp }, input: AcceptRequest) => {
    const ports = {
      store: broker.messages.accepts,
      nowMs: broker.nowMs,
      nextId: broker.nextId,
      inlineBytes: broker.config.inlineBytes,
      takesUnsealed: broker.settings.takesUnsealed,
      dedupeRetentionMs: dedupeRetentionMs(broker.config),
      afterLookUp: () => broker.failpoints.hit("accept.after_b0"),
      onAccepted: (meshId: string, recipients: readonly string[]) => broker.connections.wake(meshId, recipients),
    };
    const result = await acceptMessage(ports, member, input, lookUp);
    if (result.type === "reused") broker.metrics.reused();
    if (result.type === "refused" && result.code === "payload_too_large") throw tooLarge(broker.config.inlineBytes);
    return answerAccept(result);
  },

  fate: async (broker, { member }, input: FateInput) =>
    ok(fateBody(await broker.messages.fences.findFate(fenceRequest(member, input)))),

  fence: async (broker, { member }, input: FateInput) => {
    const nowMs = broker.nowMs();
    const retentionMs = dedupeRetentionMs(broker.config);
    const expiresAtMs = retentionMs === undefined ? undefined : nowMs + retentionMs;
    return ok(fateBody(await broker.messages.fences.fence(fenceRequest(member, input), nowMs, expiresAtMs)));
  },

  history: async (broker, { member }, input: HistoryInput) => {
    const { items, nextAfter } = await broker.messages.history.read({
      meshId: member.meshId,
      reader: member.pubkey,
      after: input.after ?? 0,
      limit: pageLimit(input),
      topic: input.topic,
    });
    return ok({ items, next_after: nextAfter ?? null });
  },

  ack: async (broker, { member }, input: AckInput) => {
    await broker.messages.deliveries.settle(member.meshId, member.pubkey, input.history_ids, broker.nowMs());
    return ok({ settled: input.history_ids.length });
  },

  ...queueHandlers,
  ...healthHandlers,
  ...memberHandlers,
  ...settingHandlers,
  ...presenceHandlers,
  ...readingHandlers,
  ...webhookHandlers,
  ...onceHandlers,
  ...registrarHandlers,
  ...spaceHandlers,

  "topic.create": async (broker, { member }, input: TopicCreateInput) => {
    const name = checkName(input.name, "name");
    const postPolicy = input.post_policy ?? "members";
    const topic = { name, postPolicy, createdBy: member.pubkey };
    if (!(await broker.messages.topics.exists(member.meshId, name))) {
      await admitCreation(broker, member.meshId, "topics", name);
    }
    const outcome = await broker.messages.topics.create(member.meshId, topic, broker.nowMs());
    if (outcome === "different") {
      throw new MeshError("exists_with_other_content", `The topic ${name} exists with another post policy.`, { name });
    }
    return { status: outcome === "created" ? 201 : 200, body: { name, post_policy: postPolicy } };
  },

  "topic.list": async (broker, { member: { meshId, pubkey } }, input: TopicListInput) => {
    const limit = pageLimit(input);
    const topics = await broker.messages.topics.list(meshId, pubkey, input.after ?? "", limit);
    const names = topics.map(({ name }) => name);
    const counts = input.counts === true ? await broker.messages.topics.measure(meshId, names) : undefined;
    const counted = topics.slice(0, counts?.size ?? limit);
    const items = counted.map(({ name, postPolicy, subscribed }) => ({
      name,
      post_policy: postPolicy,
      subscribed,
      ...topicCounts(counts?.get(name)),
    }));
    const isWhole = topics.length < limit && counted.length === topics.length;
    return ok({ items, next_cursor: isWhole ? null : (counted.at(-1)?.name ?? null) });
  },

  "topic.delete": async (broker, { member }, input: TopicInput) => {
    requireOwner(member, "delete a topic");
    const name = checkName(input.name, "name");
    await broker.messages.topics.delete(member.meshId, name);
    broker.connections.destinationGone(member.meshId, { kind: "topic", ref: name });
    return ok({ name, deleted: true });
  },

  "topic.subscribe": async (broker, { member }, input: TopicInput) => {
    const name = checkName(input.name, "name");
    const exists = await broker.messages.topics.subscribe(member.meshId, name, member.pubkey, broker.nowMs());
    if (!exists) throw topicNotFound(name);
    return ok({ name, subscribed: true });
  },

  "topic.unsubscribe": async (broker, { member }, input: TopicInput) => {
    const name = checkName(input.name, "name");
    if (!(await broker.messages.topics.unsubscribe(member.meshId, name, member.pubkey))) throw topicNotFound(name);
    // Where only subscribers may post, what its daemon remembers is no longer so.
    broker.connections.destinationGone(member.meshId, { kind: "topic", ref: name }, member.pubkey);
    return ok({ name, subscribed: false });
  },
};

/** Which limit is this broker's own; a caller that hears it need not try sizes. */
function tooLarge(limitBytes: number): MeshError {
  return new MeshError("payload_too_large", `A message has at most ${limitBytes} bytes here.`, {
    limit_bytes: limitBytes,
  });
}

function fenceRequest(member: PlainMember, input: FateInput): FenceRequest {
  if (!isClientMessageId(input.client_message_id)) throw new MeshError("invalid_client_message_id");
  return {
    meshId: member.meshId,
    senderPubkey: member.pubkey,
    clientMessageId: input.client_message_id,
    fingerprint: Buffer.from(input.fingerprint, "hex"),
  };
}

function fateBody(result: FateResult): Record<string, unknown> {
  if (result.fate !== "committed") return { fate: result.fate };
  const { fate, brokerMessageId, historyId, historyAvailable } = result;
  return { fate, broker_message_id: brokerMessageId, history_id: historyId, history_available: historyAvailable };
}

function topicCounts(counts: TopicCounts | undefined): Record<string, unknown> {
  if (counts === undefined) return {};
  const { subscribers, messages, lastMessageAtMs } = counts;
  return { subscribers, messages, last_message_at: lastMessageAtMs ?? null };
}

function topicNotFound(name: string): MeshError {
  return new MeshError("not_found", `There is no topic ${name}; create it with \`claudemesh topic create ${name}\`.`);
}
