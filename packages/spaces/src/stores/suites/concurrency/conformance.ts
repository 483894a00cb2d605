// Agents that really run at once, through two services over one store. Afterwards the log is replayed serially, and every
// read of every accepted commit must be what was there just before it.
import type { Operation } from "@claudemesh/protocol/spaces/operations";
import { expect, test } from "vitest";
import { look, NaiveSpace, type ObservedRead } from "../../../../../../tests/support/naive-space.ts";
import { entityIds, RandomWork } from "../../../../../../tests/support/random-space-work.ts";
import { createRandom, seedOfTheDay } from "../../../../../../tests/support/seed.ts";
import type { SpacesStore } from "../../../ports.ts";
import { readLog, readMany } from "../../../services/query.ts";
import type { Session, World } from "../../conformance-world.ts";

const agents = 6;
const rounds = 25;

type Attempt = { readonly reads: readonly ObservedRead[]; readonly operations: readonly Operation[] };

export function describeConcurrency(world: () => World): void {
  test("what agents commit at once through two services is what a serial run would have shown (SPC-2, SPC-7)", async () => {
    const seed = seedOfTheDay();
    const stores = [world().store, await world().openAnother()];
    const attempts = new Map<string, Attempt>();
    let fresh = 1;
    let rejected = 0;
    const work = async (session: Session, store: SpacesStore, salt: number): Promise<void> => {
      const random = createRandom(salt);
      const randomWork = new RandomWork(random, () => fresh++);
      for (let round = 0; round < rounds; round++) {
        const { seq, items } = await readMany(world().ports(store), world().space, entityIds, {});
        const documents = new Map(items.map(({ id, document }) => [id, document]));
        const reads = Array.from({ length: 1 + random.below(2) }, (): ObservedRead => {
          const id = random.pick(entityIds);
          const asked = randomWork.read();
          return { id, branch: "", ...asked, seq, seen: look(documents.get(id), asked) };
        });
        const id = random.pick(entityIds);
        const operations = [randomWork.operation(id, documents.get(id))];
        const confirmed = reads.map(({ id: read, path, shallow }) => ({ id: read, path, seq, shallow }));
        const commit = session.build(operations, { confirmed });
        attempts.set(`${session.opened.sessionId} ${commit.localSeq}`, { reads, operations });
        const verdict = await session.send(commit, session.opened, store);
        if (verdict.type === "rejected") rejected += 1;
      }
    };
    const sessions = await Promise.all(Array.from({ length: agents }, () => world().session()));
    await Promise.all(
      sessions.map((session, index) => work(session, stores[index % 2] ?? world().store, seed * agents + index)),
    );

    const model = new NaiveSpace();
    const { items } = await readLog(world().ports(), world().space, 0, 1_000);
    for (const [index, entry] of items.entries()) {
      expect(entry.seq).toBe(index + 1);
      const attempt = attempts.get(`${entry.sessionId} ${entry.localSeq}`);
      if (attempt === undefined) throw new Error(`nobody sent commit ${entry.seq}`);
      expect(attempt.reads.flatMap((read) => model.refute(read) ?? [])).toEqual([]);
      model.accept("", attempt.operations);
    }
    expect(items.length + rejected).toBe(agents * rounds);
    expect(items.length).toBeGreaterThan(rounds);
    expect(rejected).toBeGreaterThan(0);
    const { items: now } = await readMany(world().ports(), world().space, entityIds, {});
    const documents = now.flatMap(({ id, document }) => (document === undefined ? [] : [[id, document] as const]));
    expect(new Map(documents)).toEqual(new Map([...model.stateAt("", model.lastSeq)].sort()));
  });
}
