// Random leases, settlements, passing time, revivals and revocations against a naive model of one queue: every answer
// must be the model's, no message is ever in two live leases, and none is lost.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { LeaseOutcome, Settlement } from "../../ports/queues.ts";
import { endMembership } from "../../services/end-membership.ts";
import { queue, send, type World } from "./world.ts";

const maxDeliveries = 2;

type Step =
  | { readonly do: "send" }
  | {
      readonly do: "lease";
      readonly member: number;
      readonly request: number;
      readonly max: number;
      readonly seconds: number;
    }
  /** An earlier lease request once more. */
  | { readonly do: "repeat"; readonly lease: number }
  /** The messages of an earlier lease, or of any, as `chosen` says bit by bit. */
  | {
      readonly do: "settle";
      readonly settlement: Settlement;
      readonly lease: number;
      readonly chosen: number;
      readonly stray: boolean;
    }
  | { readonly do: "wait"; readonly seconds: number }
  | { readonly do: "revive"; readonly chosen: number }
  | { readonly do: "revoke"; readonly member: number };

type LeaseStep = Extract<Step, { do: "lease" }>;

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant("send" as const) }) },
  {
    weight: 10,
    arbitrary: fc.record({
      do: fc.constant("lease" as const),
      member: fc.nat(2),
      // Few, so that ids meet again with other terms.
      request: fc.nat(9),
      max: fc.constantFrom(1, 3),
      seconds: fc.constantFrom(10, 20),
    }),
  },
  {
    weight: 10,
    arbitrary: fc.record({
      do: fc.constant("settle" as const),
      settlement: fc.constantFrom<Settlement[]>("acked", "nacked", "nacked"),
      lease: fc.nat(100),
      chosen: fc.integer({ min: 1, max: 7 }),
      stray: fc.boolean(),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("repeat" as const), lease: fc.nat(100) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("wait" as const), seconds: fc.constantFrom(4, 9, 15) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("revive" as const), chosen: fc.nat(1_000_000) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("revoke" as const), member: fc.integer({ min: 1, max: 2 }) }) },
);

type ModelMessage = {
  readonly id: number;
  state: "waiting" | "held" | "parked" | "done";
  deliveries: number;
  heldBy: ModelLease | undefined;
};
type ModelLease = {
  readonly member: number;
  readonly request: number;
  readonly token: string;
  readonly max: number;
  readonly seconds: number;
  readonly endsAtMs: number;
  readonly messages: readonly ModelMessage[];
  readonly settled: Map<number, Settlement>;
};

/** What the contract says, with a list and a timer that is looked at before everything else. */
class Model {
  readonly messages: ModelMessage[] = [];
  readonly leases = new Map<string, ModelLease>();
  readonly #revoked = new Set<number>();

  tick(nowMs: number): void {
    for (const message of this.messages) {
      if (message.state === "held" && (message.heldBy?.endsAtMs ?? 0) <= nowMs) this.#giveBack(message);
    }
  }

  #giveBack(message: ModelMessage): void {
    message.heldBy = undefined;
    message.state = message.deliveries < maxDeliveries ? "waiting" : "parked";
  }

  lease(step: LeaseStep, token: string, nowMs: number): string {
    if (this.#revoked.has(step.member)) return "not_a_member";
    const key = `${step.member}/${step.request}`;
    const made = this.leases.get(key);
    if (made !== undefined) {
      if (made.max !== step.max || made.seconds !== step.seconds) return "different";
      return made.endsAtMs <= nowMs ? "lease_lost" : this.describe(made);
    }
    const messages = this.messages.filter(({ state }) => state === "waiting").slice(0, step.max);
    if (messages.length === 0) return "empty";
    const endsAtMs = nowMs + step.seconds * 1000;
    const { member, request, max, seconds } = step;
    const lease: ModelLease = { member, request, token, max, seconds, endsAtMs, messages, settled: new Map() };
    this.leases.set(key, lease);
    for (const message of messages) {
      message.state = "held";
      message.deliveries += 1;
      message.heldBy = lease;
    }
    return this.describe(lease);
  }

  requestOf(index: number): LeaseStep | undefined {
    const lease = [...this.leases.values()][index % this.leases.size];
    return lease && { ...lease, do: "lease" };
  }

  describe(lease: ModelLease): string {
    const rest = lease.messages.filter(({ id }) => !lease.settled.has(id));
    return `leased ${lease.token} until ${lease.endsAtMs}: ${rest.map(({ id, deliveries }) => `${id}×${deliveries}`)}`;
  }

  settle(lease: ModelLease, ids: readonly number[], settlement: Settlement): string {
    if (this.#revoked.has(lease.member)) return "not_a_member";
    const holds = (id: number) => this.messages.some((message) => message.id === id && message.heldBy === lease);
    const lost = ids.filter((id) => !lease.settled.has(id) && !holds(id));
    if (lost.length > 0) return `lease_lost ${lost}`;
    for (const id of ids) {
      if (lease.settled.has(id)) continue;
      lease.settled.set(id, settlement);
      const message = this.messages[id - 1];
      if (message === undefined) throw new Error("the model lost a message");
      if (settlement === "nacked") this.#giveBack(message);
      else message.state = "done";
      message.heldBy = undefined;
    }
    return `settled ${ids.map((id) => `${id} ${lease.settled.get(id)}`)}`;
  }

  revive(ids: readonly number[]): string {
    const parked = this.messages.filter(({ id, state }) => state === "parked" && ids.includes(id));
    for (const message of parked) {
      message.state = "waiting";
      message.deliveries = 0;
    }
    return `revived ${parked.length}`;
  }

  revoke(member: number): void {
    this.#revoked.add(member);
    for (const message of this.messages) if (message.heldBy?.member === member) this.#giveBack(message);
  }
}

/** The store under the same steps. Messages are m1, m2, … with history ids 1, 2, … */
class Run {
  readonly #world: World;
  readonly #members: readonly string[];
  readonly #ids = new Map<string, number>();
  #tokens = 0;

  constructor(world: World, members: readonly string[]) {
    this.#world = world;
    this.#members = members;
  }

  memberAt(index: number): string {
    return this.#members[index] ?? "";
  }

  nextToken(): string {
    return `token-${++this.#tokens}`;
  }

  async send(id: number): Promise<void> {
    const result = await this.#world.accept(this.memberAt(0), send(`m${id}`, queue("jobs")));
    if (result.type !== "accepted" || result.historyId !== id) throw new Error("a send was not accepted");
    this.#ids.set(result.brokerMessageId, id);
  }

  brokerIds(ids: readonly number[]): string[] {
    const byId = new Map([...this.#ids].map(([brokerId, id]) => [id, brokerId]));
    return ids.map((id) => byId.get(id) ?? "");
  }

  async lease(step: LeaseStep, leaseToken: string): Promise<LeaseOutcome> {
    const { meshId, store, nowMs } = this.#world;
    const holder = this.memberAt(step.member);
    const terms = { leaseRequestId: `r${step.request}`, max: step.max, leaseSeconds: step.seconds, leaseToken };
    return store.queues.lease({ meshId, queue: "jobs", holder, ...terms }, nowMs);
  }

  async settle(lease: ModelLease, ids: readonly number[], settlement: Settlement): Promise<string> {
    const { meshId, store, nowMs } = this.#world;
    const request = {
      meshId,
      queue: "jobs",
      holder: this.memberAt(lease.member),
      leaseToken: lease.token,
      brokerMessageIds: this.brokerIds(ids),
      settlement,
    };
    const outcome = await store.queues.settle(request, nowMs);
    const idOf = (brokerId: string) => this.#ids.get(brokerId);
    if (outcome.type === "lease_lost") return `lease_lost ${outcome.lost.map(idOf)}`;
    if (outcome.type !== "settled") return outcome.type;
    return `settled ${[...outcome.settlements].map(([brokerId, how]) => `${idOf(brokerId)} ${how}`)}`;
  }

  async revive(ids: readonly number[]): Promise<string> {
    const { meshId, store, nowMs } = this.#world;
    const request = { meshId, queue: "jobs", member: this.memberAt(0), brokerMessageIds: this.brokerIds(ids) };
    const outcome = await store.queues.revive(request, nowMs);
    return outcome.type === "revived" ? `revived ${outcome.revived}` : outcome.type;
  }

  async revoke(member: number): Promise<void> {
    const { meshId, store, nowMs } = this.#world;
    await this.#world.revoke(this.memberAt(member));
    await endMembership({ store: store.memberships, nowMs: () => nowMs }, { meshId, pubkey: this.memberAt(member) });
  }
}

function describeLease(outcome: LeaseOutcome): string {
  if (outcome.type !== "leased") return outcome.type;
  const items = outcome.items.map((item) => `${item.history_id}×${item.deliveries}`);
  return `leased ${outcome.leaseToken} until ${outcome.expiresAtMs}: ${items}`;
}

function chosenOf<T>(from: readonly T[], bits: number): T[] {
  return from.filter((_, index) => ((bits >> (index % 20)) & 1) === 1);
}

async function play(world: World, steps: readonly Step[], meet: (label: string) => void): Promise<void> {
  const run = new Run(world, await world.threeMembers());
  const model = new Model();
  const { store, meshId } = world;
  await store.queues.create(meshId, { id: "jobs", maxDeliveries, createdBy: run.memberAt(0) }, world.nowMs);
  for (const step of steps) {
    model.tick(world.nowMs);
    if (step.do === "send") {
      model.messages.push({ id: model.messages.length + 1, state: "waiting", deliveries: 0, heldBy: undefined });
      await run.send(model.messages.length);
    } else if (step.do === "lease" || step.do === "repeat") {
      const asked = step.do === "lease" ? step : model.requestOf(step.lease);
      if (asked === undefined) continue;
      const token = run.nextToken();
      const outcome = describeLease(await run.lease(asked, token));
      expect(outcome).toBe(model.lease(asked, token, world.nowMs));
      meet(outcome.startsWith("leased") && !outcome.includes(`${token} `) ? "leased_again" : outcome);
      if (outcome === "empty" || outcome.includes(`${token} `)) expect(await countRunOut(world)).toBe(0);
    } else if (step.do === "settle") {
      const leases = [...model.leases.values()];
      const lease = leases[step.lease % leases.length];
      if (lease === undefined) continue;
      const ids = chosenOf(lease.messages, step.chosen).map(({ id }) => id);
      const stray = step.stray && step.chosen % 2 === 0 ? [model.messages.length] : [];
      const asked = [...new Set([...ids, ...stray])];
      if (asked.length === 0) continue;
      const outcome = await run.settle(lease, asked, step.settlement);
      expect(outcome).toBe(model.settle(lease, asked, step.settlement));
      meet(outcome);
    } else if (step.do === "wait") {
      world.nowMs += step.seconds * 1000;
    } else if (step.do === "revive") {
      const ids = chosenOf(model.messages, step.chosen).map(({ id }) => id);
      if (ids.length === 0) continue;
      const outcome = await run.revive(ids);
      expect(outcome).toBe(model.revive(ids));
      meet(outcome === "revived 0" ? "revived_none" : outcome);
    } else {
      await run.revoke(step.member);
      model.revoke(step.member);
      meet("revoked");
    }
  }
  await compareEnd(world, model, meet);
}

/** A lease request has written down what became of every expired lease. */
async function countRunOut(world: World): Promise<number> {
  const rows = await world.query(`SELECT lease_expires_at FROM ${world.table("queue_message")}
    WHERE mesh_id = '${world.meshId}' AND state = 'leased'`);
  return rows.filter((row) => Number(row.lease_expires_at) <= world.nowMs).length;
}

/** Every message is where the model has it, and nowhere else. */
async function compareEnd(world: World, model: Model, meet: (label: string) => void): Promise<void> {
  model.tick(world.nowMs);
  const parked = model.messages.filter(({ state }) => state === "parked");
  const page = await world.store.queues.parked(
    { meshId: world.meshId, queue: "jobs", after: 0, limit: 1_000 },
    world.nowMs,
  );
  expect(page?.items.map((item) => `${item.history_id}×${item.deliveries}`)).toEqual(
    parked.map(({ id, deliveries }) => `${id}×${deliveries}`),
  );
  if (parked.length > 0) meet("parked");
  const rows = await world.query(`SELECT history_id, state FROM ${world.table("queue_message")}
    WHERE mesh_id = '${world.meshId}' AND state = 'acked' ORDER BY history_id`);
  expect(rows.map((row) => Number(row.history_id))).toEqual(
    model.messages.filter(({ state }) => state === "done").map(({ id }) => id),
  );
  // All that is neither parked nor done can still be had, once the leases are over.
  world.nowMs += 60_000;
  model.tick(world.nowMs);
  const last = { meshId: world.meshId, queue: "jobs", holder: "0".repeat(63).concat("1"), max: 1_000 };
  const rest = await world.store.queues.lease(
    { ...last, leaseRequestId: "last", leaseSeconds: 1, leaseToken: "last" },
    world.nowMs,
  );
  expect(rest.type === "leased" ? rest.items.map((item) => item.history_id) : []).toEqual(
    model.messages.filter(({ state }) => state === "waiting").map(({ id }) => id),
  );
}

export function describeQueueModel(shared: () => World): void {
  test("random leases, settlements, time, revivals and revocations answer as the naive model does", async () => {
    const met = new Map<string, number>();
    const meet = (label: string) => {
      const kind = label.split(" ", 1)[0] ?? "";
      met.set(kind, (met.get(kind) ?? 0) + 1);
    };
    let runs = 0;
    const steps = fc.array(anyStep, { minLength: 40, maxLength: 70, size: "max" });
    const property = fc.asyncProperty(steps, async (chosen) => {
      const world = await shared().startOther(`mesh-of-queue-run-${++runs}`);
      try {
        await play(world, chosen, meet);
      } finally {
        await world.close();
      }
    });
    await fc.assert(property, { numRuns: 40 });
    // A run that never met a case would prove nothing about it.
    const floors = {
      leased: 120,
      leased_again: 25,
      different: 12,
      empty: 50,
      lease_lost: 80,
      settled: 80,
      revived: 6,
      revived_none: 25,
      parked: 8,
      revoked: 20,
      not_a_member: 60,
    };
    for (const [kind, floor] of Object.entries(floors)) {
      expect(met.get(kind) ?? 0, `how often ${kind} was met`).toBeGreaterThanOrEqual(floor);
    }
  });
}
