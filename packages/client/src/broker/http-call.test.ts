// A member's calls over HTTP: where each field of an operation goes, and what becomes of the answer.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { BrokerCall } from "./broker-client.ts";
import { createHttpCall } from "./http-call.ts";

let server: Server;
let call: BrokerCall;
let seen: { readonly request: IncomingMessage; readonly body: string }[];
let answer: (response: ServerResponse, request: IncomingMessage) => void;

beforeEach(async () => {
  seen = [];
  answer = (response) => response.writeHead(200).end('{"ok":true}');
  server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    seen.push({ request, body });
    answer(response, request);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const broker = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
  call = createHttpCall({ broker, mesh: "acme", token: "secret", requestTimeoutMs: 5_000 });
});

afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

describe("a call over HTTP", () => {
  it.each([
    [
      "once.record",
      { key: "a/b", epoch: 1, result: 1e20 },
      "POST",
      "/once/a%2Fb/record",
      '{"epoch":1,"result":100000000000000000000e0}',
    ],
    ["once.get", { key: "k" }, "GET", "/once/k", ""],
    ["history", { after: 3, topic: "a b" }, "GET", "/history?after=3&topic=a+b", ""],
    ["queue.create", { queue: "jobs", max_deliveries: 2 }, "POST", "/queues", '{"max_deliveries":2,"id":"jobs"}'],
    ["token.revoke", { token_id: "t" }, "DELETE", "/tokens/t", ""],
    ["invite.create", {}, "POST", "/invites", ""],
  ] as const)("to %s puts its fields where the route has them", async (operation, input, method, path, body) => {
    expect(await call(operation, input)).toEqual({ ok: true });
    expect(seen).toHaveLength(1);
    expect(seen[0]?.request).toMatchObject({ method, url: `/v1/meshes/acme${path}` });
    expect(seen[0]?.request.headers.authorization).toBe("Bearer secret");
    expect(seen[0]?.body).toBe(body);
  });

  it("throws the broker's refusal with its code and details", async () => {
    answer = (response) =>
      response.writeHead(409).end('{"error":"running","message":"m","retryable":false,"lease_until":7}');
    await expect(call("once.get", { key: "k" })).rejects.toMatchObject({
      name: "MeshError",
      code: "running",
      details: { lease_until: 7 },
    });
  });

  it("that is not answered may have been carried out, and says so; it is asked once", async () => {
    answer = (_, request) => request.socket.destroy();
    await expect(call("once.get", { key: "k" })).rejects.toMatchObject({
      code: "broker_unreachable",
      retryable: true,
      details: { sent: true },
    });
    expect(seen).toHaveLength(1);
  });

  it("that finds no listener was not carried out, and says so", async () => {
    await new Promise((resolve) => server.close(resolve));
    await expect(call("once.get", { key: "k" })).rejects.toMatchObject({
      code: "broker_unreachable",
      details: { sent: false },
    });
    server.listen(0);
  });

  it("does not follow a redirect, so that the token goes nowhere else", async () => {
    answer = (response) => response.writeHead(307, { location: "/elsewhere" }).end();
    await expect(call("once.get", { key: "k" })).rejects.toMatchObject({ name: "BrokerRefusal", status: 307 });
    expect(seen).toHaveLength(1);
  });

  it("cannot carry what exists only on the WebSocket", async () => {
    await expect(call("ack", { history_ids: [1] })).rejects.toMatchObject({ code: "invalid_request" });
  });
});
