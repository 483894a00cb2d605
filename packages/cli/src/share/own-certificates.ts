// The certificates of a broker that is shared without an operator's certificate, in <home>/broker/tls, 0600 each. The
// authority is made once and lasts: its fingerprint is in every invite and must stay what it is. The server's certificate
// is made anew from it when this machine's names or addresses have changed, or before it ends.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { existsSync } from "node:fs";
import { isIP } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { ensurePrivateDir } from "@claudemesh/client/home";
import { readPrivateFile, replacePrivateFile } from "@claudemesh/client/internal/private-files";
import { makeAuthority, makeServerCertificate } from "./certificate.ts";

const dayMs = 86_400_000;
const authorityDays = 365 * 20;
/** What browsers and operating systems accept at most of a server's certificate. */
const serverDays = 397;
const renewBeforeDays = 30;
/** Machines that join may have a clock that is behind. */
const backdateMs = dayMs;

export type OwnCertificates = {
  /** Paths of PEM files for the broker: the server's certificate followed by its authority, and its key. */
  readonly cert: string;
  readonly key: string;
  /** The authority as PEM, and the SHA-256 of its DER form as 64 hex digits: what an invite names. */
  readonly authority: string;
  readonly fingerprint: string;
  /** True where the server's certificate was made in this call. */
  readonly renewed: boolean;
};

export function ensureOwnCertificates(home: string, hosts: readonly string[], nowMs: number): OwnCertificates {
  const folder = join(home, "broker", "tls");
  ensurePrivateDir(folder);
  const authority = ensureAuthority(folder, nowMs);
  const [cert, key] = [join(folder, "server-cert.pem"), join(folder, "server-key.pem")];
  const renewed = !isUsable(cert, key, authority.certificate, hosts, nowMs);
  if (renewed) {
    const made = makeServerCertificate(
      { commonName: "claudemesh broker", hosts, ...validity(nowMs, serverDays) },
      { commonName: authority.commonName, key: createPrivateKey(authority.key) },
    );
    // The key first: a crash in between leaves a pair that does not fit and is made again.
    replacePrivateFile(key, made.key);
    replacePrivateFile(cert, made.certificate + authority.certificate);
  }
  const fingerprint = fingerprintOf(new X509Certificate(authority.certificate));
  return { cert, key, authority: authority.certificate, fingerprint, renewed };
}

/** 64 lower-case hex digits. */
export function fingerprintOf(certificate: X509Certificate): string {
  return certificate.fingerprint256.replaceAll(":", "").toLowerCase();
}

function ensureAuthority(folder: string, nowMs: number) {
  const path = join(folder, "authority.pem");
  if (!existsSync(path)) {
    const commonName = `claudemesh of ${hostname().slice(0, 40)}`;
    const made = makeAuthority({ commonName, ...validity(nowMs, authorityDays) });
    // One file, so that key and certificate cannot come apart.
    replacePrivateFile(path, made.certificate + made.key);
  }
  const text = readPrivateFile(path);
  const [certificate = "", key = ""] = text.match(/-----BEGIN [A-Z ]+-----[^-]+-----END [A-Z ]+-----\n?/g) ?? [];
  try {
    const commonName = new X509Certificate(certificate).subject.replace(/^CN=/, "");
    createPrivateKey(key);
    return { certificate, key, commonName };
  } catch (error) {
    const advice = "put it back from a backup, or move it away and invite the other machines again";
    throw new Error(`${path} holds no certificate with its key; ${advice}.`, { cause: error });
  }
}

function isUsable(cert: string, key: string, authority: string, hosts: readonly string[], nowMs: number): boolean {
  if (!existsSync(cert) || !existsSync(key)) return false;
  try {
    const server = new X509Certificate(readPrivateFile(cert));
    return (
      server.verify(new X509Certificate(authority).publicKey) &&
      server.checkPrivateKey(createPrivateKey(readPrivateFile(key))) &&
      server.validToDate.getTime() - nowMs > renewBeforeDays * dayMs &&
      server.validFromDate.getTime() <= nowMs &&
      hosts.every((host) => (isIP(host) === 0 ? server.checkHost(host) : server.checkIP(host)) !== undefined)
    );
  } catch {
    // Unreadable files are replaced like files that have ended.
    return false;
  }
}

function validity(nowMs: number, days: number): { readonly notBefore: Date; readonly notAfter: Date } {
  return { notBefore: new Date(nowMs - backdateMs), notAfter: new Date(nowMs + days * dayMs) };
}
