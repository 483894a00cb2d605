// A broker with a certificate: clients that trust it come in over HTTPS and WSS, and it shows a new one when told to.
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { connect, type PeerCertificate, type TLSSocket } from "node:tls";
import { describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { makeTemporaryFolder, startTestBroker } from "../../../tests/support/broker-harness.ts";
import { makeCertificate } from "../../../tests/support/self-signed.ts";
import { BrokerConfigError } from "./config.ts";

function get(url: string, ca: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { ca, agent: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    asked.on("error", reject);
    asked.end();
  });
}

/** Whom a new connection meets. */
function certificateAt(url: string): Promise<PeerCertificate["subject"]["CN"]> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket: TLSSocket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().subject.CN);
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

describe("a broker with --tls-cert and --tls-key", () => {
  test("serves HTTPS and WSS to who trusts its certificate, and to nobody in clear", async () => {
    const folder = makeTemporaryFolder();
    const { cert, key } = makeCertificate(folder, "first");
    const broker = await startTestBroker({ folder, flags: { "tls-cert": cert, "tls-key": key } });
    expect(broker.url).toMatch(/^https:\/\/127\.0\.0\.1:[0-9]+$/);
    const ca = readFileSync(cert, "utf8");
    expect(await get(`${broker.url}/healthz`, ca)).toBe(200);
    await expect(fetch(`${broker.url}/healthz`)).rejects.toMatchObject({ cause: { code: expect.any(String) } });
    await expect(fetch(broker.url.replace("https:", "http:"))).rejects.toThrow();

    const socket = new WebSocket(`${broker.url.replace("https:", "wss:")}/v1/connect`, { ca });
    const first = await new Promise<string>((resolve, reject) => {
      socket.once("message", (data) => resolve(String(data)));
      socket.once("error", reject);
    });
    expect(JSON.parse(first)).toMatchObject({ type: "challenge", protocol: 1 });
    socket.terminate();
  });

  test("shows new connections a renewed certificate, and keeps the old one where the new cannot be used", async () => {
    const folder = makeTemporaryFolder();
    const [first, second] = [makeCertificate(folder, "first"), makeCertificate(folder, "second")];
    const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
    const use = (from: { cert: string; key: string }) => {
      copyFileSync(from.cert, cert);
      copyFileSync(from.key, key);
    };
    use(first);
    const broker = await startTestBroker({ folder, flags: { "tls-cert": cert, "tls-key": key } });
    expect(await certificateAt(broker.url)).toBe("first");
    use(second);
    broker.reloadTls();
    expect(await certificateAt(broker.url)).toBe("second");
    copyFileSync(first.key, key);
    broker.reloadTls();
    expect(await certificateAt(broker.url)).toBe("second");
  });

  test("does not start with half of it, or with what is no certificate and its key", async () => {
    const folder = makeTemporaryFolder();
    const [first, second] = [makeCertificate(folder, "first"), makeCertificate(folder, "second")];
    const text = join(folder, "text.pem");
    writeFileSync(text, "no certificate");
    const wrong = [
      [{ "tls-cert": first.cert }, "go together"],
      [{ "tls-key": first.key }, "go together"],
      [{ "tls-cert": join(folder, "none.pem"), "tls-key": first.key }, "--tls-cert cannot be read"],
      [{ "tls-cert": first.cert, "tls-key": second.key }, "are not a certificate and its key"],
      [{ "tls-cert": text, "tls-key": first.key }, "are not a certificate and its key"],
    ] as const;
    for (const [flags, message] of wrong) {
      const starting = startTestBroker({ flags });
      await expect(starting).rejects.toThrow(BrokerConfigError);
      await expect(starting).rejects.toThrow(message);
    }
  });
});
