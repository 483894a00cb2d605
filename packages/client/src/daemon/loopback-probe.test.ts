import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { probeLoopback } from "./loopback-probe.ts";

describe("a question to the loopback port", () => {
  it("carries the token and gives the status of the answer", async () => {
    const server = createServer((request, response) => {
      response.statusCode = request.headers.authorization === "Bearer right" ? 200 : 401;
      response.end("{}");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => {
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    expect(await probeLoopback(port, "right")).toEqual({ type: "answered", status: 200 });
    expect(await probeLoopback(port, "wrong")).toEqual({ type: "answered", status: 401 });
  });

  it("that gets no answer says why", async () => {
    expect(await probeLoopback(1, "any")).toEqual({ type: "silent", why: "ECONNREFUSED" });
  });
});
