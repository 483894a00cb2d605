// The blows of a chaos run: which there are for a cluster, and one after the other for as long as it lasts. One seed
// decides which, of which process and for how long; when each falls follows from the load.
import { setTimeout as sleep } from "node:timers/promises";
import { blowChances, blows, type Victim } from "../support/chaos-blows.ts";
import { type Load, letAnswer } from "../support/chaos-load.ts";
import type { FaultyProxy } from "../support/faulty-proxy.ts";
import type { LongRunning } from "../support/process.ts";
import type { Random } from "../support/seed.ts";
import type { SmallDisk } from "../support/small-disk.ts";
import type { Cluster } from "./cluster.ts";

type Blow = { readonly kind: string; readonly strike: (random: Random) => Promise<string> };
export type Storm = {
  readonly cluster: Cluster;
  readonly load: Load;
  readonly random: Random;
  readonly untilMs: number;
  /** One line per blow, as it is struck. */
  readonly say: (line: string) => void;
  /** Grows as blows fall. */
  readonly struck: Struck;
};
export type Struck = { readonly kinds: Record<string, number>; readonly endedByThemselves: string[] };

/** Long enough for connections to be missed, short enough for many blows. */
const outageMs = 1_500;
const startTries = 20;

type Running = Victim & { readonly process: LongRunning<unknown> };

function processesOf({ peers, brokers }: Cluster): Map<string, Running> {
  const numbered = brokers.map((broker, at): [string, Running] => [`broker ${at + 1}`, broker]);
  return new Map([...peers.map((peer): [string, Running] => [peer.name, peer]), ...numbered]);
}

/** Every blow that this cluster can be struck by; some stand here more often, and fall more often. */
function blowsFor(cluster: Cluster): Blow[] {
  const processes = processesOf(cluster);
  const struck = blowChances.map((kind) => ({
    kind,
    strike: async (random: Random) => {
      const name = random.pick([...processes.keys()]);
      const victim = processes.get(name);
      if (victim !== undefined) await blows[kind]({ ...asVictim(victim), start: () => startAnyhow(victim) }, random);
      return name;
    },
  }));
  const { servers } = cluster;
  return [
    ...struck,
    ...Object.entries(cluster.links).flatMap(([name, link]) => linkBlows(name, link)),
    ...(servers === undefined ? [] : [restartBlow("redis", servers.redis, ["TERM", "KILL"] as const)]),
    ...(servers === undefined ? [] : [restartBlow("postgres", servers.postgres, ["INT", "QUIT"] as const)]),
    ...Object.entries(cluster.disks).map(([name, disk]) => fullDiskBlow(name, disk, cluster)),
  ];
}

function asVictim(victim: Running): Victim {
  return {
    get process() {
      return victim.process;
    },
    kill: () => victim.kill(),
    start: () => victim.start(),
  };
}

/** As a supervisor does: a start that met a server in recovery is tried again, and one that was killed on purpose is not. */
async function startAnyhow(victim: Running): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await victim.start();
      return;
    } catch (error) {
      const { signal } = await victim.process.exited;
      if (tries === startTries || signal === "SIGKILL") throw error;
      await sleep(100);
    }
  }
}

function linkBlows(name: string, link: FaultyProxy): Blow[] {
  const cut: Blow = {
    kind: `cut_${name}`,
    strike: async (random) => {
      const ms = random.below(outageMs);
      link.cut();
      await sleep(ms);
      link.speak();
      return `${ms} ms`;
    },
  };
  const silence: Blow = {
    kind: `silence_${name}`,
    strike: async (random) => {
      const ms = random.below(2 * outageMs);
      link.fallSilent();
      await sleep(ms);
      link.cut();
      link.speak();
      return `${ms} ms`;
    },
  };
  return [cut, silence];
}

type Restartable<Signal> = { readonly restart: (signal: Signal, downMs: number) => Promise<void> };

function restartBlow<Signal extends string>(
  name: string,
  server: Restartable<Signal>,
  signals: readonly Signal[],
): Blow {
  return {
    kind: `restart_${name}`,
    strike: async (random) => {
      const signal = random.pick(signals);
      const ms = random.below(outageMs);
      await server.restart(signal, ms);
      return `SIG${signal}, away for ${ms} ms`;
    },
  };
}

function fullDiskBlow(name: string, disk: SmallDisk, cluster: Cluster): Blow {
  return {
    kind: `full_disk_${name}`,
    strike: async (random) => {
      const ms = 200 + random.below(outageMs);
      disk.fill();
      await sleep(ms);
      disk.free();
      const revived = await cluster.revivePostgres();
      return `${ms} ms${revived ? ", PostgreSQL had ended and was started again" : ""}`;
    },
  };
}

/** Every kind of blow once, in an order that the seed chooses; then whichever the seed picks. */
export async function strikeUntil(storm: Storm): Promise<void> {
  const { cluster, load, random, untilMs, say, struck } = storm;
  const all = blowsFor(cluster);
  const first = shuffle([...new Map(all.map((blow) => [blow.kind, blow])).values()], random);
  const startedAtMs = performance.now();
  while (performance.now() < untilMs) {
    await letAnswer(load, 1 + random.below(40));
    const blow = first.pop() ?? random.pick(all);
    const atSeconds = ((performance.now() - startedAtMs) / 1_000).toFixed(1);
    const how = await blow.strike(random);
    struck.kinds[blow.kind] = (struck.kinds[blow.kind] ?? 0) + 1;
    say(`${atSeconds.padStart(7)} s  ${blow.kind}: ${how}`);
    for (const line of await reviveProcesses(cluster)) {
      struck.endedByThemselves.push(line);
      say(`           ${line}`);
    }
  }
}

/** Nothing is away any more, and everything runs. */
export async function mendAll(cluster: Cluster): Promise<string[]> {
  for (const disk of Object.values(cluster.disks)) disk.free();
  for (const link of Object.values(cluster.links)) link.speak();
  await cluster.revivePostgres();
  return reviveProcesses(cluster);
}

async function reviveProcesses(cluster: Cluster): Promise<string[]> {
  const lines: string[] = [];
  for (const [name, victim] of processesOf(cluster)) {
    const { process } = victim;
    if (!process.hasEnded) continue;
    const { code, signal } = await process.exited;
    const lastWords = process.stderr.trimEnd().split("\n").at(-1) ?? "";
    lines.push(`${name} ended by itself (${signal ?? code}) and was started again: ${lastWords.slice(0, 300)}`);
    await startAnyhow(victim);
  }
  return lines;
}

function shuffle<T>(items: readonly T[], random: Random): T[] {
  const rest = [...items];
  const shuffled: T[] = [];
  while (rest.length > 0) shuffled.push(...rest.splice(random.below(rest.length), 1));
  return shuffled;
}
