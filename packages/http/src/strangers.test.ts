// Peers that have not shown who they are: bounded by address, apart from those that have, and counted.
import { once } from "node:events";
import { Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { MeshError } from "@claudemesh/protocol/errors";
import type { FastifyInstance } from "fastify";
import { describe, expect, onTestFinished, test } from "vitest";
import { createHttpServer } from "./server.ts";
import { groupOf, Strangers } from "./strangers.ts";

/** `/open` needs no credential; `/members` wants the word "known" and then answers late. */
async function serve(perAddress: number, maxInFlight: number) {
  const strangers = new Strangers(perAddress);
  const server = createHttpServer({
    maxBodyBytes: 1_000,
    maxInFlight,
    strangers,
    busyCode: "busy",
    onError: () => undefined,
  });
  const gate = Promise.withResolvers<void>();
  let inside = 0;
  server.post("/members", async (request, reply) => {
    if (request.headers.authorization !== "known") throw new MeshError("unauthorized");
    reply.admit();
    inside += 1;
    await gate.promise;
    return { welcome: true };
  });
  server.get("/open", async () => ({ open: true }));
  await server.listen({ host: "127.0.0.1", port: 0 });
  onTestFinished(async () => {
    gate.resolve();
    server.server.closeAllConnections();
    await server.close();
  });
  return { server, strangers, release: gate.resolve, inside: () => inside };
}

const portOf = (server: FastifyInstance) => (server.server.address() as AddressInfo).port;

async function dial(server: FastifyInstance): Promise<Socket> {
  const socket = connect(portOf(server), "127.0.0.1");
  socket.on("error", () => undefined);
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  return socket;
}

async function hear(socket: Socket): Promise<string> {
  let heard = "";
  for await (const chunk of socket) heard += String(chunk);
  return heard;
}

/** A request whose body is still to come. */
function begin(server: FastifyInstance, authorization: string, agent: Agent | false = false): ClientRequest {
  const headers = { authorization, "content-type": "application/json", "content-length": "2" };
  const asked = httpRequest({ port: portOf(server), method: "POST", path: "/members", headers, agent });
  asked.on("error", () => undefined);
  onTestFinished(() => void asked.destroy());
  asked.flushHeaders();
  return asked;
}

async function statusOf(asked: ClientRequest): Promise<number | undefined> {
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  // To its end, so that the next request of an agent finds its connection free.
  await once(answer.resume(), "close");
  return answer.statusCode;
}

describe("an address", () => {
  test("has so many connections that have not shown who they are; the next is told and closed", async () => {
    const { server, strangers } = await serve(2, 10);
    const [first] = [await dial(server), await dial(server)];
    await expect.poll(() => strangers.counts().connections).toBe(2);
    const beyond = await hear(await dial(server));
    expect(beyond).toContain("HTTP/1.1 429");
    expect(beyond).toContain('"error":"busy"');
    expect(strangers.refused()).toEqual({ connection: 1, request: 0 });
    first.destroy();
    await expect.poll(() => strangers.counts().connections).toBe(1);
    expect((await fetch(`http://127.0.0.1:${portOf(server)}/open`)).status).toBe(200);
  });

  test("has others beside those once they have shown who they are", async () => {
    const { server, strangers, release } = await serve(1, 10);
    release();
    const agent = new Agent({ keepAlive: true });
    onTestFinished(() => agent.destroy());
    const known = begin(server, "known", agent);
    known.end("{}");
    expect(await statusOf(known)).toBe(200);
    expect(strangers.counts()).toEqual({ connections: 0, requests: 0 });
    const stranger = await dial(server);
    expect(await hear(await dial(server))).toContain("HTTP/1.1 429");
    stranger.destroy();
    await expect.poll(() => strangers.counts().connections).toBe(0);
  });

  test("has so many requests waiting, and those of known peers are not among them", async () => {
    const { server, strangers, inside, release } = await serve(2, 2);
    // Two requests on one connection, one behind the other.
    const pipeline = await dial(server);
    const head = "POST /members HTTP/1.1\r\nhost: x\r\nauthorization: known\r\ncontent-type: application/json\r\n";
    pipeline.write(`${head}content-length: 2\r\n\r\n{}${head}content-length: 2\r\n\r\n{}`);
    await expect.poll(inside).toBe(2);
    expect(strangers.counts()).toEqual({ connections: 0, requests: 0 });
    // The room of known peers is full, which a stranger learns nothing of; one that is let in does.
    const slow = begin(server, "unknown");
    await expect.poll(() => strangers.counts().requests).toBe(1);
    const late = begin(server, "known");
    late.end("{}");
    expect(await statusOf(late)).toBe(429);
    slow.end("{}");
    expect(await statusOf(slow)).toBe(401);
    release();
  });

  test("that fills its own room leaves that of known peers free", async () => {
    const { server, strangers, inside, release } = await serve(3, 1);
    const agent = new Agent({ keepAlive: true });
    onTestFinished(() => agent.destroy());
    const member = begin(server, "known", agent);
    member.end("{}");
    await expect.poll(inside).toBe(1);
    for (let slow = 0; slow < 3; slow++) begin(server, "unknown");
    await expect.poll(() => strangers.counts().requests).toBe(3);
    release();
    expect(await statusOf(member)).toBe(200);
    const again = begin(server, "known", agent);
    again.end("{}");
    expect(await statusOf(again)).toBe(200);
  });
});

test("an answer that strangers wait for in a pipeline is refused beyond their room", async () => {
  const { server, strangers } = await serve(1, 10);
  const pipeline = await dial(server);
  const waiting = "POST /members HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
  pipeline.write(waiting.repeat(20));
  pipeline.end();
  const heard = await hear(pipeline);
  expect(heard.match(/HTTP\/1.1 (401|429)/g)).toHaveLength(20);
  expect(strangers.counts().requests).toBe(0);
});

test.each([
  ["192.0.2.7", "192.0.2.7"],
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"],
  ["2001:db8::1", "2001:db8:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
])("%s counts with %s", (address, group) => {
  expect(groupOf(address)).toBe(group);
});
