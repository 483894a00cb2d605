// What /metrics shows, read as Prometheus would.
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { createTestMesh, startTestBroker } from "../../../tests/support/broker-harness.ts";
import { readPrometheusText } from "../../../tests/support/prometheus-text.ts";

describe("GET /metrics", () => {
  test("counts answers by operation and status, and budget spent on what was then refused; never names an id", async () => {
    const broker = await startTestBroker();
    const owner = await createTestMesh(broker);
    await owner.send("metric-1", owner);
    await owner.send("metric-1", owner);
    const destination = { kind: "topic", ref: "nowhere" };
    for (let again = 0; again < 3; again++) {
      await owner.call("POST", "/messages", { client_message_id: "metric-2", destination, body: "x" });
    }

    const answer = await fetch(`${broker.url}/metrics`);
    expect(answer.headers.get("content-type")).toContain("text/plain");
    const text = await answer.text();
    expect(text).toContain('cm_broker_requests_total{operation="send",status="201"} 1');
    expect(text).toContain('cm_broker_requests_total{operation="send",status="200"} 1');
    expect(text).toContain('cm_broker_requests_total{operation="send",status="404"} 3');
    expect(text).toContain("cm_broker_rate_limit_consumed_then_b2_rejected_total 1");
    expect(text).not.toContain("metric-1");
    expect(text).not.toContain(owner.pubkey);
  });

  test("is text that a strict reader takes, in names of our own with help and units", async () => {
    const broker = await startTestBroker();
    const owner = await createTestMesh(broker);
    await owner.send("m1", owner);
    const families = readPrometheusText(await (await fetch(`${broker.url}/metrics`)).text());
    expect([...families.keys()].filter((name) => !name.startsWith("cm_broker_"))).toEqual([]);
    for (const [name, { type }] of families) expect(name.endsWith("_total"), name).toBe(type === "counter");
    expect(families.get("cm_broker_webhook_deliveries")?.samples).toEqual([
      { name: "cm_broker_webhook_deliveries", labels: { state: "pending" }, value: 0 },
      { name: "cm_broker_webhook_deliveries", labels: { state: "parked" }, value: 0 },
    ]);
    expect(families.size).toBeGreaterThan(4);
  });

  test("holds exactly what the table of counters in docs/operations.md lists, and no page names another", async () => {
    const broker = await startTestBroker();
    const text = await (await fetch(`${broker.url}/metrics`)).text();
    const shown = [...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name);
    const docs = new URL("../../../docs/", import.meta.url);
    const namesIn = (page: string) => new Set(page.match(/\bcm_broker_[a-z0-9_]+/g));
    const operations = readFileSync(new URL("operations.md", docs), "utf8");
    const [, counters = ""] = operations.split("\n### Counters\n");
    expect([...namesIn(counters.split("\n## ")[0] ?? "")].sort()).toEqual(shown.sort());
    const pages = readdirSync(docs).filter((name) => name.endsWith(".md"));
    const named = pages.flatMap((name) => [...namesIn(readFileSync(new URL(name, docs), "utf8"))]);
    expect(named.filter((name) => !shown.includes(name))).toEqual([]);
  });

  test.for([
    "cm_x 1\n",
    "# HELP cm_x x\n# TYPE cm_x gauge\ncm_x one\n",
    "# HELP cm_x x\n# TYPE cm_x counter\ncm_x -1\n",
    "# HELP cm_x x\n# TYPE cm_x gauge\ncm_x 1\ncm_x 2\n",
    '# HELP cm_x x\n# TYPE cm_x gauge\ncm_x{a="b" 1\n',
    "# HELP cm_x x\n# TYPE cm_x gauge\ncm_x 1",
  ])("is not what the strict reader refuses: %j", (text) => {
    expect(() => readPrometheusText(text)).toThrow();
  });
});
