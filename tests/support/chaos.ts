// A mesh under load whose processes are killed by SIGKILL and stopped by SIGSTOP, again and again, at moments that one
// seed chooses, some of them while they recover. Ends when everything has settled; what must then be true is the
// oracle's business.
import { setTimeout as sleep } from "node:timers/promises";
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
  /** How often each process was struck, and in which way. */
  readonly victims: Readonly<Record<string, number>>;
  readonly kinds: Readonly<Record<string, number>>;
};

const callersPerPeer = 4;
/** More than there are answers while one process is struck and comes back, most of the time. */
const restingAfter = 60;

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

/** Callers rest at `allowed`: a daemon whose broker is away accepts thousands, and each costs an audit its questions. */
type Load = { on: boolean; answered: number; allowed: number };

/** Some callers give up after an unanswered try, as real ones do: their message may be there once, or not at all. */
function startCallers(peer: Peer, to: string, sent: Sent[], load: Load, random: Random): Promise<void>[] {
  return Array.from({ length: callersPerPeer }, async (_, caller) => {
    for (let n = 0; load.on; n++) {
      await until("the load may go on", () => !load.on || load.answered < load.allowed || undefined);
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

type Blows = Record<string, number>;

type Striking = {
  readonly world: World;
  readonly alice: Peer;
  readonly bob: Peer;
  readonly load: Load;
  readonly random: Random;
  readonly blowsWanted: number;
};

type Victim = {
  readonly process: () => { readonly signal: (signal: NodeJS.Signals) => void };
  readonly kill: () => Promise<void>;
  readonly start: () => Promise<unknown>;
};

/** As long as it takes a process to start, more or less: a second kill within it hits anything from exec to recovery. */
const startUpMs = 400;
/** Short enough for the load to go on, long enough for buffers to fill and others to notice. */
const stopMs = 250;

/** One blow: the process dies, or stands still for a while, or both; sometimes it dies again before it has recovered. */
const blows = {
  kill: async (victim: Victim) => {
    await victim.kill();
    await victim.start();
  },
  kill_in_recovery: async (victim: Victim, random: Random) => {
    await victim.kill();
    const recovering = victim.start().catch(() => undefined);
    await sleep(random.below(startUpMs));
    await victim.kill();
    await recovering;
    await victim.start();
  },
  stop: async (victim: Victim, random: Random) => {
    victim.process().signal("SIGSTOP");
    await sleep(random.below(stopMs));
    victim.process().signal("SIGCONT");
  },
  stop_and_kill: async (victim: Victim, random: Random) => {
    victim.process().signal("SIGSTOP");
    await sleep(random.below(stopMs));
    await victim.kill();
    await victim.start();
  },
} as const;

async function strikeAgainAndAgain(striking: Striking): Promise<{ victims: Blows; kinds: Blows }> {
  const { world, alice, bob, load, random, blowsWanted } = striking;
  const peerVictim = (peer: Peer): Victim => ({
    process: () => peer.process,
    kill: () => peer.kill(),
    start: () => peer.start(),
  });
  const victims: Readonly<Record<string, Victim>> = {
    alice: peerVictim(alice),
    bob: peerVictim(bob),
    broker: { process: () => world.broker, kill: () => world.broker.kill(), start: () => world.startBroker() },
  };
  const struck: Blows = {};
  const kinds: Blows = {};
  const chances = ["kill", "kill", "kill_in_recovery", "stop", "stop", "stop_and_kill"] as const;
  for (let n = 0; n < blowsWanted; n++) {
    const goal = load.answered + 1 + random.below(40);
    load.allowed = goal + restingAfter;
    await until("the load goes on", () => load.answered >= goal || undefined);
    const name = random.pick(Object.keys(victims));
    const kind = random.pick(chances);
    await blows[kind](victims[name] as Victim, random);
    struck[name] = (struck[name] ?? 0) + 1;
    kinds[kind] = (kinds[kind] ?? 0) + 1;
  }
  return { victims: struck, kinds };
}
