// Health, readiness and metrics of a broker whose store is in trouble, without the store.
import { createHttpServer } from "@claudemesh/http/server";
import { Strangers } from "@claudemesh/http/strangers";
import { MeshError } from "@claudemesh/protocol/errors";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { type BrokerMetrics, createBrokerMetrics, type MetricSources } from "../metrics.ts";
import type { Readiness } from "../stores/readiness.ts";
import { registerHealthRoutes } from "./health-routes.ts";

const never = () => new Promise<never>(() => undefined);
const away = () => Promise.reject(new Error("connection refused"));

const ready: Readiness = { store: "ok", limiter: "ok", refusal: undefined };

function serve(parts: { metrics?: BrokerMetrics; readiness?: Readiness }) {
  const options = { maxBodyBytes: 4_096, maxInFlight: 3, busyCode: "busy", onError: () => undefined } as const;
  const server = createHttpServer(options);
  const { metrics = metricsOf(away), readiness = ready } = parts;
  registerHealthRoutes(server, { metrics, checkReady: async () => readiness, adminToken: "admin", nowMs: () => 17 });
  onTestFinished(() => server.close());
  return server;
}

function metricsOf(webhookCounts: MetricSources["webhookCounts"], failures: unknown[] = []): BrokerMetrics {
  return createBrokerMetrics({
    strangers: new Strangers(100),
    counts: () => ({ limiterPassedUncounted: 0, limiterSpentThenRefused: 0 }),
    connected: () => 7,
    sessionsHeld: () => 0,
    signalsForged: () => 0,
    webhookCounts,
    checkReady: async () => ready,
    onFailure: (error) => void failures.push(error),
  });
}

/** Lets the time pass that a silent store is given. */
async function giveUpWaiting<T>(asked: () => PromiseLike<T>): Promise<T> {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const answer = asked();
  await expect.poll(() => vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(2_000);
  return answer;
}

describe("GET /metrics", () => {
  test("shows all that needs no store while the store is away, and the rest when it is back", async () => {
    const failures: unknown[] = [];
    let counts: MetricSources["webhookCounts"] = async () => ({ pending: 3, parked: 0 });
    const server = serve({ metrics: metricsOf(() => counts(), failures) });
    const ask = async () => (await server.inject("/metrics")).body;
    expect(await ask()).toContain('cm_broker_webhook_deliveries{state="pending"} 3');
    counts = away;
    const without = await ask();
    expect(without).toContain("cm_broker_connections 7\n");
    expect(without).not.toContain("cm_broker_webhook_deliveries{");
    expect(failures).toMatchObject([{ message: "connection refused" }]);
    counts = async () => ({ pending: 4, parked: 0 });
    expect(await ask()).toContain('cm_broker_webhook_deliveries{state="pending"} 4');
  });

  test("does not wait for a store that says nothing", async () => {
    const server = serve({ metrics: metricsOf(never) });
    const { statusCode, body } = await giveUpWaiting(() => server.inject("/metrics"));
    expect(statusCode).toBe(200);
    expect(body).toContain("cm_broker_connections 7\n");
  });

  test.for(["forwarded", "x-forwarded-for"])("forwarded by a proxy (%s) needs the admin token", async (header) => {
    const server = serve({});
    const headers = { [header]: "for=203.0.113.7" };
    expect((await server.inject("/metrics")).statusCode).toBe(200);
    expect((await server.inject({ url: "/metrics", headers })).statusCode).toBe(401);
    const authorization = "Bearer admin";
    expect((await server.inject({ url: "/metrics", headers: { ...headers, authorization } })).statusCode).toBe(200);
  });

  test("that fails says so in the one error shape", async () => {
    const server = serve({ metrics: { ...metricsOf(away), render: away } });
    const answer = await server.inject("/metrics");
    expect(answer.statusCode).toBe(500);
    expect(answer.json()).toMatchObject({ error: "internal", retryable: true });
  });
});

describe("HEAD", () => {
  test.for(["/healthz", "/readyz", "/metrics"])("of %s answers as GET does, without the body", async (url) => {
    const unready: Readiness = { ...ready, store: "unavailable", refusal: new MeshError("storage_unavailable") };
    for (const readiness of [ready, unready]) {
      const server = serve({ readiness });
      const [head, get] = [await server.inject({ method: "HEAD", url }), await server.inject(url)];
      expect(head.statusCode).toBe(get.statusCode);
      expect(head.body).toBe("");
      expect(head.headers["content-length"]).toBe(get.headers["content-length"]);
    }
  });

  test("is named among what a health check's path takes", async () => {
    const answer = await serve({}).inject({ method: "POST", url: "/healthz" });
    expect(answer.statusCode).toBe(405);
    expect(answer.headers.allow).toBe("GET, HEAD");
  });
});

describe("GET /readyz", () => {
  test("says that store and limiter take writes, and what time it is for the store", async () => {
    const answer = await serve({}).inject("/readyz");
    expect([answer.statusCode, answer.json()]).toEqual([
      200,
      { status: "ready", store: "ok", limiter: "ok", time: 17 },
    ]);
  });

  test("is 503 with what takes none", async () => {
    const refusal = new MeshError("limiter_unavailable");
    const answer = await serve({ readiness: { store: "ok", limiter: "unavailable", refusal } }).inject("/readyz");
    expect(answer.statusCode).toBe(503);
    expect(answer.json()).toMatchObject({ error: "limiter_unavailable", limiter: "unavailable", store: "ok" });
  });
});
