// Which host is this, and is it the one that these keys were used on? Keys that were copied to a second host would make
// two daemons replace each other's connection for ever. The host's own id decides; a network address only helps where
// there is no id. Pure: reading the machine is in files/this-host.ts.
import { hash } from "node:crypto";

/** What a machine says of itself. Neither a boot id nor a host name: both change on the same machine. */
export type HostFacts = {
  readonly hostId: string | undefined;
  /** Of the first interface whose address belongs to its hardware. */
  readonly mac: string | undefined;
  /** The machine has an id and does not let us read it, so that its absence proves nothing. */
  readonly hostIdUnreadable: boolean;
};

/** What is stored of a host: hashes, because the id itself must not leave the machine. */
export type HostRecord = {
  readonly hostIdSha256: string | undefined;
  readonly macSha256: string | undefined;
  /** SHA-256 over id and address, as far as there are any; for people to compare. */
  readonly fingerprint: string | undefined;
};

export type HostVerdict = "same" | "changed" | "unknown";

/** What a start does on a host that has changed. */
export const clonePolicies = ["refuse", "warn", "allow"] as const;
export type ClonePolicy = (typeof clonePolicies)[number];

export function recordHost({ hostId, mac }: HostFacts): HostRecord {
  const known = (hostId ?? "") + (mac ?? "");
  return {
    hostIdSha256: hostId === undefined ? undefined : hash("sha256", hostId),
    macSha256: mac === undefined ? undefined : hash("sha256", mac),
    fingerprint: known === "" ? undefined : hash("sha256", known),
  };
}

/** Erring towards "changed" costs one command; erring towards "same" lets a copy start. */
export function compareHosts(stored: HostRecord, facts: HostFacts): HostVerdict {
  const current = recordHost(facts);
  if (stored.hostIdSha256 !== undefined) {
    if (current.hostIdSha256 !== undefined) return current.hostIdSha256 === stored.hostIdSha256 ? "same" : "changed";
    if (stored.macSha256 !== undefined && current.macSha256 === stored.macSha256) return "same";
    // A host keeps its id; one that has none is another, such as a container that was built from a copy.
    return facts.hostIdUnreadable ? "unknown" : "changed";
  }
  if (stored.macSha256 === undefined || current.macSha256 === undefined) return "unknown";
  return current.macSha256 === stored.macSha256 ? "same" : "changed";
}

/** What stands in the file after a start: this host as it is now, unless less is known of it than was. */
export function chooseRecord(stored: HostRecord, facts: HostFacts): HostRecord {
  const verdict = compareHosts(stored, facts);
  const current = recordHost(facts);
  const knowsNothing = stored.hostIdSha256 === undefined && stored.macSha256 === undefined;
  if (verdict === "changed" || (verdict === "unknown" && !knowsNothing)) return stored;
  const lost =
    (stored.hostIdSha256 !== undefined && current.hostIdSha256 === undefined) ||
    (stored.macSha256 !== undefined && current.macSha256 === undefined);
  return lost ? stored : current;
}

export type NetworkInterface = {
  readonly name: string;
  readonly mac: string;
  /** True where software made the interface, or its address was assigned by hand. */
  readonly isVirtual: boolean;
};

// Tunnels, bridges, containers, virtual machines and the like, where the system does not say so itself.
const virtualNames =
  /^(lo|docker|veth|br-|br[0-9]|bridge|virbr|vmnet|vboxnet|vnet|tun|tap|utun|wg|tailscale|zt|ppp|sit|gre|gif|stf|ipsec|ifb|dummy|bond|team|vlan|vxlan|geneve|macvlan|macvtap|cni|flannel|cali|cilium|kube|lxc|lxd|podman|awdl|llw|anpi|ap[0-9]|p2p|feth|can|vcan)/;

/** By name, so that the order in which a system lists its interfaces does not matter. */
export function chooseStableMac(interfaces: readonly NetworkInterface[]): string | undefined {
  return interfaces
    .filter(({ name, mac, isVirtual }) => !isVirtual && !virtualNames.test(name) && isHardwareMac(mac.toLowerCase()))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ mac }) => mac.toLowerCase())[0];
}

/** Six bytes that a manufacturer gave. Bit 0 of the first marks a group, bit 1 an address that was assigned locally. */
function isHardwareMac(mac: string): boolean {
  if (!/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/.test(mac) || mac === "00:00:00:00:00:00") return false;
  return (Number.parseInt(mac.slice(0, 2), 16) & 0b11) === 0;
}
