// What every handler is: who asks, and the few words that all answers are made of.
import type { Member, Mesh } from "@claudemesh/members/ports";
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
  readonly member: Member;
  /** The sessions of spaces that its connection holds; undefined: it asks over HTTP. */
  readonly sessions?: ConnectionSessions;
};

export type Handler = (broker: BrokerContext, caller: Caller, input: never) => Promise<Answer>;

export type Handlers = { readonly [name in OperationName]?: Handler };

export const ok = (body: Record<string, unknown>): Answer => ({ status: 200, body });

export function pageLimit(input: { readonly limit?: number }): number {
  return input.limit ?? limits.pageItemsDefault;
}

export function checkName(name: string, field: string): string {
  if (!isName(name)) throw new MeshError("invalid_name", undefined, { field });
  return name;
}

export function requireOwner(member: Member, what: string): void {
  if (member.role !== "owner") throw new MeshError("forbidden", `Only an owner may ${what}.`);
}
