// The socket server without a broker behind it: upgrades that are refused, and requests that never end.
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { Strangers } from "@claudemesh/http/strangers";
import type { Answer } from "@claudemesh/protocol/messages/accept-result";
import { pino } from "pino";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { createPeerKeys } from "../../../../tests/support/peer-keys.ts";
import { RawPeer } from "../../../../tests/support/raw-peer.ts";
import { brokerKeyOf, mintBrokerSeed } from "../broker-key.ts";
import { readBrokerConfig } from "../config.ts";
import type { BrokerContext } from "../context.ts";
import type { RunOperation } from "../operations/run-operation.ts";
import { ConnectionRegistry } from "./connection-registry.ts";
import { attachSocketServer, type SocketServer } from "./socket-server.ts";

const meshId = "0".repeat(36);
const keys = createPeerKeys();

type Members = Pick<BrokerContext["members"], "findMesh" | "findMember">;

const member = { meshId, pubkey: keys.pubkey, name: "alice", role: "owner" as const, joinedAt: 1, revoked: false };
const knowing: Members = { findMesh: async () => ({ id: meshId, name: "acme" }), findMember: async () => member };

/** Just enough of a broker to say hello to. */
function contextOf(members: Members): BrokerContext {
  const parts = {
    config: readBrokerConfig({}, {}, undefined),
    key: brokerKeyOf(mintBrokerSeed()),
    members: members as Partial<BrokerContext["members"]> as BrokerContext["members"],
    brokerUrls: () => [],
    connections: new ConnectionRegistry(),
    strangers: new Strangers(100),
    log: pino({ level: "silent" }),
    nowMs: Date.now,
  };
  return parts as Partial<BrokerContext> as BrokerContext;
}

async function serve(
  run: RunOperation,
  members = knowing,
): Promise<{ http: Server; sockets: SocketServer; url: string }> {
  const http = createServer();
  const sockets = attachSocketServer(http, contextOf(members), run);
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  onTestFinished(() => {
    sockets.stop();
    sockets.terminate();
    http.close();
  });
  return { http, sockets, url: `http://127.0.0.1:${(http.address() as AddressInfo).port}` };
}

const neverAsked: RunOperation = () => Promise.reject(new Error("no operation runs here"));

/** A connection that takes what is written and says nothing. */
function silentDuplex(written: string[]): Duplex {
  return new Duplex({
    read: () => undefined,
    write: (chunk: Buffer, _encoding, done) => {
      written.push(chunk.toString());
      done();
    },
  });
}

/** Everything that the server says until it ends its side. */
async function hear(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

function bodyOf(response: string): unknown {
  return JSON.parse(response.slice(response.indexOf("\r\n\r\n") + 4));
}

describe("an upgrade", () => {
  test("elsewhere is refused, and a peer that resets the connection then harms no other", async () => {
    const { http } = await serve(neverAsked);
    const written: string[] = [];
    const duplex = silentDuplex(written);
    http.emit("upgrade", { url: "/elsewhere?x=1" } as IncomingMessage, duplex, Buffer.alloc(0));
    expect(written.join("")).toMatch(/^HTTP\/1\.1 404 Not Found\r\ncontent-type: application\/json\r\n/);
    expect(bodyOf(written.join(""))).toMatchObject({ error: "not_found", retryable: false });
    const closed = new Promise((resolve) => duplex.on("close", resolve));
    // Without a listener this would be an uncaught exception.
    duplex.destroy(Object.assign(new Error("reset by peer"), { code: "ECONNRESET" }));
    await closed;
  });

  test("to a server that stops is refused", async () => {
    const { http, sockets } = await serve(neverAsked);
    sockets.stop();
    const written: string[] = [];
    http.emit("upgrade", { url: "/v1/connect" } as IncomingMessage, silentDuplex(written), Buffer.alloc(0));
    expect(written.join("")).toMatch(/^HTTP\/1\.1 503 /);
    expect(bodyOf(written.join(""))).toMatchObject({ error: "stopping", retryable: true });
  });

  test("that is refused leaves no socket behind, also when the peer goes on sending and keeps its side open", async () => {
    const { http, url } = await serve(neverAsked);
    const letGo = new Promise((resolve) => http.once("connection", (socket) => socket.once("close", resolve)));
    const peer = connect({ port: Number(new URL(url).port), host: "127.0.0.1", allowHalfOpen: true });
    onTestFinished(() => void peer.destroy());
    peer.on("error", () => undefined);
    const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    peer.write(`GET /elsewhere HTTP/1.1\r\nHost: x\r\n${upgrade}\r\nmore`);
    expect(await hear(peer)).toMatch(/^HTTP\/1\.1 404 /);
    await letGo;
  });

  test("that is refused to a peer that takes no answer is cut off after a while", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const { http } = await serve(neverAsked);
    const duplex = new Duplex({ read: () => undefined, write: () => undefined });
    http.emit("upgrade", { url: "/elsewhere" } as IncomingMessage, duplex, Buffer.alloc(0));
    vi.advanceTimersByTime(4_999);
    expect(duplex.destroyed).toBe(false);
    vi.advanceTimersByTime(1);
    expect(duplex.destroyed).toBe(true);
  });
});

describe("a hello", () => {
  /** Answers the first look-ups, and then falls silent. */
  function fallSilentAfter(lookUps: number): { readonly members: Members; readonly silent: Promise<void> } {
    const { promise: silent, resolve } = Promise.withResolvers<void>();
    let left = lookUps;
    const findMember = () => {
      if (left-- > 0) return knowing.findMember(meshId, keys.pubkey);
      resolve();
      return new Promise<never>(() => undefined);
    };
    return { members: { ...knowing, findMember }, silent };
  }

  test.for([0, 1])(
    "that a silent store leaves unanswered after %i answers is our failure, not the peer's",
    async (n) => {
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
      onTestFinished(() => void vi.useRealTimers());
      const { members, silent } = fallSilentAfter(n);
      const { url } = await serve(neverAsked, members);
      const peer = await RawPeer.dial(url, meshId);
      const refused = expect(peer.request("hello", peer.helloOf({ meshId, keys }, "client"))).rejects.toThrow();
      await silent;
      vi.advanceTimersByTime(10_000);
      expect(await peer.closed).toEqual({ code: 1011, reason: "storage_unavailable" });
      await refused;
    },
  );
});

describe("requests in flight", () => {
  const done: Answer = { status: 200, body: { done: true } };

  test("on one connection are bounded; those beyond are busy", async () => {
    const gate = Promise.withResolvers<Answer>();
    const { url } = await serve(() => gate.promise);
    const peer = await RawPeer.connect(url, { meshId, keys }, "client");
    const within = Array.from({ length: 1_024 }, () => peer.request("topic.list"));
    expect(await peer.request("topic.list")).toMatchObject({ status: 429, body: { error: "busy", limit: 1_024 } });
    gate.resolve(done);
    for (const { status } of await Promise.all(within)) expect(status).toBe(200);
    expect((await peer.request("topic.list")).status).toBe(200);
  });

  test("are answered before a stop closes the connection; new ones hear that it stops", async () => {
    const gate = Promise.withResolvers<Answer>();
    const asked = Promise.withResolvers<void>();
    const { url, sockets } = await serve(() => {
      asked.resolve();
      return gate.promise;
    });
    const peer = await RawPeer.connect(url, { meshId, keys }, "client");
    const before = peer.request("topic.list");
    await asked.promise;
    sockets.stop();
    expect(await peer.request("topic.list")).toMatchObject({
      status: 503,
      body: { error: "stopping", retryable: true },
    });
    gate.resolve(done);
    expect(await before).toEqual(done);
    expect((await peer.closed).code).toBe(1012);
  });
});
