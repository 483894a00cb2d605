// What /metrics shows, read as Prometheus would.
import { describe, expect, test } from "vitest";
import { createTestMesh, startTestBroker } from "../../../tests/support/broker-harness.ts";

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
});
