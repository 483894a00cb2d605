// The socket server without a broker behind it: upgrades that are refused, and requests that never end.
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Duplex } from "node:stream";
import type { Answer } from "@claudemesh/protocol/messages/accept-result";
import { pino } from "pino";
import { describe, expect, onTestFinished, test } from "vitest";
import { createPeerKeys } from "../../../../tests/support/peer-keys.ts";
import { RawPeer } from "../../../../tests/support/raw-peer.ts";
import { readBrokerConfig } from "../config.ts";
import type { BrokerContext } from "../context.ts";
import type { RunOperation } from "../operations/run-operation.ts";
import { ConnectionRegistry } from "./connection-registry.ts";
import { attachSocketServer, type SocketServer } from "./socket-server.ts";

const meshId = "0".repeat(36);
const keys = createPeerKeys();

/** Just enough of a broker to say hello to. */
function contextOf(): BrokerContext {
  const member = { meshId, pubkey: keys.pubkey, name: "alice", role: "owner" as const, joinedAt: 1, revoked: false };
  const members = { findMesh: async () => ({ id: meshId, name: "acme" }), findMember: async () => member };
  const parts = {
    config: readBrokerConfig({}, {}, undefined),
    members: members as Partial<BrokerContext["members"]> as BrokerContext["members"],
    connections: new ConnectionRegistry(),
    log: pino({ level: "silent" }),
    nowMs: Date.now,
  };
  return parts as Partial<BrokerContext> as BrokerContext;
}

async function serve(run: RunOperation): Promise<{ http: Server; sockets: SocketServer; url: string }> {
  const http = createServer();
  const sockets = attachSocketServer(http, contextOf(), run);
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  onTestFinished(() => {
    sockets.stop();
    sockets.terminate();
    http.close();
  });
  return { http, sockets, url: `http://127.0.0.1:${(http.address() as AddressInfo).port}` };
}

const neverAsked: RunOperation = () => Promise.reject(new Error("nobody asks here"));

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

describe("an upgrade", () => {
  test("elsewhere is refused, and a peer that resets the connection then harms nobody", async () => {
    const { http } = await serve(neverAsked);
    const written: string[] = [];
    const duplex = silentDuplex(written);
    http.emit("upgrade", { url: "/elsewhere?x=1" } as IncomingMessage, duplex, Buffer.alloc(0));
    expect(written.join("")).toMatch(/^HTTP\/1\.1 404 /);
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
  });
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
