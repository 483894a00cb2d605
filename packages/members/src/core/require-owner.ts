// The one refusal for a caller that asks for what only an owner may do.
import { MeshError } from "@claudemesh/protocol/errors";
import type { Member } from "../ports.ts";

export function requireOwner(member: Member, what: string): void {
  if (member.role !== "owner") throw ownerOnly(what);
}

export function ownerOnly(what: string): MeshError {
  return new MeshError("forbidden", `Only an owner may ${what}.`);
}
