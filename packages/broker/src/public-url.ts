// Where clients are told to find a broker. A broker that listens on every address of its host must not say so: 0.0.0.0
// means another host to each that reads it.
import { networkInterfaces } from "node:os";

export type Address = { readonly family: string; readonly address: string; readonly internal: boolean };

export function isUnspecified(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, "");
  return bare === "0.0.0.0" || (bare.includes(":") && /^[0:]+$/.test(bare.replace(/::ffff:0\.0\.0\.0$/i, "::")));
}

/** The address that other hosts of this network most likely reach; the loopback where this host has no other. */
export function reachableHost(
  addresses: readonly Address[] = Object.values(networkInterfaces()).flatMap((each) => each ?? []),
): string {
  const outside = addresses.filter(({ internal, address }) => !internal && !/^(fe80|169\.254)/i.test(address));
  const best = outside.find(({ family }) => family === "IPv4") ?? outside[0];
  if (best === undefined) return "127.0.0.1";
  return best.family === "IPv6" ? `[${best.address}]` : best.address;
}
