import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { measureClockOffset } from "./broker-time.ts";

async function serve(dateHeader: string | undefined): Promise<string> {
  const server: Server = createServer((request, response) => {
    response.sendDate = false;
    if (dateHeader !== undefined) response.setHeader("date", dateHeader);
    response.statusCode = request.url === "/healthz" ? 200 : 404;
    response.end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const brokerMs = Date.UTC(2030, 0, 1, 12, 0, 0);

describe("the clock of this machine against the broker's", () => {
  it.each([
    ["agrees", 500, 0],
    ["is an hour ahead", 3_600_500, 3_600_000],
    ["is a minute behind", -59_500, -60_000],
  ])("%s", async (_, aheadMs, offsetMs) => {
    const broker = await serve(new Date(brokerMs).toUTCString());
    expect(await measureClockOffset(broker, () => brokerMs + aheadMs)).toBe(offsetMs);
  });

  it("is not known where the broker does not say its time, says nonsense, or is away", async () => {
    expect(await measureClockOffset(await serve(undefined))).toBeUndefined();
    expect(await measureClockOffset(await serve("yesterday"))).toBeUndefined();
    expect(await measureClockOffset("ws://127.0.0.1:1")).toBeUndefined();
  });
});
