// What each fault of a plan does to the world, and how everything is made good again.
import type { Fault } from "../core/plan.ts";
import { BrokerActor } from "./broker.ts";
import { DaemonActor } from "./daemon.ts";
import { type Disk, diskError } from "./disk.ts";
import type { Actor, World } from "./world.ts";

type DiskFaultOf = Extract<Fault, { kind: "crash_at_commit" | "disk_error" }>;

/** How long a process lives on that heard of a failure after the fact. */
const failedFlushMs = 50;
const restartMs = 1_000;

/** `endMs`: no fault lasts longer than this. */
export function strike(world: World, fault: Fault, endMs: number): void {
  const { nowMs } = world.scheduler;
  const actor = world.actorOn(fault.host);
  const lastingMs = "forMs" in fault ? Math.min(fault.forMs, Math.max(endMs - nowMs, 0)) : 0;
  world.log.add(nowMs, `fault ${JSON.stringify(fault)}`);
  switch (fault.kind) {
    case "crash":
      crash(world, actor, lastingMs);
      break;
    case "crash_at_commit":
    case "disk_error":
      armDisk(world, actor, fault, lastingMs);
      break;
    case "partition":
    case "loss":
    case "duplication":
    case "slowness":
    case "half_open":
      disturb(actor, fault, nowMs + lastingMs);
      break;
    case "cut":
      if (!(actor instanceof BrokerActor)) for (const connection of [...actor.wire.connections]) connection.cut();
      break;
    case "clock_step":
      actor.host.step(fault.byMs);
      break;
    case "sleep":
      actor.host.sleep(lastingMs);
      break;
    case "limiter_outage":
      world.redis.troubledUntilMs = nowMs + lastingMs;
      world.redis.slowMs = fault.slowMs;
      if (fault.slowMs === 0) world.redis.bus.leave(nowMs + lastingMs);
      break;
    case "verifier_outage":
      world.verifier.silentUntilMs = nowMs + lastingMs;
      break;
    case "inbox_loss":
      if (actor instanceof DaemonActor) loseInbox(world, actor);
  }
}

/** From here on nothing goes wrong. Connections that are broken stay so until a side notices. */
export function heal(world: World): void {
  world.log.add(world.scheduler.nowMs, "all faults end");
  world.redis.troubledUntilMs = 0;
  world.redis.bus.heal();
  world.verifier.silentUntilMs = 0;
  world.broker.disk.arm(undefined);
  for (const { wire } of [...world.daemons, ...world.agents]) wire.heal();
  for (const daemon of world.daemons) {
    daemon.outbox.arm(undefined);
    daemon.inbox.arm(undefined);
  }
}

/** Ends the process; it is started again after so long. */
export function crash({ scheduler }: World, actor: Actor, restartAfterMs: number): void {
  const { life } = actor.host;
  if (life?.alive !== true) return;
  life.end();
  scheduler.after(restartAfterMs, () => {
    if (actor.host.life === life) actor.start();
  });
}

function armDisk(world: World, actor: Actor, fault: DiskFaultOf, restartAfterMs: number): void {
  const disk = diskOf(actor, fault.database);
  if (disk === undefined) return;
  if (fault.kind === "crash_at_commit") {
    const strikeDown = () => {
      crash(world, actor, restartAfterMs);
      return diskError("io");
    };
    disk.arm({ phase: fault.phase, strike: strikeDown, skip: fault.skip, commits: 1 });
    return;
  }
  const { phase, error, commits } = fault;
  const fail = () => {
    if (phase === "after") {
      const { life } = actor.host;
      world.scheduler.after(actor.host.random.next() * failedFlushMs, () => {
        if (actor.host.life === life) crash(world, actor, restartMs);
      });
    }
    return diskError(error);
  };
  disk.arm({ phase, strike: fail, skip: fault.skip, commits: phase === "after" ? 1 : commits });
}

/** Undefined: an agent has none. */
function diskOf(actor: Actor, database: DiskFaultOf["database"]): Disk | undefined {
  if (actor instanceof BrokerActor) return actor.disk;
  if (!(actor instanceof DaemonActor)) return undefined;
  return database === "inbox" ? actor.inbox : actor.outbox;
}

function disturb(
  actor: Actor,
  fault: Extract<Fault, { kind: "partition" | "loss" | "duplication" | "slowness" | "half_open" }>,
  untilMs: number,
): void {
  if (actor instanceof BrokerActor) return;
  const { conditions } = actor.wire;
  switch (fault.kind) {
    case "partition":
      conditions.partition = { untilMs, value: 1 };
      return;
    case "half_open":
      conditions[fault.direction] = { untilMs, value: 1 };
      return;
    case "loss":
    case "duplication":
      conditions[fault.kind] = { untilMs, value: fault.rate };
      return;
    case "slowness":
      conditions.slowness = { untilMs, value: fault.delayMs };
  }
}

function loseInbox({ scheduler }: World, daemon: DaemonActor): void {
  const { life } = daemon.host;
  if (life?.alive !== true) return;
  life.end();
  void daemon.loseInbox().then(() => {
    scheduler.after(restartMs, () => {
      if (daemon.host.life === life) daemon.start();
    });
  });
}
