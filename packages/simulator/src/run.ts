// One run: a world from a plan, its rounds of work and faults, and a look at everything after each. Ends with a report,
// or with the violation that was found.
import { busyShare, dayMs, hourMs, type Plan, roundMs } from "./core/plan.ts";
import { Answers } from "./oracles/answers.ts";
import { checkRegistrarAndOnce, checkSpace, describeUnsettled } from "./oracles/check-agents.ts";
import {
  checkInboxes,
  checkOrphans,
  checkOutboxes,
  describeOpen,
  isSettled,
  tallyRows,
} from "./oracles/check-settled.ts";
import { HistoryLedger } from "./oracles/history-ledger.ts";
import { HistoryReader } from "./oracles/history-readers.ts";
import { MeshWatch } from "./oracles/mesh-watch.ts";
import { QueueWatch } from "./oracles/queue-watch.ts";
import { watchRows } from "./oracles/row-watch.ts";
import { Violation } from "./oracles/violation.ts";
import { Workload } from "./workload/perform.ts";
import type { CallEnd } from "./world/daemon.ts";
import { heal, strike } from "./world/faults.ts";
import { type Plants, World } from "./world/world.ts";

export type RunReport = {
  readonly seed: number;
  readonly hours: number;
  /** Asked of a daemon that was there. */
  readonly operations: number;
  readonly faults: number;
  /** By kind, whether or not they found something to strike. */
  readonly faultKinds: ReadonlyMap<string, number>;
  readonly events: number;
  readonly frames: number;
  readonly committed: number;
  /** Operations by kind and answer, and rows by how they ended. */
  readonly outcomes: ReadonlyMap<string, number>;
  /** Of everything that happened, in its order. */
  readonly digest: string;
  readonly violation: Violation | undefined;
  /** The last lines before a violation. */
  readonly lastLines: readonly string[];
};

/** How often the run looks whether all is settled. */
const lookMs = 5_000;

export async function runPlan(plan: Plan, plants: Plants = {}): Promise<RunReport> {
  const world = new World(plan.settings, plants);
  await world.populate();
  const run = new Run(plan, world);
  const violation = await run.toTheEnd();
  const report = reportOf(plan, run, world, violation);
  world.close();
  return report;
}

function reportOf(plan: Plan, run: Run, world: World, violation: Violation | undefined): RunReport {
  const { scheduler, log, network } = world;
  return {
    seed: plan.settings.seed,
    hours: scheduler.nowMs / hourMs,
    operations: run.workload.done,
    faults: run.faults,
    faultKinds: run.faultKinds,
    events: scheduler.events,
    frames: network.frames,
    committed: run.ledger.size,
    outcomes: new Map([...run.workload.outcomes, ...tallyRows(world)]),
    digest: log.digest(),
    violation,
    lastLines: violation === undefined ? [] : log.last(),
  };
}

class Run {
  readonly #plan: Plan;
  readonly #world: World;
  readonly ledger: HistoryLedger;
  readonly workload: Workload;
  readonly #answers: Answers;
  readonly #queues = new QueueWatch();
  readonly #readers: readonly HistoryReader[];
  readonly mesh: MeshWatch;
  faults = 0;
  readonly faultKinds = new Map<string, number>();
  #failure: Violation | undefined;

  constructor(plan: Plan, world: World) {
    this.#plan = plan;
    this.#world = world;
    world.onBug = (error) => this.#fail(error);
    this.ledger = new HistoryLedger(world.broker.disk, (violation) => this.#fail(violation));
    this.#answers = new Answers(
      this.ledger,
      world.daemons.map(({ pubkey }) => pubkey),
    );
    this.#readers = world.daemons.map(({ pubkey }) => new HistoryReader(pubkey));
    for (const [number, { outbox }] of world.daemons.entries()) {
      watchRows(outbox, `daemon-${number}`, (violation) => this.#fail(violation));
    }
    this.mesh = new MeshWatch(world, this.ledger, (error) => this.#fail(error));
    this.workload = new Workload(world, {
      answers: this.#answers,
      queues: this.#queues,
      readers: this.#readers,
      mesh: this.mesh,
    });
  }

  /** The first violation, if there is one. */
  async toTheEnd(): Promise<Violation | undefined> {
    const { settings, operations, faults } = this.#plan;
    const { scheduler } = this.#world;
    for (const operation of operations) {
      scheduler.at(operation.atMs, () => {
        this.workload.perform(operation).catch((error: unknown) => this.#fail(error));
      });
    }
    const lengthMs = roundMs(settings);
    for (const fault of faults) {
      const endMs = (Math.floor(fault.atMs / lengthMs) + busyShare) * lengthMs;
      scheduler.at(fault.atMs, () => {
        this.faults++;
        this.faultKinds.set(fault.kind, (this.faultKinds.get(fault.kind) ?? 0) + 1);
        strike(this.#world, fault, endMs);
      });
    }
    try {
      for (let round = 0; round < settings.rounds; round++) await this.#round(round * lengthMs, lengthMs, round);
    } catch (error) {
      this.#fail(error);
    }
    return this.#failure;
  }

  async #round(startMs: number, lengthMs: number, round: number): Promise<void> {
    const { scheduler } = this.#world;
    await this.#go(startMs + busyShare * lengthMs);
    const leapDays = this.#plan.settings.leapDays[round] ?? 0;
    if (leapDays > 0) this.#world.leap(leapDays * dayMs);
    heal(this.#world);
    const endMs = startMs + lengthMs;
    const isAtRest = () => this.workload.open === 0 && isSettled(this.#world);
    while (!isAtRest() || describeUnsettled(this.#world, this.mesh) !== undefined) {
      if (scheduler.nowMs + lookMs > endMs) throw new Violation("not_settled", this.#describeOpen());
      await this.#go(scheduler.nowMs + lookMs);
    }
    await this.#check(round, endMs);
    await this.#go(endMs);
  }

  #describeOpen(): string {
    const agents = describeUnsettled(this.#world, this.mesh) ?? "all agents at rest";
    return `${this.workload.open} operations; ${agents}; ${describeOpen(this.#world)}`;
  }

  async #go(untilMs: number): Promise<void> {
    await this.#world.scheduler.runWhile(() => this.#failure === undefined, untilMs);
    if (this.#failure !== undefined) throw this.#failure;
    this.#world.scheduler.nowMs = untilMs;
  }

  async #check(round: number, untilMs: number): Promise<void> {
    const world = this.#world;
    this.ledger.check();
    checkOutboxes(world, this.#answers, this.ledger);
    checkInboxes(world, this.#answers, this.ledger);
    this.#queues.check(world.broker.disk);
    if (this.#plan.settings.messageDays === undefined) for (const reader of this.#readers) reader.check(this.ledger);
    await checkOrphans(world);
    await checkSpace(world, this.mesh);
    checkRegistrarAndOnce(this.mesh);
    // An audit asks about every row there is: after each round one daemon's, at the end every daemon's.
    const isLast = round + 1 === this.#plan.settings.rounds;
    for (const number of world.daemons.keys()) {
      if (isLast || number === round % world.daemons.length) await this.#audit(number, untilMs);
    }
  }

  /** Until the broker was there for all of it. */
  async #audit(number: number, untilMs: number): Promise<void> {
    const { scheduler } = this.#world;
    for (;;) {
      const asked: { end?: CallEnd } = {};
      void this.workload.audit(number).then((end) => {
        asked.end = end;
      });
      await scheduler.runWhile(() => asked.end === undefined && this.#failure === undefined, untilMs);
      const { end } = asked;
      const report = typeof end === "object" ? end.body : undefined;
      if (report?.balanced === false) {
        throw new Violation("audit_unbalanced", `daemon-${number}: ${JSON.stringify(report.imbalances)}`);
      }
      if (report?.complete === true) return;
      if (scheduler.nowMs + lookMs > untilMs) {
        throw new Violation("not_settled", `the audit of daemon-${number} comes to no end: ${JSON.stringify(end)}`);
      }
      await this.#go(scheduler.nowMs + lookMs);
    }
  }

  #fail(error: unknown): void {
    const unexpected = () =>
      new Violation("internal_error", error instanceof Error ? (error.stack ?? "") : String(error));
    this.#failure ??= error instanceof Violation ? error : unexpected();
  }
}
