// A crash at every fault point: the process dies by SIGKILL at exactly that place, is started again, and nothing that
// was answered is lost and nothing lands twice (MSG-1, MSG-2, MSG-5).
import { afterEach, describe, expect, test } from "vitest";
import {
  countUnsettled,
  expectAuditBalances,
  expectBrokerConsistent,
  expectDeliveredOnce,
  expectOutboxDone,
} from "./support/oracle.ts";
import { type Sent, sendUntilAnswered } from "./support/senders.ts";
import { until, World } from "./support/world.ts";

const messages = 12;

const cases = [
  { point: "outbox.before_commit", dies: "sender" },
  { point: "outbox.after_commit", dies: "sender" },
  { point: "drain.after_write", dies: "sender" },
  { point: "inbox.after_commit", dies: "receiver" },
  { point: "accept.after_b0", dies: "broker" },
  { point: "accept.before_commit", dies: "broker" },
  { point: "accept.after_commit", dies: "broker" },
] as const;

describe("a crash loses nothing that was answered and doubles nothing", () => {
  let world: World | undefined;
  afterEach(() => world?.end());

  test.for(cases)("at $point of the $dies", async ({ point, dies }) => {
    world = new World();
    const failpoints = `${point}@2=crash`;
    await world.startBroker(dies === "broker" ? { failpoints } : {});
    const alice = await world.addPeer("alice");
    const bob = await world.addPeer("bob");
    await alice.start(dies === "sender" ? { failpoints } : {});
    await bob.start(dies === "receiver" ? { failpoints } : {});

    const victim = { sender: alice.process, receiver: bob.process, broker: world.broker }[dies];
    const restart = { sender: () => alice.start(), receiver: () => bob.start(), broker: () => world?.startBroker() }[
      dies
    ];
    const crashed = victim.exited.then(async (end) => {
      await restart();
      return end;
    });

    const sent: Sent[] = Array.from({ length: messages }, (_, n) => ({
      id: `${point}-${n}`,
      text: `message ${n} through ${point}`,
      answered: false,
    }));
    // One after the other, so that the second hit is the second message's and not the same batch's.
    for (const one of sent) await sendUntilAnswered(() => alice.client, "@bob", one);

    expect((await crashed).signal, `${point} was never reached`).toBe("SIGKILL");
    await until("bob has every message", async () => (await bob.inbox()).length >= messages || undefined);
    await until("alice's outbox is done", async () => {
      const rows = await alice.outbox();
      return rows.every((row) => row.status === "done") || undefined;
    });
    const settled = world;
    await until("every delivery is settled", () => countUnsettled(settled) === 0 || undefined);
    await expectDeliveredOnce(bob, sent);
    await expectOutboxDone(alice);
    expect(expectBrokerConsistent(world).stored).toBe(messages);
    await expectAuditBalances(alice, bob);
  });
});
