// Ends what is still due to a revoked member or a former owner, in steps that are short enough not to hold up accepts.
import type { FormerMember, MembershipStore } from "../ports/memberships.ts";

type Ports = { readonly store: MembershipStore; readonly nowMs: () => number };

const rowsPerStep = 1_000;
const membersPerStep = 100;

export async function endMembership(ports: Ports, former: FormerMember): Promise<void> {
  while ((await ports.store.end(former, ports.nowMs(), rowsPerStep)) > 0);
}

/** For members that were revoked, or made plain members, by a process that died before it had ended everything. */
export async function endUnfinishedMemberships(ports: Ports): Promise<void> {
  for (const former of await ports.store.unfinished(membersPerStep)) await endMembership(ports, former);
}
