// Agents that really run at once, through two services over one store. Afterwards the log is replayed serially, and every
// read of every accepted commit must be what was there just before it.
import type { Operation } from "@claudemesh/protocol/spaces/operations";
import { expect, test } from "vitest";
import { look, NaiveSpace, type ObservedRead } from "../../../../../tests/support/naive-space.ts";
import { entityIds, RandomWork } from "../../../../../tests/support/random-space-work.ts";
import { createRandom, seedOfTheDay } from "../../../../../tests/support/seed.ts";
import type { SpacesStore } from "../../ports.ts";
import { readLog, readMany } from "../../services/query.ts";
import type { Session, World } from "./world.ts";

const agents = 6;
const rounds = 25;
const stretches = 60;

type Attempt = { readonly reads: readonly ObservedRead[]; readonly operations: readonly Operation[] };

/** An agent that reads, and commits what it makes of it. */
class Agent {
  readonly #world: World;
  readonly #session: Session;
  readonly #store: SpacesStore;
  readonly #random: ReturnType<typeof createRandom>;
  readonly #work: RandomWork;
  readonly #attempts: Map<string, Attempt>;
  rejected = 0;

  constructor(world: World, session: Session, store: SpacesStore, salt: number, attempts: Map<string, Attempt>) {
    this.#world = world;
    this.#session = session;
    this.#store = store;
    this.#random = createRandom(salt);
    let fresh = salt * 1_000;
    this.#work = new RandomWork(this.#random, () => fresh++);
    this.#attempts = attempts;
  }

  async commit(times: number): Promise<void> {
    for (let time = 0; time < times; time++) await this.#commitOnce();
  }

  async #commitOnce(): Promise<void> {
    const { seq, items } = await readMany(this.#world.ports(this.#store), this.#world.space, entityIds, {});
    const documents = new Map(items.map(({ id, document }) => [id, document]));
    const reads = Array.from({ length: 1 + this.#random.below(2) }, (): ObservedRead => {
      const id = this.#random.pick(entityIds);
      const asked = this.#work.read();
      return { id, branch: "", ...asked, seq, seen: look(documents.get(id), asked) };
    });
    const id = this.#random.pick(entityIds);
    const operations = [this.#work.operation(id, documents.get(id))];
    const confirmed = reads.map(({ id: read, path, shallow }) => ({ id: read, path, seq, shallow }));
    const commit = this.#session.build(operations, { confirmed });
    this.#attempts.set(`${this.#session.opened.sessionId} ${commit.localSeq}`, { reads, operations });
    const verdict = await this.#session.send(commit, this.#session.opened, this.#store);
    if (verdict.type === "rejected") this.rejected += 1;
  }
}

export function describeConcurrency(world: () => World): void {
  async function gather(count: number, seed: number): Promise<{ attempts: Map<string, Attempt>; gathered: Agent[] }> {
    const attempts = new Map<string, Attempt>();
    const stores = [world().store, await world().openAnother()];
    const sessions = await Promise.all(Array.from({ length: count }, () => world().session()));
    const gathered = sessions.map((session, index) => {
      return new Agent(world(), session, stores[index % 2] ?? world().store, seed * count + index, attempts);
    });
    return { attempts, gathered };
  }

  /** Returns how many were accepted. */
  async function replayLog(attempts: ReadonlyMap<string, Attempt>): Promise<number> {
    const model = new NaiveSpace();
    const { items } = await readLog(world().ports(), world().space, { after: 0 }, 1_000);
    for (const [index, entry] of items.entries()) {
      expect(entry.seq).toBe(index + 1);
      const attempt = attempts.get(`${entry.sessionId} ${entry.localSeq}`);
      if (attempt === undefined) throw new Error(`commit ${entry.seq} was never sent`);
      expect(attempt.reads.flatMap((read) => model.refute(read) ?? [])).toEqual([]);
      model.accept("", attempt.operations);
    }
    const { items: now } = await readMany(world().ports(), world().space, entityIds, {});
    const documents = now.flatMap(({ id, document }) => (document === undefined ? [] : [[id, document] as const]));
    expect(new Map(documents)).toEqual(new Map([...model.stateAt("", model.lastSeq)].sort()));
    return items.length;
  }

  test("what agents commit at once through two services is what a serial run would have shown (SPC-2, SPC-7)", async () => {
    const { attempts, gathered } = await gather(agents, seedOfTheDay());
    await Promise.all(gathered.map((agent) => agent.commit(rounds)));
    const accepted = await replayLog(attempts);
    const rejected = gathered.reduce((sum, agent) => sum + agent.rejected, 0);
    expect(accepted + rejected).toBe(agents * rounds);
    expect(accepted).toBeGreaterThan(rounds);
    expect(rejected).toBeGreaterThan(0);
  });

  test("so is what two agents commit now alone, now at once, each through its own service (SPC-17, SPC-18)", async () => {
    const seed = seedOfTheDay();
    const random = createRandom(seed);
    const { attempts, gathered } = await gather(2, seed);
    for (let stretch = 0; stretch < stretches; stretch++) {
      const chosen = random.pick([gathered.slice(0, 1), gathered.slice(1), gathered]);
      await Promise.all(chosen.map((agent) => agent.commit(1 + random.below(4))));
    }
    const accepted = await replayLog(attempts);
    expect(accepted + gathered.reduce((sum, agent) => sum + agent.rejected, 0)).toBe(attempts.size);
    expect(accepted).toBeGreaterThan(stretches);
  });
}
