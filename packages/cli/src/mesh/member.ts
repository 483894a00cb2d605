// Calls to the broker as the member of this home, for commands that the daemon does not carry. What makes a connection is
// imported when one is made: a file of commands holds some that need none.

import type { BrokerCall } from "@claudemesh/client/broker";
import type { BrokerTrust } from "@claudemesh/client/broker-trust";
import { type MeshConfig, type MeshPaths, readMeshConfig } from "@claudemesh/client/home";
import { MeshError } from "@claudemesh/protocol/errors";
import { isPublicKey } from "@claudemesh/protocol/messages/names";
import type { CommonOptions } from "../command.ts";
import { type NameOf, namesAmong } from "../output/members.ts";
import type { Shell } from "../shell.ts";

export async function asMember<T>(shell: Shell, paths: MeshPaths, use: (call: BrokerCall) => Promise<T>): Promise<T> {
  const [{ withBroker }, { identityOf, readKeyFile }, { readKnownBrokers }] = await Promise.all([
    import("@claudemesh/client/broker"),
    import("@claudemesh/client/keys"),
    import("@claudemesh/client/internal/known-brokers"),
  ]);
  const config = readMeshConfig(paths);
  const identity = identityOf(readKeyFile(paths.keypair), config.id);
  const trust = await homeTrust(shell, paths, config);
  const brokers = readKnownBrokers(paths, config);
  const agent = `claudemesh-cli/${shell.version}`;
  return withBroker({ broker: config.broker, brokers, identity, agent, trust }, use);
}

/** Which broker this home believes; the first one that it meets is kept, and the user hears of it. */
export async function homeTrust(shell: Shell, paths: MeshPaths, config: MeshConfig): Promise<BrokerTrust> {
  const { trustOfHome } = await import("@claudemesh/client/home-trust");
  const tell = (key: string, end: string) =>
    shell.err(`This home knew no key of its broker. It is ${key}; compare it with an owner's. ${end}`);
  return trustOfHome(paths, config, {
    onKept: (key) => tell(key, "From now on no other one is trusted."),
    onUnkept: (key) => tell(key, `It could not be written to ${paths.config}.`),
  });
}

type PageBody<Item> = { readonly items: readonly Item[]; readonly next_cursor: string | null };

/** Every item of a paged operation. Bounded by what a mesh can hold, not by us: a list is read to its end. */
export async function readAll<Item>(
  call: BrokerCall,
  operation:
    | "members.list"
    | "topic.list"
    | "invite.list"
    | "token.list"
    | "webhook.list"
    | "registrar.approvals"
    | "registrar.registrations"
    | "registrar.audit",
): Promise<Item[]> {
  const items: Item[] = [];
  let after: string | undefined;
  do {
    const page = (await call(operation, { limit: 1000, ...(after === undefined ? {} : { after }) })) as PageBody<Item>;
    items.push(...page.items);
    after = page.next_cursor ?? undefined;
  } while (after !== undefined);
  return items;
}

/** Of a member given by its public key, or by a name that only one member has. */
export async function findMemberKey(call: BrokerCall, member: string): Promise<string> {
  if (isPublicKey(member)) return member;
  const members = await readAll<{ pubkey: string; name: string }>(call, "members.list");
  const candidates = members.filter(({ name }) => name === member).map(({ pubkey }) => pubkey);
  const [only, ...others] = candidates;
  if (only === undefined) throw new MeshError("not_found", `There is no member called ${member}.`);
  if (others.length > 0) throw new MeshError("destination_ambiguous", undefined, { candidates });
  return only;
}

/**
 * The names of the mesh's members, for a table that shows keys otherwise. Only people see them: with --json the broker is not
 * asked. Where it cannot be asked, or this home has no keys to ask it with, keys are shown by their beginnings.
 */
export async function readNames(shell: Shell, paths: MeshPaths, { json }: CommonOptions): Promise<NameOf> {
  if (json === true) return namesAmong([]);
  try {
    const members = await asMember(shell, paths, (call) =>
      readAll<{ pubkey: string; name: string }>(call, "members.list"),
    );
    return namesAmong(members);
  } catch (error) {
    if (shell.env.CLAUDEMESH_DEBUG !== undefined) shell.err(`claudemesh: no names of members: ${String(error)}`);
    return namesAmong([]);
  }
}
