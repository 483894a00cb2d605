// The certificate and key that a broker shows to its clients: read from two files at start, and again when it is asked
// to. What cannot be used is found here, before any client would find it.
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import type { TlsIdentity } from "@claudemesh/http/server";
import { type BrokerConfig, BrokerConfigError } from "./config.ts";

/** Undefined where the broker serves plain HTTP. */
export function readTlsIdentity({ tlsCert, tlsKey }: BrokerConfig): TlsIdentity | undefined {
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined) {
    throw new BrokerConfigError("--tls-cert and --tls-key go together; give both, or none for plain HTTP.");
  }
  const cert = readPem(tlsCert, "--tls-cert");
  const identity = { cert, key: readPem(tlsKey, "--tls-key") };
  try {
    createSecureContext(identity);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new BrokerConfigError(`${tlsCert} and ${tlsKey} are not a certificate and its key in PEM: ${why}`);
  }
  return identity;
}

/**
 * The SHA-256 of the chain's last certificate where that signed itself: no public authority vouches for it, so an invite
 * names it. Undefined where the chain ends at a public authority.
 */
export function selfSignedFingerprint({ cert }: Pick<TlsIdentity, "cert">): string | undefined {
  const last = cert.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g)?.at(-1);
  if (last === undefined) return undefined;
  const certificate = new X509Certificate(last);
  const isSelfSigned = certificate.subject === certificate.issuer && certificate.verify(certificate.publicKey);
  return isSelfSigned ? certificate.fingerprint256.replaceAll(":", "").toLowerCase() : undefined;
}

function readPem(path: string, flag: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new BrokerConfigError(`${flag} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}
