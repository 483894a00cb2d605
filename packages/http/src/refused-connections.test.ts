// Connections that never become a request: however their peers go on, the server lets go of them.
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { makeCertificate } from "../../../tests/support/self-signed.ts";
import { createHttpServer, type TlsIdentity } from "./server.ts";

const timeouts = { headersMs: 100, requestMs: 200, answerMs: 10_000, partingMs: 100, checkMs: 20 };

type Dialled = {
  readonly peer: Socket;
  /** Resolves when the server has let go of the connection. */
  readonly letGo: Promise<unknown>;
};

/** A peer that never closes its side, at a server whose bounds are reached soon. */
async function dial(tls?: TlsIdentity): Promise<Dialled> {
  const bounds = { maxBodyBytes: 4_096, maxInFlight: 3, timeouts, ...(tls && { tls }) };
  const server = createHttpServer({ ...bounds, busyCode: "busy", onError: () => undefined });
  server.post("/things", async (request) => ({ got: request.body }));
  const letGo = new Promise((resolve) => {
    server.server.once("connection", (socket: Socket) => socket.once("close", resolve));
  });
  await server.listen({ host: "127.0.0.1", port: 0 });
  const { port } = server.server.address() as AddressInfo;
  const peer = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  onTestFinished(async () => {
    peer.destroy();
    await server.close();
  });
  peer.on("error", () => undefined);
  await once(peer, "connect");
  return { peer, letGo };
}

function makeIdentity(): TlsIdentity {
  const folder = mkdtempSync(join(tmpdir(), "cm-http-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const { cert, key } = makeCertificate(folder, "localhost");
  return { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };
}

async function hear(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

describe("where TLS is spoken, a connection", () => {
  test.for([
    ["says nothing", ""],
    ["stops in the midst of its handshake", "\x16\x03\x01\x02\x00\x01"],
    ["speaks HTTP in clear", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"],
  ] as const)("that %s is cut off in time", async ([, bytes]) => {
    const { peer, letGo } = await dial(makeIdentity());
    peer.write(bytes, "latin1");
    expect(await hear(peer)).not.toContain("HTTP/1.1");
    await letGo;
  });
});

describe("a connection whose peer keeps its side open", () => {
  const head = "POST /things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";

  test.for([
    ["headers too slow to wait for", `${head}X-Slow: `, 408],
    ["a body too slow to wait for", `${head}Content-Length: 1000\r\n\r\n{`, 408],
    ["no HTTP", "nonsense\r\n\r\n", 400],
    [
      "a last request that was too large",
      `${head}Connection: close\r\nContent-Length: 9999\r\n\r\n${"x".repeat(9_999)}`,
      413,
    ],
  ] as const)("after %s is let go a while after its answer", async ([, bytes, status]) => {
    const { peer, letGo } = await dial();
    peer.write(bytes);
    expect(await hear(peer)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    await letGo;
  });
});
