// Certificates that this home trusts besides those of its Node: of a broker with a certificate of its operator's own
// making. Trusted by the whole process, which is one command or one daemon. NODE_EXTRA_CA_CERTS works as everywhere.
// Why: docs/decisions/0035.
import { X509Certificate } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { ensurePrivateDir } from "@claudemesh/client/home";
import { LocalFileError, replacePrivateFile } from "@claudemesh/client/internal/private-files";
import { keptCertificatesPath } from "./kept-certificates-path.ts";

const certificatePattern = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Trusts those of the files for as long as this process lives. */
export function trustCertificates(paths: readonly string[]): void {
  trust(paths.flatMap(readCertificates));
}

/** Trusts the file's certificates from now on, and in every later command and daemon of this home. */
export function keepCertificates(home: string, path: string): void {
  keepCertificateTexts(home, readCertificates(path));
}

/** The same for certificates that are given as PEM. */
export function keepCertificateTexts(home: string, given: readonly string[]): void {
  const kept = keptCertificatesPath(home);
  const known = existsSync(kept) ? readCertificates(kept) : [];
  const all = [...new Set([...known, ...given.map((text) => text.trim())])];
  ensurePrivateDir(home);
  if (all.length > known.length) replacePrivateFile(kept, `${all.join("\n")}\n`);
  trust(given);
}

function trust(certificates: readonly string[]): void {
  setDefaultCACertificates([...getCACertificates("default"), ...certificates]);
}

function readCertificates(path: string): string[] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new LocalFileError("unreadable", path, `${path} cannot be read; it should hold certificates in PEM.`, error);
  }
  const certificates = text.match(certificatePattern) ?? [];
  try {
    if (certificates.length === 0) throw new Error("no certificate is in it");
    for (const certificate of certificates) new X509Certificate(certificate);
  } catch (error) {
    throw new LocalFileError("unreadable", path, `${path} holds no certificate in PEM that can be read.`, error);
  }
  return certificates;
}
