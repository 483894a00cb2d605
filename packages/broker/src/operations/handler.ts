// What every handler is: who asks, and the few words that all answers are made of.
// Why: docs/decisions/0133.
import type { Member, Mesh, PlainMember } from "@claudemesh/members/ports";
import type { LookUp } from "@claudemesh/messages/services/accept";
import { MeshError } from "@claudemesh/protocol/errors";
import type { Answer } from "@claudemesh/protocol/messages/accept-result";
import { limits } from "@claudemesh/protocol/messages/limits";
import { isName } from "@claudemesh/protocol/messages/names";
import type { OperationName } from "@claudemesh/protocol/wire/operations";
import type { BrokerContext } from "../context.ts";
import type { ConnectionSessions } from "../sync/connection-sessions.ts";

/** Who asks, checked by the transport. */
export type Caller = {
  readonly mesh: Mesh;
  readonly member: PlainMember;
  /** The sessions of spaces that its connection holds; undefined: it asks over HTTP. */
  readonly sessions?: ConnectionSessions;
  /** The look-up of its send's id, begun while its token was looked up. */
  readonly lookUp?: LookUp;
};

/**
 * What a connection's word is worth once it is open. A member that is revoked through another broker may be connected here
 * a little longer, and a role can change: `role` and `write` are asked of the store at every request, and a handler of
 * another operation does not get to see a role. `transaction`: what it writes asks for the member in its own transaction.
 * `read`: nothing is changed, and the connection ends within a second.
 */
const access = {
  send: "transaction",
  fate: "read",
  fence: "write",
  "message.state": "role",
  "destination.state": "read",
  "mesh.health": "read",
  "once.list": "read",
  "queue.list": "read",
  history: "read",
  search: "read",
  mentions: "read",
  // It says that a push was read, which was the reader's own.
  ack: "read",
  "queue.create": "write",
  "queue.lease": "transaction",
  "queue.ack": "transaction",
  "queue.nack": "transaction",
  "queue.parked": "read",
  "queue.revive": "transaction",
  "members.list": "read",
  "peers.list": "read",
  "profile.set": "write",
  "member.revoke": "role",
  "member.role": "role",
  "mesh.settings": "read",
  "mesh.set": "role",
  "invite.create": "role",
  "invite.list": "role",
  "invite.revoke": "role",
  "token.create": "write",
  "token.list": "read",
  "token.revoke": "write",
  "topic.create": "write",
  "topic.list": "read",
  "topic.delete": "role",
  "topic.subscribe": "write",
  "topic.unsubscribe": "write",
  "webhook.create": "role",
  "webhook.list": "role",
  "webhook.delete": "role",
  "webhook.deliveries": "role",
  "webhook.replay": "role",
  "once.claim": "transaction",
  "once.renew": "transaction",
  "once.record": "transaction",
  "once.resolve": "transaction",
  "once.get": "read",
  "registrar.approve": "role",
  "registrar.approvals": "role",
  "registrar.revoke": "role",
  "registrar.register": "transaction",
  "registrar.resolve": "read",
  "registrar.attempts": "read",
  "registrar.compensate": "role",
  "registrar.registrations": "read",
  "registrar.audit": "role",
  "space.create": "write",
  "space.list": "read",
  "space.policy": "role",
  "space.open": "transaction",
  "space.commit": "transaction",
  "space.verdict": "read",
  "space.watch": "read",
  "space.entity": "read",
  "space.query": "read",
  "space.log": "read",
  "space.invocation": "read",
  "space.branch.create": "transaction",
  "space.branch.delete": "transaction",
  "space.branches": "read",
  "space.merge.propose": "read",
  "space.diff": "read",
} as const satisfies Readonly<Record<OperationName, "role" | "write" | "transaction" | "read">>;

/** Whether what it writes asks for the member in its own transaction, so that no look before it says more. */
export function asksInTransaction(name: OperationName): boolean {
  return access[name] === "transaction";
}

type RoleOperation = {
  [Name in OperationName]: (typeof access)[Name] extends "role" ? Name : never;
}[OperationName];

/**
 * Reads that may bring much: pages, documents, what is searched. Each waits for a turn of the event loop of its own, in which
 * members take turns: any number of them can be asked for at once, and a store in this process answers without a pause.
 */
const ownTurn: ReadonlySet<OperationName> = new Set<OperationName>([
  "message.state",
  "mesh.health",
  "once.list",
  "queue.list",
  "queue.parked",
  "history",
  "search",
  "mentions",
  "members.list",
  "peers.list",
  "invite.list",
  "token.list",
  "topic.list",
  "webhook.list",
  "webhook.deliveries",
  "registrar.approvals",
  "registrar.attempts",
  "registrar.registrations",
  "registrar.audit",
  "space.list",
  "space.verdict",
  "space.entity",
  "space.query",
  "space.log",
  "space.invocation",
  "space.branches",
  "space.merge.propose",
  "space.diff",
]);

export function waitsForTurn(name: OperationName): boolean {
  return ownTurn.has(name);
}

/** Whether the member is looked up before the operation is run. Over HTTP its token has been looked up just now. */
export function asksForMember(name: OperationName, caller: Caller): boolean {
  return access[name] === "role" || (access[name] === "write" && caller.sessions !== undefined);
}

/** Who asks for something that depends on the role, which is read when it is asked for. */
export type RoleCaller = Caller & { readonly member: Member };

export type Handler<Name extends OperationName> = (
  broker: BrokerContext,
  caller: Name extends RoleOperation ? RoleCaller : Caller,
  input: never,
) => Promise<Answer>;

export type Handlers = { readonly [Name in OperationName]?: Handler<Name> };

export const ok = (body: Record<string, unknown>): Answer => ({ status: 200, body });

export function pageLimit(input: { readonly limit?: number }): number {
  return input.limit ?? limits.pageItemsDefault;
}

export function checkName(name: string, field: string): string {
  if (!isName(name)) throw new MeshError("invalid_name", undefined, { field });
  return name;
}
