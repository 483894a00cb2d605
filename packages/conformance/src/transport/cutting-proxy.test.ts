// The proxy that loses answers: the server has done its work, the caller hears nothing, and the answer is kept.
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { loseAnswer } from "./cutting-proxy.ts";
import type { HttpTarget } from "./http.ts";

async function serve(listener: RequestListener): Promise<HttpTarget> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return { type: "tcp", host: "127.0.0.1", port: (server.address() as AddressInfo).port, secure: false };
}

describe("an answer that gets lost", () => {
  test("is the server's own, and the request has arrived once", async () => {
    const bodies: string[] = [];
    const target = await serve((request, response) => {
      request.setEncoding("utf8").on("data", (text: string) => bodies.push(text));
      request.on("end", () => response.writeHead(201, { "content-length": 8 }).end('{"n":17}'));
    });
    const lost = await loseAnswer(target, { method: "POST", path: "/x", json: { a: 1 } });
    expect(lost).toMatchObject({ status: 201, body: { n: 17 }, request: 'POST /x\n{"a":1}' });
    expect(bodies).toEqual(['{"a":1}']);
  });

  test("is read in whole, also where it comes in chunks", async () => {
    const target = await serve((_request, response) => {
      response.write('{"text":"');
      response.write("ü".repeat(40_000));
      response.end('"}');
    });
    const lost = await loseAnswer(target, { method: "GET", path: "/x" });
    expect(lost.body.text).toHaveLength(40_000);
  });

  test("cannot be had where the server gives none", async () => {
    const target = await serve((request) => request.socket.destroy());
    await expect(loseAnswer(target, { method: "GET", path: "/x" })).rejects.toThrow("expected an HTTP answer");
  });

  test("is not looked for inside TLS", async () => {
    const target: HttpTarget = { type: "tcp", host: "127.0.0.1", port: 1, secure: true };
    await expect(loseAnswer(target, { method: "GET", path: "/x" })).rejects.toThrow(/TLS/);
  });
});
