// Members and what belongs to them: listing, invites, tokens, roles, and the end of a membership.
import { createInvite } from "@claudemesh/members/services/join-mesh";
import { type ListedInvite, listInvites, revokeInvite } from "@claudemesh/members/services/manage-invites";
import { createToken, revokeToken } from "@claudemesh/members/services/member-tokens";
import { revokeMember } from "@claudemesh/members/services/revoke-member";
import { setRole } from "@claudemesh/members/services/set-role";
import { endMembership } from "@claudemesh/messages/services/end-membership";
import { MeshError } from "@claudemesh/protocol/errors";
import { encodeInvite } from "@claudemesh/protocol/wire/invite";
import type {
  InviteIdInput,
  InviteInput,
  MemberInput,
  MemberRoleInput,
  PageInput,
  TokenIdInput,
  TokenInput,
} from "@claudemesh/protocol/wire/operations";
import type { BrokerContext } from "../context.ts";
import { type Handlers, ok, pageLimit } from "./handler.ts";
import { admitCreation } from "./mesh-caps.ts";

/** As many as an invite holds. */
const inviteBrokersMax = 16;

export const memberHandlers = {
  "members.list": async (broker, { member }, input: PageInput) => {
    const page = await broker.members.listMembers(member.meshId, input.after ?? "", pageLimit(input));
    const items = page.items.map(({ pubkey, name, role, joinedAt }) => ({ pubkey, name, role, joined_at: joinedAt }));
    return ok({ items, next_cursor: page.nextCursor ?? null });
  },

  "member.revoke": async (broker, { member }, input: MemberInput) => {
    await revokeMember({ store: broker.members, nowMs: broker.nowMs }, member, input.pubkey);
    broker.connections.cut(member.meshId, input.pubkey);
    broker.connections.destinationGone(member.meshId, { kind: "dm", ref: input.pubkey });
    await endWhatIsLeft(broker, member.meshId, input.pubkey);
    return ok({ pubkey: input.pubkey, revoked: true });
  },

  "member.role": async (broker, { member }, input: MemberRoleInput) => {
    // Also where a crash left a former owner's webhooks, they end before it is an owner again.
    if (input.role === "owner") await endWhatIsLeft(broker, member.meshId, input.pubkey);
    await setRole(broker.members, member, input.pubkey, input.role);
    if (input.role === "member") await endWhatIsLeft(broker, member.meshId, input.pubkey);
    return ok({ pubkey: input.pubkey, role: input.role });
  },

  "invite.create": async (broker, { mesh, member }, input: InviteInput) => {
    const { expires_in_s: lifetimeSeconds, name: memberName } = input;
    const ports = { ...issuingPorts(broker), admit: (id: string) => admitCreation(broker, mesh.id, "invites", id) };
    const { id, secret, expiresAt } = await createInvite(ports, member, { lifetimeSeconds, memberName });
    const named = memberName === undefined ? {} : { name: memberName };
    const urls = broker.brokerUrls();
    const brokers = urls.length > 1 ? { brokers: urls.slice(0, inviteBrokersMax) } : {};
    const pinned = broker.pinnedCertificate();
    const certificate = pinned === undefined ? {} : { cert_sha256: pinned };
    const destination = {
      broker: broker.publicUrl(),
      mesh: mesh.name,
      mesh_id: mesh.id,
      broker_key: broker.key.publicKey,
    };
    const invite = encodeInvite({ ...destination, secret, ...named, ...brokers, ...certificate });
    return { status: 201, body: { invite, invite_id: id, expires_at: expiresAt, ...named } };
  },

  "invite.list": async (broker, { member }, input: PageInput) => {
    const ports = { store: broker.members, nowMs: broker.nowMs };
    const page = await listInvites(ports, member, input.after ?? "", pageLimit(input));
    return ok({ items: page.items.map(inviteBody), next_cursor: page.nextCursor ?? null });
  },

  "invite.revoke": async (broker, { member }, input: InviteIdInput) => {
    await revokeInvite({ store: broker.members, nowMs: broker.nowMs }, member, input.invite_id);
    return ok({ invite_id: input.invite_id, revoked: true });
  },

  "token.create": async (broker, { member, sessions }, input: TokenInput) => {
    // Over HTTP it is a token that asks: one that leaks could make others, which live on when it is revoked.
    if (sessions === undefined) {
      throw new MeshError(
        "forbidden",
        "A token makes no tokens; `claudemesh mesh token` makes one with the member's key.",
      );
    }
    const ports = {
      ...issuingPorts(broker),
      admit: (id: string) => admitCreation(broker, member.meshId, "tokens", id),
    };
    const { token, tokenId } = await createToken(ports, member, input.label ?? "");
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
    await revokeToken(issuingPorts(broker), member, input.token_id);
    return ok({ token_id: input.token_id, revoked: true });
  },
} satisfies Handlers;

/** Of what a former member or a former owner had; of a member or an owner it takes nothing. */
function endWhatIsLeft(broker: BrokerContext, meshId: string, pubkey: string): Promise<void> {
  return endMembership({ store: broker.messages.memberships, nowMs: broker.nowMs }, { meshId, pubkey });
}

function inviteBody(invite: ListedInvite): Record<string, unknown> {
  return {
    invite_id: invite.id,
    state: invite.state,
    name: invite.memberName ?? null,
    created_by: invite.createdBy,
    created_at: invite.createdAt,
    expires_at: invite.expiresAt,
    used_by: invite.usedBy ?? null,
    used_at: invite.usedAt ?? null,
    revoked_at: invite.revokedAt ?? null,
  };
}

function issuingPorts(broker: BrokerContext) {
  return { store: broker.members, nowMs: broker.nowMs, nextId: broker.nextId };
}
