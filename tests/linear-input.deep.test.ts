// Texts of every kind that a stranger or a member can send to a broker, over HTTP and WebSocket: what they cost it grows with
// their length and no faster. Counted in steps of our code, not in time.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type * as Harness from "./support/broker-harness.ts";
import { expectLinear, StepCounter } from "./support/counted-steps.ts";
import type { RawPeer } from "./support/raw-peer.ts";

let counter: StepCounter;
let harness: typeof Harness;

beforeAll(async () => {
  counter = await StepCounter.start();
  // Imported only now, so that it is counted.
  harness = await import("./support/broker-harness.ts");
});
afterAll(() => counter.stop());

describe("a broker", () => {
  test("reads what strangers post to it in linear time", async () => {
    const broker = await harness.startTestBroker();
    await expectLinear(counter, async (body) => {
      const answer = await harness.callBroker(broker.url, "POST", "/v1/meshes/acme/join", { body });
      expect(answer.status).toBeLessThan(500);
    });
  });

  test("reads what members post to it in linear time", async () => {
    const broker = await harness.startTestBroker();
    const alice = await harness.createTestMesh(broker);
    await alice.token();
    await expectLinear(counter, async (body) => {
      const answer = await alice.call("POST", "/messages", body);
      expect([400, 413]).toContain(answer.status);
    });
  });

  const readAndLeave = async (peer: RawPeer, text: string) => {
    peer.sendText(text);
    expect((await peer.closed).code).toBeGreaterThan(1_000);
  };

  test("reads frames of strangers in linear time", async () => {
    const broker = await harness.startTestBroker();
    const { RawPeer: Peer } = await import("./support/raw-peer.ts");
    await expectLinear(counter, async (text) => readAndLeave(await Peer.dial(broker.url), text));
  });

  test("reads frames of members in linear time", async () => {
    const broker = await harness.startTestBroker();
    const alice = await harness.createTestMesh(broker);
    await expectLinear(counter, async (text) => readAndLeave(await alice.connect("client"), text));
  });
});
