// What `claudemesh up --share` adds to `up`: where the broker listens, under which address other machines reach it, and
// the certificates for that. Invites carry the address and the authority's fingerprint.
import { hostname } from "node:os";
import { isUnspecified, reachableAddresses } from "@claudemesh/broker/public-url";
import { isLoopbackHost } from "@claudemesh/protocol/wire/in-clear";
import { WrongUsage } from "../exit-codes.ts";
import { keepCertificateTexts } from "../mesh/trusted-certificates.ts";
import { ensureOwnCertificates } from "./own-certificates.ts";

export type Sharing = {
  /** Settings of the broker, by flag. */
  readonly flags: Readonly<Record<"listen" | "public-url" | "tls-cert" | "tls-key", string>>;
  readonly publicUrl: string;
  /** Further addresses under which other machines might reach this one. */
  readonly otherAddresses: readonly string[];
  /** Renews the certificate where that is due; true where it was made anew. */
  readonly renew: () => boolean;
};

const defaultPort = 7600;

/** The home trusts its own authority from now on, so that its own daemon can connect. */
export function prepareSharing(
  home: string,
  wish: { readonly listen: string | undefined; readonly publicUrl: string | undefined },
): Sharing {
  const addresses = reachableAddresses();
  const listen = wish.listen ?? `0.0.0.0:${defaultPort}`;
  const { host, port } = readListen(listen);
  const publicUrl = (wish.publicUrl ?? addressUrl(isUnspecified(host) ? addresses[0] : host, port)).replace(/\/+$/, "");
  if (!/^(?:https|wss):/.test(publicUrl)) {
    throw new WrongUsage("--public-url begins with https:// where the mesh is shared: the broker speaks TLS.");
  }
  const hosts = () => {
    const names = [hostname(), new URL(publicUrl).hostname.replace(/^\[|\]$/g, ""), isUnspecified(host) ? "" : host];
    const all = ["localhost", "127.0.0.1", "::1", ...names, ...reachableAddresses()];
    return [...new Set(all)].filter((name) => /^[A-Za-z0-9.:-]{1,253}$/.test(name));
  };
  const certificates = ensureOwnCertificates(home, hosts(), Date.now());
  keepCertificateTexts(home, [certificates.authority]);
  return {
    flags: { listen, "public-url": publicUrl, "tls-cert": certificates.cert, "tls-key": certificates.key },
    publicUrl,
    otherAddresses: wish.publicUrl === undefined ? addresses.slice(1) : [],
    renew: () => ensureOwnCertificates(home, hosts(), Date.now()).renewed,
  };
}

function readListen(listen: string): { readonly host: string; readonly port: number } {
  const [, host = "", port = ""] = /^(.+):([0-9]{1,5})$/.exec(listen) ?? [];
  const bare = host.replace(/^\[|\]$/g, "");
  if (bare === "" || isLoopbackHost(bare)) {
    throw new WrongUsage(
      "--share listens beyond this machine; give --listen 0.0.0.0:<port>, or an address of this host.",
    );
  }
  if (Number(port) === 0) {
    throw new WrongUsage(
      "--share takes a port that stays the same, because invites name it; give --listen 0.0.0.0:<port>.",
    );
  }
  return { host: bare, port: Number(port) };
}

function addressUrl(address: string | undefined, port: number): string {
  if (address === undefined) {
    const advice = "give the address under which they do with --public-url https://<host>:<port>";
    throw new WrongUsage(`This machine has no network address that other machines could reach; ${advice}.`);
  }
  return `https://${address.includes(":") ? `[${address}]` : address}:${port}`;
}
