import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Closing } from "../processes/closing.ts";
import { MeasuringProcess } from "../processes/measuring-process.ts";
import type { LoadOrder, LoadResult } from "./generator.ts";

type Send = { readonly client_message_id: string };

let folder: string;
let closing: Closing;
let load: MeasuringProcess<LoadOrder, LoadResult>;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "cmb-"));
  closing = new Closing();
  closing.add(() => rmSync(folder, { recursive: true }));
  load = await MeasuringProcess.start(closing, new URL("./generator.ts", import.meta.url));
});

afterEach(() => closing.closeAll());

/**
 * Answers each request with what `statusFor` says about the number of sends that have arrived, each of many sends with what
 * `ofEach` says about its own, and keeps the ids.
 */
async function listen(
  statusFor: (arrival: number) => number,
  ofEach: (arrival: number) => number = () => 202,
): Promise<{ socketPath: string; ids: string[] }> {
  const ids: string[] = [];
  const server: Server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => {
      body += text;
    });
    request.on("end", () => {
      const read = JSON.parse(body) as Send | { sends: Send[] };
      const results = ("sends" in read ? read.sends : [read]).map(({ client_message_id: id }) => ({
        status: ofEach(ids.push(id)),
      }));
      const answer = JSON.stringify(
        "sends" in read
          ? { results: results.map((each) => ({ ...each, body: {} })) }
          : { error: "insufficient_storage" },
      );
      response.writeHead(statusFor(ids.length), { "content-length": answer.length });
      response.end(answer);
    });
  });
  const socketPath = join(folder, "sock");
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  closing.add(() => {
    server.closeAllConnections();
    server.close();
  });
  return { socketPath, ids };
}

const order = { callers: 8, durationMs: 50, to: "#bench", message: "hello" } as const;

describe("the load", () => {
  it("counts every request that left, each with an id of its own", async () => {
    const { socketPath, ids } = await listen(() => 202);
    const { accepted, perSecond, p50Ms, p99Ms } = await load.ask({ ...order, socketPath, ids: "random" });
    expect(accepted).toBeGreaterThanOrEqual(order.callers);
    expect(ids).toHaveLength(accepted);
    expect(new Set(ids).size).toBe(accepted);
    expect(perSecond).toBeGreaterThan(0);
    expect(p99Ms).toBeGreaterThanOrEqual(p50Ms);
  });

  it("counts every send of a request that carries many, each with an id of its own", async () => {
    const { socketPath, ids } = await listen(() => 200);
    const order32 = { ...order, sendsPerRequest: 32, socketPath, ids: "random" } as const;
    const { accepted } = await load.ask(order32);
    expect(accepted).toBeGreaterThanOrEqual(order.callers * 32);
    expect(ids).toHaveLength(accepted);
    expect(new Set(ids).size).toBe(accepted);
  });

  it("ends when one send among many was not taken", async () => {
    const { socketPath } = await listen(
      () => 200,
      (arrival) => (arrival === 100 ? 507 : 202),
    );
    const ended = load.ask({ ...order, sendsPerRequest: 32, durationMs: 60_000, socketPath, ids: "random" });
    await expect(ended).rejects.toThrow(/an answer that is not one 200.*"status":507/s);
  });

  it("has ids in the order of time where one caller asks for them", async () => {
    const { socketPath, ids } = await listen(() => 202);
    await load.ask({ ...order, callers: 1, socketPath, ids: "time_ordered" });
    expect(ids.length).toBeGreaterThan(1);
    expect(ids).toEqual(ids.toSorted());
  });

  it("keeps to its rate, but for the first request of each caller", async () => {
    const { socketPath } = await listen(() => 202);
    const rate = 200;
    const { accepted, perSecond } = await load.ask({
      ...order,
      durationMs: 200,
      socketPath,
      ids: "random",
      perSecond: rate,
    });
    const elapsedSeconds = accepted / perSecond;
    expect(accepted).toBeGreaterThan(order.callers);
    expect(accepted).toBeLessThanOrEqual(order.callers + elapsedSeconds * rate + 1);
  });

  it("ends with the answer itself when one is not a 202", async () => {
    const { socketPath } = await listen((arrival) => (arrival === 20 ? 507 : 202));
    const ended = load.ask({ ...order, durationMs: 60_000, socketPath, ids: "random" });
    await expect(ended).rejects.toThrow(/HTTP\/1\.1 507.*insufficient_storage/s);
  });

  it("ends when there is no daemon to connect to", async () => {
    const ended = load.ask({ ...order, socketPath: join(folder, "no.sock"), ids: "random" });
    await expect(ended).rejects.toThrow("the connection failed");
  });
});
