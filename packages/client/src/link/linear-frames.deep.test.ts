// Texts of every kind that a broker can send: what they cost a client grows with their length and no faster.
import { afterAll, beforeAll, onTestFinished, test } from "vitest";
import { expectLinear, StepCounter } from "../../../../tests/support/counted-steps.ts";
import type { LinkTestbed } from "../testing/link-testbed.ts";

let counter: StepCounter;
let startBed: () => Promise<LinkTestbed>;

beforeAll(async () => {
  counter = await StepCounter.start();
  // Imported only now, so that it is counted.
  const { LinkTestbed: Bed } = await import("../testing/link-testbed.ts");
  startBed = () => Bed.start();
});
afterAll(() => counter.stop());

test.each(["before", "after"])("frames are read in linear time %s the hello is answered", async (when) => {
  const bed = await startBed();
  onTestFinished(() => bed.stop());
  await expectLinear(counter, async (text) => {
    const { link, statuses } = bed.open({ backoff: { minMs: 60_000, maxMs: 60_000 } });
    const peer = await (when === "before" ? bed.broker.peers.next() : bed.broker.welcomeNext());
    peer.socket.send(text);
    await statuses.nextWhere(({ state }) => state === "offline");
    await link.close();
  });
});
