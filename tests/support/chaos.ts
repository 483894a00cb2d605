// A mesh under load whose processes are killed by SIGKILL, again and again, at moments that one seed chooses. Ends when
// everything has settled; what must then be true is the oracle's business.

import { countUnsettled } from "./oracle.ts";
import { createRandom, type Random } from "./seed.ts";
import { type Sent, sendUntilAnswered } from "./senders.ts";
import { type Peer, until, World } from "./world.ts";

export type ChaosReport = {
  readonly world: World;
  readonly alice: Peer;
  readonly bob: Peer;
  readonly fromAlice: Sent[];
  readonly fromBob: Sent[];
  readonly kills: Record<string, number>;
};

const callersPerPeer = 4;

export async function runChaos(seed: number, killsWanted: number): Promise<ChaosReport> {
  const random = createRandom(seed);
  const world = new World(["--rate-limit", "1000000/60s"]);
  await world.startBroker();
  const alice = await world.addPeer("alice");
  const bob = await world.addPeer("bob");
  await Promise.all([alice.start(), bob.start()]);

  const load = { on: true, answered: 0 };
  const fromAlice: Sent[] = [];
  const fromBob: Sent[] = [];
  const callers = [
    ...startCallers(alice, "@bob", fromAlice, load, random),
    ...startCallers(bob, "@alice", fromBob, load, random),
  ];
  const kills = await killAgainAndAgain({ world, alice, bob, load, random, killsWanted });
  load.on = false;
  await Promise.all(callers);
  await until("everything has settled", async () => {
    const rows = [...(await alice.outbox()), ...(await bob.outbox())];
    return (rows.every((row) => row.status === "done") && countUnsettled(world) === 0) || undefined;
  });
  return { world, alice, bob, fromAlice, fromBob, kills };
}

type Load = { on: boolean; answered: number };

/** Some callers give up after an unanswered try, as real ones do: their message may be there once, or not at all. */
function startCallers(peer: Peer, to: string, sent: Sent[], load: Load, random: Random): Promise<void>[] {
  return Array.from({ length: callersPerPeer }, async (_, caller) => {
    for (let n = 0; load.on; n++) {
      const id = `${peer.name}-${caller}-${n}`;
      const one: Sent = { id, text: `${id}: ${"x".repeat(random.below(200))}`, answered: false };
      sent.push(one);
      await sendUntilAnswered(
        () => peer.client,
        to,
        one,
        () => random.next() < 0.1,
      );
      if (one.answered) load.answered++;
    }
  });
}

type Killing = {
  readonly world: World;
  readonly alice: Peer;
  readonly bob: Peer;
  readonly load: Load;
  readonly random: Random;
  readonly killsWanted: number;
};

async function killAgainAndAgain(killing: Killing): Promise<Record<string, number>> {
  const { world, alice, bob, load, random, killsWanted } = killing;
  const victims = {
    alice: { kill: () => alice.kill(), start: () => alice.start() },
    bob: { kill: () => bob.kill(), start: () => bob.start() },
    broker: { kill: () => world.broker.kill(), start: () => world.startBroker() },
  };
  const names = Object.keys(victims) as (keyof typeof victims)[];
  const kills: Record<string, number> = {};
  for (let n = 0; n < killsWanted; n++) {
    const goal = load.answered + 1 + random.below(40);
    await until("the load goes on", () => load.answered >= goal || undefined);
    const name = random.pick(names);
    await victims[name].kill();
    kills[name] = (kills[name] ?? 0) + 1;
    await victims[name].start();
  }
  return kills;
}
