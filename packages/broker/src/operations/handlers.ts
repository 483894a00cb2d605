// One handler per operation of the protocol: authorise, call the service, shape the answer. Both transports dispatch
// here; neither knows what an operation does.

import type { Member, Mesh } from "@claudemesh/members/ports";
import { createInvite } from "@claudemesh/members/services/join-mesh";
import { createToken, revokeToken } from "@claudemesh/members/services/member-tokens";
import type { FateResult, FenceRequest } from "@claudemesh/messages/ports";
import { acceptSend } from "@claudemesh/messages/services/accept";
import { MeshError } from "@claudemesh/protocol/errors";
import type { AcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import { type Answer, answerAccept } from "@claudemesh/protocol/messages/accept-result";
import { isClientMessageId } from "@claudemesh/protocol/messages/client-message-id";
import { limits } from "@claudemesh/protocol/messages/limits";
import { isName } from "@claudemesh/protocol/messages/names";
import { encodeInvite } from "@claudemesh/protocol/wire/invite";
import type {
  AckInput,
  FateInput,
  HistoryInput,
  InviteInput,
  OperationName,
  PageInput,
  TokenIdInput,
  TokenInput,
  TopicCreateInput,
  TopicInput,
} from "@claudemesh/protocol/wire/operations";
import type { BrokerContext } from "../context.ts";

/** Who asks, checked by the transport. */
export type Caller = { readonly mesh: Mesh; readonly member: Member };

type Handler = (broker: BrokerContext, caller: Caller, input: never) => Promise<Answer>;

const ok = (body: Record<string, unknown>): Answer => ({ status: 200, body });

export const handlers: Readonly<Record<OperationName, Handler>> = {
  send: async (broker, { member }, input: AcceptRequest) =>
    answerAccept(
      await acceptSend(
        {
          store: broker.messages.accepts,
          nowMs: broker.nowMs,
          nextId: broker.nextId,
          inlineBytes: broker.config.inlineBytes,
          dedupeRetentionMs: dedupeRetentionMs(broker),
          afterB0: () => broker.failpoints.hit("accept.after_b0"),
          onAccepted: (meshId, recipients) => broker.connections.wake(meshId, recipients),
        },
        member,
        input,
      ),
    ),

  fate: async (broker, { member }, input: FateInput) =>
    ok(fateBody(await broker.messages.fences.findFate(fenceRequest(member, input)))),

  fence: async (broker, { member }, input: FateInput) => {
    const nowMs = broker.nowMs();
    const retentionMs = dedupeRetentionMs(broker);
    const expiresAtMs = retentionMs === undefined ? undefined : nowMs + retentionMs;
    return ok(fateBody(await broker.messages.fences.fence(fenceRequest(member, input), nowMs, expiresAtMs)));
  },

  history: async (broker, { member }, input: HistoryInput) => {
    const { items, nextAfter } = await broker.messages.history.read({
      meshId: member.meshId,
      reader: member.pubkey,
      after: input.after ?? 0,
      limit: input.limit ?? limits.pageItemsDefault,
      topic: input.topic,
    });
    return ok({ items, next_after: nextAfter ?? null });
  },

  ack: async (broker, { member }, input: AckInput) => {
    await broker.messages.deliveries.settle(member.meshId, member.pubkey, input.history_ids, broker.nowMs());
    return ok({ settled: input.history_ids.length });
  },

  "members.list": async (broker, { member }, input: PageInput) => {
    const page = await broker.members.listMembers(member.meshId, input.after ?? "", pageLimit(input));
    const items = page.items.map(({ pubkey, name, role, joinedAt }) => ({ pubkey, name, role, joined_at: joinedAt }));
    return ok({ items, next_cursor: page.nextCursor ?? null });
  },

  "invite.create": async (broker, { mesh, member }, input: InviteInput) => {
    const ports = { store: broker.members, nowMs: broker.nowMs };
    const { secret, expiresAt } = await createInvite(ports, member, input.expires_in_s);
    const invite = encodeInvite({ broker: broker.publicUrl(), mesh: mesh.name, mesh_id: mesh.id, secret });
    return { status: 201, body: { invite, expires_at: expiresAt } };
  },

  "token.create": async (broker, { member }, input: TokenInput) => {
    const { token, tokenId } = await createToken(tokenPorts(broker), member, input.label ?? "");
    return { status: 201, body: { token, token_id: tokenId } };
  },

  "token.list": async (broker, { member }, input: PageInput) => {
    const page = await broker.members.listTokens(member.meshId, member.pubkey, input.after ?? "", pageLimit(input));
    const items = page.items.map(({ id, label, createdAt, revokedAt }) => ({
      token_id: id,
      label,
      created_at: createdAt,
      revoked_at: revokedAt ?? null,
    }));
    return ok({ items, next_cursor: page.nextCursor ?? null });
  },

  "token.revoke": async (broker, { member }, input: TokenIdInput) => {
    await revokeToken(tokenPorts(broker), member, input.token_id);
    return ok({ token_id: input.token_id, revoked: true });
  },

  "topic.create": async (broker, { member }, input: TopicCreateInput) => {
    const name = checkTopicName(input.name);
    const postPolicy = input.post_policy ?? "members";
    const topic = { name, postPolicy, createdBy: member.pubkey };
    const outcome = await broker.messages.topics.create(member.meshId, topic, broker.nowMs());
    if (outcome === "different") {
      throw new MeshError("exists_with_other_content", `The topic ${name} exists with another post policy.`, { name });
    }
    return { status: outcome === "created" ? 201 : 200, body: { name, post_policy: postPolicy } };
  },

  "topic.list": async (broker, { member }, input: PageInput) => {
    const limit = pageLimit(input);
    const topics = await broker.messages.topics.list(member.meshId, member.pubkey, input.after ?? "", limit);
    const items = topics.map(({ name, postPolicy, subscribed }) => ({ name, post_policy: postPolicy, subscribed }));
    return ok({ items, next_cursor: topics.length === limit ? (topics.at(-1)?.name ?? null) : null });
  },

  "topic.subscribe": async (broker, { member }, input: TopicInput) => {
    const name = checkTopicName(input.name);
    const found = await broker.messages.topics.subscribe(member.meshId, name, member.pubkey, broker.nowMs());
    if (!found) throw topicNotFound(name);
    return ok({ name, subscribed: true });
  },

  "topic.unsubscribe": async (broker, { member }, input: TopicInput) => {
    const name = checkTopicName(input.name);
    if (!(await broker.messages.topics.unsubscribe(member.meshId, name, member.pubkey))) throw topicNotFound(name);
    return ok({ name, subscribed: false });
  },
};

function dedupeRetentionMs(broker: BrokerContext): number | undefined {
  const { dedupe } = broker.config;
  return dedupe.mode === "permanent" ? undefined : dedupe.dedupe_retention_days * 86_400_000;
}

function fenceRequest(member: Member, input: FateInput): FenceRequest {
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
  return { fate: "committed", broker_message_id: result.brokerMessageId, history_id: result.historyId };
}

function tokenPorts(broker: BrokerContext) {
  return { store: broker.members, nowMs: broker.nowMs, nextId: broker.nextId };
}

function pageLimit(input: PageInput): number {
  return input.limit ?? limits.pageItemsDefault;
}

function checkTopicName(name: string): string {
  if (!isName(name)) throw new MeshError("invalid_name", undefined, { field: "name" });
  return name;
}

function topicNotFound(name: string): MeshError {
  return new MeshError("not_found", `There is no topic ${name}; create it with \`claudemesh topic create ${name}\`.`);
}
