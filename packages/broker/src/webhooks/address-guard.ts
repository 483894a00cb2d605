// Which addresses a broker posts to for a webhook. A webhook's address is chosen by a member, and the broker stands
// where members do not: in its operator's network. So only addresses that any host on the internet could reach pass.
import { BlockList, isIP } from "node:net";

/** Not globally reachable, or of another meaning than the address of one host. */
const refusedIpv4: readonly [address: string, prefix: number][] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  // A cloud's metadata service that has no private address.
  ["168.63.129.16", 32],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
];

/** Of IPv6 only global unicast passes, less what tunnels to IPv4 or is for documentation. */
const allowedIpv6: readonly [address: string, prefix: number][] = [["2000::", 3]];
const refusedIpv6: readonly [address: string, prefix: number][] = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
];

const blockList = (family: "ipv4" | "ipv6", subnets: readonly [string, number][]) => {
  const list = new BlockList();
  for (const [address, prefix] of subnets) list.addSubnet(address, prefix, family);
  return list;
};
const refused4 = blockList("ipv4", refusedIpv4);
const allowed6 = blockList("ipv6", allowedIpv6);
const refused6 = blockList("ipv6", refusedIpv6);

/** What is no IP address at all is not public. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !refused4.check(address, "ipv4");
  // An IPv4 address in IPv6 clothes lies outside of what is allowed.
  return family === 6 && allowed6.check(address, "ipv6") && !refused6.check(address, "ipv6");
}

/** The address that a URL names itself, without any name to be looked up. */
function literalAddressOf(url: URL): string | undefined {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  return isIP(host) === 0 ? undefined : host;
}

/** Whether it can be said without looking anything up that this URL leads to a private address. */
export function isPlainlyPrivate(url: URL): boolean {
  const literal = literalAddressOf(url);
  if (literal !== undefined) return !isPublicAddress(literal);
  const host = url.hostname.replace(/\.$/, "").toLowerCase();
  return host === "localhost" || host.endsWith(".localhost");
}
