// Certificates by what others make of them: Node's own reader, a TLS handshake, and openssl where it is there.
import { execFileSync } from "node:child_process";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, createServer } from "node:tls";
import { describe, expect, it } from "vitest";
import { makeAuthority, makeServerCertificate } from "./certificate.ts";

const commonName = "claudemesh of alice-laptop";
const authorityYears = { notBefore: new Date("2026-01-01T00:00:00Z"), notAfter: new Date("2055-06-01T12:00:00Z") };
const serverDays = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 86_400_000) };
const hosts = ["localhost", "alice-laptop", "127.0.0.1", "::1", "2001:db8::17", "192.168.7.9"];

function made() {
  const authority = makeAuthority({ commonName, ...authorityYears });
  const server = makeServerCertificate(
    { commonName: "claudemesh broker", ...serverDays, hosts },
    { commonName, key: createPrivateKey(authority.key) },
  );
  return { authority, server };
}

describe("a certificate of our own making", () => {
  it("is signed by its authority, for the hosts that were asked for and no others", () => {
    const { authority, server } = made();
    const [ca, leaf] = [new X509Certificate(authority.certificate), new X509Certificate(server.certificate)];
    expect(leaf.verify(ca.publicKey)).toBe(true);
    expect(leaf.checkIssued(ca)).toBe(true);
    expect(ca.verify(ca.publicKey)).toBe(true);
    expect(ca.ca).toBe(true);
    expect(leaf.ca).toBe(false);
    expect(leaf.checkPrivateKey(createPrivateKey(server.key))).toBe(true);
    expect(ca.subject).toBe(`CN=${commonName}`);
    expect(leaf.checkHost("alice-laptop")).toBe("alice-laptop");
    for (const address of hosts.slice(2)) expect(leaf.checkIP(address), address).toBeDefined();
    expect(leaf.checkHost("mallory-laptop")).toBeUndefined();
    expect(leaf.checkIP("192.168.7.8")).toBeUndefined();
    expect(ca.validToDate.toISOString()).toBe("2055-06-01T12:00:00.000Z");
  });

  it.each(["localhost", "127.0.0.1"])(
    "is accepted by a TLS client that trusts the authority and dials %s",
    async (host) => {
      const { authority, server } = made();
      expect(await handshake(host, server, authority.certificate)).toBe("authorized");
      expect(await handshake(host, server, makeAuthority({ commonName, ...authorityYears }).certificate)).not.toBe(
        "authorized",
      );
    },
  );

  it("is accepted by openssl, for a server's purpose alone", () => {
    const folder = mkdtempSync(join(tmpdir(), "certificate-"));
    try {
      const { authority, server } = made();
      const [ca, leaf] = [join(folder, "ca.pem"), join(folder, "leaf.pem")];
      writeFileSync(ca, authority.certificate);
      writeFileSync(leaf, server.certificate);
      const verify = (...more: string[]) =>
        execFileSync("openssl", ["verify", "-x509_strict", "-CAfile", ca, ...more, leaf], { stdio: "pipe" }).toString();
      expect(verify("-purpose", "sslserver", "-verify_ip", "2001:db8::17")).toContain("OK");
      expect(() => verify("-purpose", "sslclient")).toThrow();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

function handshake(host: string, { certificate, key }: { certificate: string; key: string }, ca: string) {
  const server = createServer({ cert: certificate, key });
  return new Promise<string>((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      const socket = connect({ host, port, ca, ...(host === "127.0.0.1" ? {} : { servername: host }) });
      const end = (result: string) => {
        socket.destroy();
        server.close();
        resolve(result);
      };
      socket.on("secureConnect", () => end(socket.authorized ? "authorized" : String(socket.authorizationError)));
      socket.on("error", (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
    });
  });
}
