// What every handler is: who asks, and the few words that all answers are made of.
import type { Member, Mesh, PlainMember } from "@claudemesh/members/ports";
import type { LookUp } from "@claudemesh/messages/services/accept";
import { MeshError } from "@claudemesh/protocol/errors";
import type { Answer } from "@claudemesh/protocol/messages/accept-result";
import { limits } from "@claudemesh/protocol/messages/limits";
import { isName } from "@claudemesh/protocol/messages/names";
import type { OperationName } from "@claudemesh/protocol/wire/operations";
import type { PriorLookUp } from "@claudemesh/registrar/services/register";
import type { BrokerContext } from "../context.ts";
import type { ConnectionSessions } from "../sync/connection-sessions.ts";

/** Who asks, checked by the transport. */
export type Caller = {
  readonly mesh: Mesh;
  readonly member: PlainMember;
  /** The sessions of spaces that its connection holds; undefined: it asks over HTTP. */
  readonly sessions?: ConnectionSessions;
  /** B0 of its send, begun while it was asked for. */
  readonly lookUp?: LookUp;
  /** The same for the key of its registration. */
  readonly priorLookUp?: PriorLookUp;
};

/** What only an owner may, or what shows an owner more. A handler of any other operation does not get to see a role. */
const roleOperations = [
  "member.revoke",
  "member.role",
  "message.state",
  "mesh.set",
  "invite.create",
  "invite.list",
  "invite.revoke",
  "registrar.approve",
  "registrar.approvals",
  "registrar.revoke",
  "registrar.compensate",
  "registrar.audit",
  "space.policy",
  "topic.delete",
  "webhook.create",
  "webhook.list",
  "webhook.delete",
  "webhook.deliveries",
  "webhook.replay",
] as const satisfies readonly OperationName[];

export type RoleOperation = (typeof roleOperations)[number];

const dependsOnRole: ReadonlySet<OperationName> = new Set(roleOperations);

export function isRoleOperation(name: OperationName): name is RoleOperation {
  return dependsOnRole.has(name);
}

/** Who asks for something that depends on the role, which is read when it is asked for. */
type RoleCaller = Caller & { readonly member: Member };

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
