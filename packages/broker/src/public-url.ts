// The address at which clients find a broker. A broker that listens on every address of its host must not say so: 0.0.0.0
// means another host to each that reads it.
import { networkInterfaces } from "node:os";

export type Address = { readonly family: string; readonly address: string; readonly internal: boolean };

export function isUnspecified(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, "");
  return bare === "0.0.0.0" || (bare.includes(":") && /^[0:]+$/.test(bare.replace(/::ffff:0\.0\.0\.0$/i, "::")));
}

/** Bridges of containers and virtual machines, which other hosts cannot reach. */
const virtualName = /^(?:docker|br-|veth|virbr|vmnet|vboxnet|cni|flannel|podman)/;

type Interfaces = Readonly<Record<string, readonly Address[] | undefined>>;

/**
 * The addresses under which other hosts may reach this one, the most likely first: real interfaces before virtual ones, IPv4
 * before IPv6, private networks before public ones, because the other host is most often in the same network.
 */
export function reachableAddresses(interfaces: Interfaces = networkInterfaces()): string[] {
  const candidates = Object.entries(interfaces).flatMap(([name, addresses]) =>
    (addresses ?? [])
      .filter(({ internal, address }) => !internal && !/^(?:169\.254\.|fe[89ab])/i.test(address))
      .map((each) => ({ address: each.address, rank: rankOf(name, each) })),
  );
  return [...new Set(candidates.toSorted((a, b) => a.rank - b.rank).map(({ address }) => address))];
}

function rankOf(name: string, { family, address }: Address): number {
  const isPrivate = /^(?:10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|f[cd])/i.test(address);
  return (virtualName.test(name) ? 4 : 0) + (family === "IPv6" ? 2 : 0) + (isPrivate ? 0 : 1);
}

/** As it stands in a URL; the loopback where this host has no other. */
export function reachableHost(interfaces: Interfaces = networkInterfaces()): string {
  const [best = "127.0.0.1"] = reachableAddresses(interfaces);
  return best.includes(":") ? `[${best}]` : best;
}
