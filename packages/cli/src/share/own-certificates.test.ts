// Certificates in a home: made once, kept, renewed before they end, private.
import { X509Certificate } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ensureOwnCertificates } from "./own-certificates.ts";

const nowMs = Date.parse("2026-11-18T12:00:00Z");
const dayMs = 86_400_000;
let home: string;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "own-certificates-"));
});
afterEach(() => rmSync(home, { recursive: true }));

describe("the certificates of a shared broker", () => {
  it("stay as they are when it starts again", () => {
    const first = ensureOwnCertificates(home, ["localhost", "10.0.0.5"], nowMs);
    const cert = readFileSync(first.cert, "utf8");
    const again = ensureOwnCertificates(home, ["10.0.0.5"], nowMs + 300 * dayMs);
    expect(again).toEqual({ ...first, renewed: false });
    expect(readFileSync(again.cert, "utf8")).toBe(cert);
  });

  it.each([
    ["an address is new", ["localhost", "10.0.0.6"], 0],
    ["the certificate ends within 30 days", ["localhost"], 368],
    ["the certificate has ended", ["localhost"], 500],
  ])("are renewed under the same authority where %s", (_, hosts, days) => {
    const first = ensureOwnCertificates(home, ["localhost"], nowMs);
    const later = ensureOwnCertificates(home, hosts, nowMs + days * dayMs);
    expect(later).toMatchObject({ renewed: true, fingerprint: first.fingerprint, authority: first.authority });
    const server = new X509Certificate(readFileSync(later.cert, "utf8"));
    expect(server.verify(new X509Certificate(first.authority).publicKey)).toBe(true);
    expect(server.validToDate.getTime()).toBeGreaterThan(nowMs + (days + 300) * dayMs);
  });

  it("are made again where a crash left a key without its certificate", () => {
    const first = ensureOwnCertificates(home, ["localhost"], nowMs);
    const other = ensureOwnCertificates(mkdtempSync(join(home, "other-")), ["localhost"], nowMs);
    writeFileSync(first.key, readFileSync(other.key, "utf8"));
    expect(ensureOwnCertificates(home, ["localhost"], nowMs)).toMatchObject({
      renewed: true,
      fingerprint: first.fingerprint,
    });
  });

  it("are readable by their owner alone", () => {
    ensureOwnCertificates(home, ["localhost"], nowMs);
    const folder = join(home, "broker", "tls");
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    for (const file of readdirSync(folder)) expect(statSync(join(folder, file)).mode & 0o777, file).toBe(0o600);
  });

  it("refuse an authority that cannot be read, instead of making another behind the invites", () => {
    ensureOwnCertificates(home, ["localhost"], nowMs);
    writeFileSync(join(home, "broker", "tls", "authority.pem"), "no certificate");
    expect(() => ensureOwnCertificates(home, ["localhost"], nowMs)).toThrow(/put it back from a backup/);
  });
});
