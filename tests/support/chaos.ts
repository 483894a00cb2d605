// A mesh under load whose processes are killed by SIGKILL and stopped by SIGSTOP, again and again, at moments that one
// seed chooses, some of them while they recover. Ends when everything has settled; what must then be true is the
// oracle's business.
import { blowChances, blows, type Victim } from "./chaos-blows.ts";
import { type Load, letAnswer, startCallers } from "./chaos-load.ts";
import { countUnsettled } from "./oracle.ts";
import { createRandom, type Random } from "./seed.ts";
import type { Sent } from "./senders.ts";
import { type Peer, until, World } from "./world.ts";

export type ChaosReport = {
  readonly world: World;
  readonly alice: Peer;
  readonly bob: Peer;
  readonly fromAlice: Sent[];
  readonly fromBob: Sent[];
  /** How often each process was struck, and in which way. */
  readonly victims: Readonly<Record<string, number>>;
  readonly kinds: Readonly<Record<string, number>>;
};

export async function runChaos(seed: number, blowsWanted: number): Promise<ChaosReport> {
  const random = createRandom(seed);
  const world = new World(["--rate-limit", "1000000/60s"]);
  await world.startBroker();
  const alice = await world.addPeer("alice");
  const bob = await world.addPeer("bob");
  await Promise.all([alice.start(), bob.start()]);

  const load: Load = { on: true, answered: 0, allowed: 0 };
  const fromAlice: Sent[] = [];
  const fromBob: Sent[] = [];
  const callers = [
    ...startCallers(alice, "@bob", fromAlice, load, random),
    ...startCallers(bob, "@alice", fromBob, load, random),
  ];
  const { victims, kinds } = await strikeAgainAndAgain({ world, alice, bob, load, random, blowsWanted });
  load.on = false;
  await Promise.all(callers);
  await until("everything has settled", async () => {
    const rows = [...(await alice.outbox()), ...(await bob.outbox())];
    return (rows.every((row) => row.status === "done") && countUnsettled(world) === 0) || undefined;
  });
  return { world, alice, bob, fromAlice, fromBob, victims, kinds };
}

type Blows = Record<string, number>;

type Striking = {
  readonly world: World;
  readonly alice: Peer;
  readonly bob: Peer;
  readonly load: Load;
  readonly random: Random;
  readonly blowsWanted: number;
};

async function strikeAgainAndAgain(striking: Striking): Promise<{ victims: Blows; kinds: Blows }> {
  const { world, alice, bob, load, random, blowsWanted } = striking;
  const victims: Readonly<Record<string, Victim>> = {
    alice,
    bob,
    broker: {
      get process() {
        return world.broker;
      },
      kill: () => world.broker.kill(),
      start: () => world.startBroker(),
    },
  };
  const struck: Blows = {};
  const kinds: Blows = {};
  for (let n = 0; n < blowsWanted; n++) {
    await letAnswer(load, 1 + random.below(40));
    const name = random.pick(Object.keys(victims));
    const kind = random.pick(blowChances);
    await blows[kind](victims[name] as Victim, random);
    struck[name] = (struck[name] ?? 0) + 1;
    kinds[kind] = (kinds[kind] ?? 0) + 1;
  }
  return { victims: struck, kinds };
}
