// Draws a plan from a seed: first how the mesh is set up and how often what goes wrong, then every operation and every
// fault with its moment.
import { between, type Random, streamOf } from "./chance.ts";
import {
  type Address,
  busyShare,
  type CommitPhase,
  type Fault,
  hourMs,
  type Operation,
  type Plan,
  queueNames,
  roundMs,
  type Settings,
  topicNames,
} from "./plan.ts";

const minuteMs = 60_000;

export function drawPlan(seed: number, hours: number): Plan {
  const settings = drawSettings(streamOf(seed, "settings"), seed, hours);
  const incidents = drawIncidents(settings);
  return { settings, operations: drawOperations(settings, incidents), faults: drawFaults(settings, incidents) };
}

/** Troubles seldom come alone: a few faults in a short time, mostly on one host, while it has much to do. */
type Incident = { readonly atMs: number; readonly host: number };

function drawIncidents(settings: Settings): Incident[] {
  const random = streamOf(settings.seed, "incidents");
  const perHour = 1 + random.next() * 3;
  const moments = drawMoments(random, settings, perHour);
  // What is open when everybody falls asleep is old when they wake.
  for (const [round, days] of settings.leapDays.entries()) {
    const sleepMs = (round + busyShare) * roundMs(settings);
    if (days > 0) moments.push(...[60_000, 30_000, 10_000].map((beforeMs) => sleepMs - beforeMs));
  }
  return moments.sort((a, b) => a - b).map((atMs) => ({ atMs, host: drawHost(random, settings) }));
}

function drawHost(random: Random, settings: Settings): number {
  return random.next() < 0.35 ? 0 : 1 + random.below(settings.daemons);
}

function drawSettings(random: Random, seed: number, hours: number): Settings {
  const roundHours = Math.min(hours, random.pick([2, 3, 4]));
  const rounds = Math.max(1, Math.round(hours / roundHours));
  const daemons = between(random, 2, 4);
  const leaps = random.next() < 0.6;
  const dedupeDays = orForEver(random.pick([7, 7, 365, 0]));
  const messageDays = orForEver(random.pick([1, 2, 0, 0]));
  return {
    seed,
    daemons,
    rounds,
    roundHours,
    rateLimit: random.pick([
      { limit: 6_000, windowSeconds: 60 },
      { limit: 40, windowSeconds: 60 },
      { limit: 15, windowSeconds: 10 },
    ]),
    dedupeDays,
    messageDays,
    inboxDays: orForEver(random.pick([1, 0])),
    outboxDays: random.pick([1, 30]),
    requestTimeoutMs: random.pick([1_000, 3_000, 10_000]),
    connectionPolicy: random.pick(["prefer_newest", "allow_concurrent"]),
    leapDays: Array.from({ length: rounds - 1 }, () =>
      leaps && random.next() < 0.4 ? random.pick([0.1, 0.5, 1.1, 2.5, 5.9, 6.5, 7.5]) : 0,
    ),
    skewMs: Array.from({ length: daemons + 1 }, () => (random.next() < 0.3 ? between(random, -120_000, 120_000) : 0)),
  };
}

/** No days stand for all of them. */
function orForEver(days: number): number | undefined {
  return days === 0 ? undefined : days;
}

/** Something else each time, as often as its weight says. */
function weighted<T>(random: Random, choices: readonly (readonly [weight: number, choice: () => T])[]): T {
  const total = choices.reduce((sum, [weight]) => sum + weight, 0);
  let rest = random.next() * total;
  for (const [weight, choice] of choices) {
    rest -= weight;
    if (rest < 0) return choice();
  }
  throw new Error("weights add up to nothing");
}

/** Moments within the busy part of some round, in order. */
function drawMoments(random: Random, settings: Settings, perHour: number): number[] {
  const lengthMs = roundMs(settings);
  const count = Math.ceil(perHour * settings.rounds * settings.roundHours);
  const moments = Array.from({ length: count }, (_, index) => {
    const round = index % settings.rounds;
    return Math.floor(round * lengthMs + random.next() * busyShare * lengthMs);
  });
  return moments.sort((a, b) => a - b);
}

function drawOperations(settings: Settings, incidents: readonly Incident[]): Operation[] {
  const random = streamOf(settings.seed, "operations");
  const perHour = between(random, 80, 120);
  const any = () => random.below(settings.daemons);
  const moments = drawMoments(random, settings, perHour).map((atMs) => ({ atMs, daemon: any(), rushed: false }));
  const rush = Math.ceil((50 * settings.rounds * settings.roundHours) / Math.max(incidents.length, 1));
  for (const { atMs, host } of incidents) {
    for (let count = between(random, rush, 2 * rush); count > 0; count--) {
      const daemon = host === 0 || random.next() < 0.3 ? any() : host - 1;
      moments.push({ atMs: within(random, settings, atMs), daemon, rushed: true });
    }
  }
  moments.sort((a, b) => a.atMs - b.atMs);
  return moments.map(({ rushed, ...asked }, number) => drawOperation(random, settings, { ...asked, number }, rushed));
}

/** Soon after, and never in the calm part of a round. */
function within(random: Random, settings: Settings, atMs: number): number {
  const lengthMs = roundMs(settings);
  const endMs = (Math.floor(atMs / lengthMs) + busyShare) * lengthMs - 1;
  const afterMs = random.next() < 0.7 ? random.next() * 20_000 : random.next() * 3 * minuteMs;
  return Math.floor(Math.min(atMs + afterMs, endMs));
}

function drawOperation(
  random: Random,
  settings: Settings,
  asked: Pick<Operation, "atMs" | "number" | "daemon">,
  rushed: boolean,
): Operation {
  const pick = random.below(1_000_000);
  const queue = random.below(queueNames.length);
  return weighted<Operation>(random, [
    [
      50,
      () => {
        const bytes = random.next() < 0.02 ? between(random, 1_000, 20_000) : between(random, 0, 40);
        return { ...asked, kind: "send", to: drawAddress(random, settings), named: random.next() < 0.85, bytes };
      },
    ],
    [12, () => ({ ...asked, kind: "retry", pick })],
    [3, () => ({ ...asked, kind: "clash", pick, abroad: random.next() < 0.3 })],
    [
      rushed ? 25 : 4,
      () => ({
        ...asked,
        kind: "requeue",
        pick,
        acceptDuplicate: random.next() < 0.4,
        patched: random.next() < 0.3,
        again: random.next() < 0.2,
      }),
    ],
    [1, () => ({ ...asked, kind: "prune", days: random.pick([0, 0, 1]) })],
    [5, () => ({ ...asked, kind: "mark_read", pick })],
    [5, () => ({ ...asked, kind: "read_history", limit: random.pick([1, 5, 100]) })],
    [
      12,
      () => ({
        ...asked,
        kind: "consume",
        queue,
        max: between(random, 1, 8),
        leaseSeconds: random.pick([1, 10, 60]),
        thinkMs: between(random, 0, 15_000),
        afterwards: random.pick(["ack", "ack", "ack", "nack", "abandon"]),
      }),
    ],
    [1, () => ({ ...asked, kind: "revive", queue })],
    [2, () => ({ ...asked, kind: "subscribe", topic: random.below(topicNames.length) })],
    [1, () => ({ ...asked, kind: "unsubscribe", topic: random.below(topicNames.length) })],
  ]);
}

function drawAddress(random: Random, settings: Settings): Address {
  return weighted<Address>(random, [
    [40, () => ({ kind: "topic", topic: random.below(topicNames.length) })],
    [35, () => ({ kind: "dm", daemon: random.below(settings.daemons) })],
    [22, () => ({ kind: "queue", queue: random.below(queueNames.length) })],
    [3, () => ({ kind: "nowhere" })],
  ]);
}

function drawFaults(settings: Settings, incidents: readonly Incident[]): Fault[] {
  const random = streamOf(settings.seed, "faults");
  // Every run has its own idea of what is likely: some are about disks, some about networks.
  const bias = random.pick([1, 3, 6]);
  const weights = Array.from({ length: 13 }, () => random.next() ** bias + 0.01);
  const faults: Fault[] = [];
  for (const incident of incidents) {
    for (let count = between(random, 1, 4); count > 0; count--) {
      const host = random.next() < 0.7 ? incident.host : drawHost(random, settings);
      faults.push(drawFault(random, settings, weights, { atMs: within(random, settings, incident.atMs), host }));
    }
  }
  return faults.sort((a, b) => a.atMs - b.atMs);
}

function drawFault(random: Random, settings: Settings, weights: readonly number[], at: Incident): Fault {
  const { atMs, host } = at;
  const daemonHost = host === 0 ? 1 + random.below(settings.daemons) : host;
  const skip = random.next() < 0.5 ? 0 : between(random, 1, 8);
  const database = host === 0 ? "broker" : random.pick(["outbox", "inbox"] as const);
  const phase: CommitPhase = random.pick(["begin", "before", "after"]);
  const shortMs = between(random, 100, 2 * minuteMs);
  const longMs = random.next() < 0.15 ? between(random, 5 * minuteMs, 40 * minuteMs) : shortMs;
  const restartMs = random.next() < 0.15 ? between(random, minuteMs, 20 * minuteMs) : between(random, 50, 5_000);
  const onWire = { atMs, host: daemonHost };
  const choices: readonly (() => Fault)[] = [
    () => ({ ...at, kind: "crash", forMs: restartMs }),
    () => ({ ...at, kind: "crash_at_commit", database, phase, skip, forMs: restartMs }),
    () => ({
      ...at,
      kind: "disk_error",
      database,
      phase,
      skip,
      error: random.pick(["io", "disk_full"]),
      commits: between(random, 1, 5),
    }),
    () => ({ ...onWire, kind: "partition", forMs: longMs }),
    () => ({ ...onWire, kind: "half_open", forMs: longMs, direction: random.pick(["up", "down"]) }),
    () => ({ ...onWire, kind: "loss", forMs: longMs, rate: random.next() * 0.4 }),
    () => ({ ...onWire, kind: "duplication", forMs: longMs, rate: random.next() * 0.5 }),
    () => ({ ...onWire, kind: "slowness", forMs: longMs, delayMs: between(random, 50, 20_000) }),
    () => ({ ...onWire, kind: "cut" }),
    () => ({ ...at, kind: "clock_step", byMs: between(random, -hourMs, hourMs) }),
    () => ({ ...at, kind: "sleep", forMs: longMs }),
    () => ({ atMs, host: 0, kind: "limiter_outage", forMs: longMs, slowMs: random.pick([0, 3_000, 15_000]) }),
    // What was lost with an inbox comes back from history, which has to be there then.
    () => (settings.messageDays === undefined ? { ...onWire, kind: "inbox_loss" } : { ...onWire, kind: "cut" }),
  ];
  return weighted(
    random,
    choices.map((choice, index) => [weights[index] ?? 0, choice] as const),
  );
}
