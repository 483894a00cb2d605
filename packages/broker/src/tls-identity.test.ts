// A broker with a certificate: clients that trust it come in over HTTPS and WSS, and it shows a new one after a reload.
import { once } from "node:events";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { connect, createServer, type PeerCertificate, type TLSSocket } from "node:tls";
import { describe, expect, onTestFinished, test } from "vitest";
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

/** What a connection agrees on that offers this suite of TLS 1.2 alone; undefined when it is refused. */
function suiteWith(url: string, suite: string): Promise<string | undefined> {
  const { hostname, port } = new URL(url);
  const options = { host: hostname, port: Number(port), rejectUnauthorized: false, maxVersion: "TLSv1.2" } as const;
  return new Promise((resolve) => {
    const socket = connect({ ...options, ciphers: `${suite}:@SECLEVEL=0` }, () => {
      resolve(socket.getCipher().name);
      socket.destroy();
    });
    socket.on("error", () => resolve(undefined));
  });
}

describe("a broker with --tls-cert and --tls-key", () => {
  test("serves HTTPS and WSS to clients that trust its certificate, and to none in clear", async () => {
    const folder = makeTemporaryFolder();
    const { cert, key } = makeCertificate(folder, "first");
    const broker = await startTestBroker({ folder, flags: { "tls-cert": cert, "tls-key": key } });
    expect(broker.url).toMatch(/^https:\/\/127\.0\.0\.1:[0-9]+$/);
    const ca = readFileSync(cert, "utf8");
    expect(await get(`${broker.url}/healthz`, ca)).toBe(200);
    await expect(fetch(`${broker.url}/healthz`)).rejects.toMatchObject({ cause: { code: expect.any(String) } });
    await expect(fetch(broker.url.replace("https:", "http:"))).rejects.toThrow();

    const socket = new WebSocket(`${broker.url.replace("https:", "wss:")}/v1/connect`, { ca });
    const connect = { type: "connect", protocol: 2, mesh_id: "0".repeat(36), nonce: "0a".repeat(32) };
    socket.once("open", () => socket.send(JSON.stringify(connect)));
    const first = await new Promise<string>((resolve, reject) => {
      socket.once("message", (data) => resolve(String(data)));
      socket.once("error", reject);
    });
    expect(JSON.parse(first)).toMatchObject({ type: "proof", protocol: 2, broker_key: broker.brokerKey });
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

  test("takes only suites that make new keys for each connection, after a reload too", async () => {
    const folder = makeTemporaryFolder();
    const files = makeCertificate(folder, "rsa", "rsa");
    const identity = { cert: readFileSync(files.cert), key: readFileSync(files.key) };
    // Without our bounds this machine would speak those suites: the refusals below are ours.
    const careless = createServer({ ...identity, ciphers: "DEFAULT:@SECLEVEL=0" }).listen(0, "127.0.0.1");
    onTestFinished(() => void careless.close());
    await once(careless, "listening");
    const { port } = careless.address() as AddressInfo;
    const broker = await startTestBroker({ folder, flags: { "tls-cert": files.cert, "tls-key": files.key } });
    for (const reload of [() => undefined, broker.reloadTls]) {
      reload();
      for (const suite of ["AES128-SHA", "AES256-GCM-SHA384", "ECDHE-RSA-AES128-SHA"]) {
        expect(await suiteWith(`https://127.0.0.1:${port}`, suite)).toBe(suite);
        expect(await suiteWith(broker.url, suite), suite).toBeUndefined();
      }
      expect(await suiteWith(broker.url, "ECDHE-RSA-AES128-GCM-SHA256")).toBe("ECDHE-RSA-AES128-GCM-SHA256");
    }
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
