// Texts of every kind that a stranger, a member or a broker can send, over HTTP and WebSocket: what they cost the other side
// grows with their length and no faster. Counted in steps of our code, not in time.
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { LinkTestbed } from "../packages/client/src/testing/link-testbed.ts";
import type * as Harness from "./support/broker-harness.ts";
import { StepCounter, type TextFamily, textFamilies } from "./support/counted-steps.ts";
import type { RawPeer } from "./support/raw-peer.ts";

let counter: StepCounter;
let harness: typeof Harness;
let startBed: () => Promise<LinkTestbed>;

beforeAll(async () => {
  counter = await StepCounter.start();
  // Imported only now, so that they are counted.
  harness = await import("./support/broker-harness.ts");
  const { LinkTestbed: Bed } = await import("../packages/client/src/testing/link-testbed.ts");
  startBed = () => Bed.start();
});
afterAll(() => counter.stop());

/** What does not depend on the text: a connection, a request, a turn of a timer that came between. */
const fixedSteps = 5_000;

async function expectLinear(send: (text: string) => Promise<unknown>): Promise<void> {
  const work = async ({ ofLength }: TextFamily, characters: number) => {
    const text = ofLength(characters);
    return (await counter.count(() => send(text))) / text.length;
  };
  await send("{}");
  for (const family of textFamilies) {
    const once = await work(family, 4_000);
    const twice = await work(family, 8_000);
    // Steps for each character, so that 2.5 times the work for twice the text is 1.25 times.
    expect.soft(twice, family.name).toBeLessThanOrEqual(1.25 * once + fixedSteps / 4_000);
  }
}

describe("a broker", () => {
  test("reads what strangers post to it in linear time", async () => {
    const broker = await harness.startTestBroker();
    await expectLinear(async (body) => {
      const answer = await harness.callBroker(broker.url, "POST", "/v1/meshes/acme/join", { body });
      expect(answer.status).toBeLessThan(500);
    });
  });

  test("reads what members post to it in linear time", async () => {
    const broker = await harness.startTestBroker();
    const alice = await harness.createTestMesh(broker);
    await alice.token();
    await expectLinear(async (body) => {
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
    await expectLinear(async (text) => readAndLeave(await Peer.dial(broker.url), text));
  });

  test("reads frames of members in linear time", async () => {
    const broker = await harness.startTestBroker();
    const alice = await harness.createTestMesh(broker);
    await expectLinear(async (text) => readAndLeave(await alice.connect("client"), text));
  });
});

describe("a client", () => {
  test.each(["before", "after"])("reads frames of a broker in linear time %s the hello is answered", async (when) => {
    const bed = await startBed();
    onTestFinished(() => bed.stop());
    await expectLinear(async (text) => {
      const { link, statuses } = bed.open({ backoff: { minMs: 60_000, maxMs: 60_000 } });
      const peer = await (when === "before" ? bed.broker.peers.next() : bed.broker.welcomeNext());
      peer.socket.send(text);
      await statuses.nextWhere(({ state }) => state === "offline");
      await link.close();
    });
  });
});
