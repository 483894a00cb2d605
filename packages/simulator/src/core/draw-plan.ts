// Draws a plan from a seed: first how the mesh is set up and how often what goes wrong, then every operation and every
// fault with its moment.
import { between, type Random, streamOf } from "./chance.ts";
import { drawAgentOperation } from "./draw-agent-operation.ts";
import {
  type Address,
  busyShare,
  type CommitPhase,
  type DaemonOperation,
  type Fault,
  hourMs,
  type Operation,
  type Plan,
  queueNames,
  roundMs,
  type Settings,
  topicNames,
} from "./plan.ts";
import { weighted } from "./weighted.ts";

const minuteMs = 60_000;

/** `agents`: so many, instead of some or none. */
export function drawPlan(seed: number, hours: number, agents?: number): Plan {
  const settings = withAgents(drawSettings(streamOf(seed, "settings"), seed, hours), agents);
  const incidents = drawIncidents(settings);
  return { settings, operations: drawOperations(settings, incidents), faults: drawFaults(settings, incidents) };
}

/** Troubles seldom come alone: a few faults in a short time, mostly on one host, while it has much to do. */
type Incident = { readonly atMs: number; readonly host: number };

function drawIncidents(settings: Settings): Incident[] {
  const random = streamOf(settings.seed, "incidents");
  const perHour = 1 + random.next() * 3;
  const moments = drawMoments(random, settings, perHour);
  // What is open when all processes fall asleep is old when they wake.
  for (const [round, days] of settings.leapDays.entries()) {
    const sleepMs = (round + busyShare) * roundMs(settings);
    if (days > 0) moments.push(...[60_000, 30_000, 10_000].map((beforeMs) => sleepMs - beforeMs));
  }
  return moments.sort((a, b) => a - b).map((atMs) => ({ atMs, host: drawHost(random, settings) }));
}

function drawHost(random: Random, settings: Settings): number {
  const { daemons, agents = 0, brokers = 1 } = settings;
  const isBroker = random.next() < 0.35;
  if (!isBroker) return 1 + random.below(daemons + agents);
  return brokers > 1 && random.next() < 0.5 ? 1 + daemons + agents : 0;
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
    skewMs: drawSkews(random, daemons + 1),
  };
}

function drawSkews(random: Random, hosts: number): number[] {
  return Array.from({ length: hosts }, () => (random.next() < 0.3 ? between(random, -120_000, 120_000) : 0));
}

/** Some runs are about messages alone, and so about more of them; those are the same whatever agents do in others. */
function withAgents(settings: Settings, wanted: number | undefined): Settings {
  const random = streamOf(settings.seed, "agents");
  const agents = wanted ?? random.pick([0, 2, 2, 3]);
  if (agents === 0) return settings;
  const brokers = random.next() < 0.3 ? 2 : 1;
  const daemons = Math.min(settings.daemons, 3);
  const skewMs = [...settings.skewMs.slice(0, daemons + 1), ...drawSkews(random, agents + brokers - 1)];
  return { ...settings, daemons, agents, brokers, skewMs };
}

/** No days stand for all of them. */
function orForEver(days: number): number | undefined {
  return days === 0 ? undefined : days;
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
  const { daemons, agents = 0 } = settings;
  const perHour = between(random, 80, agents === 0 ? 120 : 105);
  const anyHost = () => 1 + random.below(daemons + agents);
  const moments = drawMoments(random, settings, perHour).map((atMs) => ({ atMs, host: anyHost(), rushed: false }));
  const rush = Math.ceil(
    ((agents === 0 ? 50 : 30) * settings.rounds * settings.roundHours) / Math.max(incidents.length, 1),
  );
  for (const incident of incidents) {
    const isClient = incident.host > 0 && incident.host <= daemons + agents;
    for (let count = between(random, rush, 2 * rush); count > 0; count--) {
      const host = !isClient || random.next() < 0.3 ? anyHost() : incident.host;
      moments.push({ atMs: within(random, settings, incident.atMs), host, rushed: true });
    }
  }
  moments.sort((a, b) => a.atMs - b.atMs);
  return moments.map(({ atMs, host, rushed }, number) =>
    host > daemons
      ? drawAgentOperation(random, settings, { atMs, number, agent: host - daemons - 1 })
      : drawDaemonOperation(random, settings, { atMs, number, daemon: host - 1 }, rushed),
  );
}

/** Soon after, and never in the calm part of a round. */
function within(random: Random, settings: Settings, atMs: number): number {
  const lengthMs = roundMs(settings);
  const endMs = (Math.floor(atMs / lengthMs) + busyShare) * lengthMs - 1;
  const afterMs = random.next() < 0.7 ? random.next() * 20_000 : random.next() * 3 * minuteMs;
  return Math.floor(Math.min(atMs + afterMs, endMs));
}

function drawDaemonOperation(
  random: Random,
  settings: Settings,
  asked: Pick<DaemonOperation, "atMs" | "number" | "daemon">,
  rushed: boolean,
): DaemonOperation {
  const pick = random.below(1_000_000);
  const queue = random.below(queueNames.length);
  return weighted<DaemonOperation>(random, [
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
  const weights = Array.from({ length: (settings.agents ?? 0) > 0 ? 14 : 13 }, () => random.next() ** bias + 0.01);
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
  const { daemons, agents = 0 } = settings;
  const isBroker = host === 0 || host > daemons + agents;
  const clientHost = isBroker ? 1 + random.below(daemons + agents) : host;
  const daemonHost = clientHost > daemons ? 1 + random.below(daemons) : clientHost;
  const skip = random.next() < 0.5 ? 0 : between(random, 1, 8);
  const database = isBroker ? "broker" : random.pick(["outbox", "inbox"] as const);
  const phase: CommitPhase = random.pick(["begin", "before", "after"]);
  const shortMs = between(random, 100, 2 * minuteMs);
  const longMs = random.next() < 0.15 ? between(random, 5 * minuteMs, 40 * minuteMs) : shortMs;
  const restartMs = random.next() < 0.15 ? between(random, minuteMs, 20 * minuteMs) : between(random, 50, 5_000);
  const onWire = { atMs, host: clientHost };
  const onDisk = { atMs, host: isBroker ? host : daemonHost };
  const choices: readonly (() => Fault)[] = [
    () => ({ ...at, kind: "crash", forMs: restartMs }),
    () => ({ ...onDisk, kind: "crash_at_commit", database, phase, skip, forMs: restartMs }),
    () => ({
      ...onDisk,
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
    () =>
      settings.messageDays === undefined ? { atMs, host: daemonHost, kind: "inbox_loss" } : { ...onWire, kind: "cut" },
    () => ({ atMs, host: 0, kind: "verifier_outage", forMs: longMs }),
  ];
  return weighted(
    random,
    choices.map((choice, index) => [weights[index] ?? 0, choice] as const),
  );
}
