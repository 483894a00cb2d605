// Commits to entities that are not cached: what many of them at once ask for, and that none of them is decided on what another
// of the same transaction has changed.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import type { SpacesStore } from "../../ports.ts";
import { patch, read, type Session, set, World } from "../suites/world.ts";
import { PostgresHarness } from "./testing/postgres-harness.ts";

const database = await createTestDatabase("prefetch");
afterAll(() => database?.drop());

const ids = ["t:1", "t:2", "t:3", "t:4", "t:5"];

describe.skipIf(database === undefined)("commits to entities that are not cached", () => {
  const harness = new PostgresHarness(database?.url ?? "");
  let world: World;
  let sessions: Session[];
  let seq: number;
  let store: SpacesStore;

  beforeAll(() => harness.connect());
  afterAll(() => harness.end());
  beforeEach(async () => {
    world = await World.start(harness);
    sessions = await Promise.all(ids.map(() => world.session()));
    const [first] = sessions;
    const written = await first?.send(first.build(ids.map((id) => set(id, { n: 0, other: 0 }))), first.opened);
    if (written?.type !== "accepted") throw new Error("the entities could not be written");
    seq = written.seq;
    store = forgetful();
    harness.asked.length = 0;
  });
  afterEach(() => world.close());

  /** Has cached nothing of what was written before it was made. */
  const forgetful = () => harness.createStore();
  const increment = (id: string) => patch(id, { op: "replace", path: "/value/n", value: 1 });
  /** Each session has read the entity's field, and patches it; all of them at once. */
  const commitAll = (idOf: (n: number) => string) =>
    Promise.all(
      sessions.map((session, n) => {
        const confirmed = [read(idOf(n), seq, "n")];
        return session.send(session.build([increment(idOf(n))], { confirmed }), session.opened, store);
      }),
    );
  const reads = () => harness.asked.filter((name) => /^space_(branches|writes|tails)$/.test(name));

  test("ask together, behind the lock, and then for nothing more", async () => {
    const verdicts = await commitAll((n) => ids[n] ?? "");
    expect(verdicts.map(({ type }) => type)).toEqual(ids.map(() => "accepted"));
    expect(reads()).toEqual(["space_branches", "space_writes", "space_tails"]);
    const documents = await Promise.all(ids.map((id) => world.document(id)));
    expect(documents).toEqual(ids.map(() => ({ value: { n: 1, other: 0 } })));
  });

  test("see what was written before them in the same transaction: of those who read the same, one is accepted", async () => {
    const verdicts = await commitAll(() => "t:1");
    expect(verdicts.map(({ type }) => type).sort()).toEqual(["accepted", ...ids.slice(1).map(() => "rejected")]);
    expect(await world.document("t:1")).toEqual({ value: { n: 1, other: 0 } });
  });

  test("build on each other where they read different fields of one entity", async () => {
    const fields = ["n", "other"];
    const verdicts = await Promise.all(
      fields.map((field, n) => {
        const session = sessions[n] as Session;
        const operation = patch("t:2", { op: "replace", path: `/value/${field}`, value: 7 });
        return session.send(
          session.build([operation], { confirmed: [read("t:2", seq, field)] }),
          session.opened,
          store,
        );
      }),
    );
    expect(verdicts.map(({ type }) => type)).toEqual(["accepted", "accepted"]);
    expect(await world.document("t:2")).toEqual({ value: { n: 7, other: 7 } });
  });

  test("see a write however many came after it", async () => {
    const [session] = sessions as [Session];
    const other = patch("t:4", { op: "replace", path: "/value/other", value: 1 });
    await session.send(session.build([increment("t:4")]), session.opened);
    await session.send(session.build(Array(100).fill(other)), session.opened);
    const [verdict] = await commitAll(() => "t:4");
    expect(verdict).toMatchObject({ type: "rejected", error: { code: "conflict_error" } });
  });

  test("on a branch see what shows through from below, also where the branch itself has nothing but patches", async () => {
    const [session] = sessions as [Session];
    await session.createBranch("draft");
    for (const field of ["n", "other"]) {
      const operation = patch("t:3", { op: "replace", path: `/value/${field}`, value: 5 });
      const commit = session.build([operation], { branch: "draft", confirmed: [read("t:3", seq, field)] });
      expect(await session.send(commit, session.opened, forgetful())).toMatchObject({ type: "accepted" });
    }
    expect(await world.document("t:3", "draft")).toEqual({ value: { n: 5, other: 5 } });
    expect(await world.document("t:3")).toEqual({ value: { n: 0, other: 0 } });
  });

  test("ask together also for what is cached, where another broker commits to the space", async () => {
    const [, , , , other] = sessions as [Session, Session, Session, Session, Session];
    const theirs = forgetful();
    const otherWrites = async () => {
      const verdict = await other.send(other.build([set("t:9", { n: 0 })]), other.opened, theirs);
      if (verdict.type === "accepted") seq = verdict.seq;
    };
    for (let turn = 0; turn < 3; turn += 1) {
      await otherWrites();
      harness.asked.length = 0;
      sessions = sessions.slice(0, 4);
      expect((await commitAll((n) => ids[n] ?? "")).map(({ type }) => type)).toEqual(Array(4).fill("accepted"));
    }
    expect(reads()).toEqual(["space_branches", "space_writes", "space_tails"]);
  });
});
