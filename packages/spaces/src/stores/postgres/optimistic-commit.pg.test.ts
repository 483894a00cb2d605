// A commit that was decided on the cache and the rows as they were last seen, and what came between: each test changes one
// thing, before the conditional statement is sent or while it waits for the space's lock, and expects what a broker without a
// cache would answer.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import type { SpacesStore } from "../../ports.ts";
import { deleteBranch } from "../../services/branches.ts";
import { openSession } from "../../services/open-session.ts";
import { setSignedWrites } from "../../services/spaces.ts";
import { alice, brief, patch, read, refusal, type Session, set, World } from "../suites/world.ts";
import { PostgresHarness } from "./testing/postgres-harness.ts";

const database = await createTestDatabase("optimistic");
afterAll(() => database?.drop());

/** A broker's store that counts its transactions, and can stop before COMMIT. */
class Broker {
  readonly store: SpacesStore;
  tries = 0;
  commits = 0;
  beforeCommit: () => Promise<void> = async () => undefined;

  constructor(harness: PostgresHarness) {
    const before = () => {
      this.tries += 1;
      return this.beforeCommit();
    };
    const after = () => {
      this.commits += 1;
    };
    this.store = harness.createStore({ before, after });
  }
}

describe.skipIf(database === undefined)("an optimistic commit", () => {
  const harness = new PostgresHarness(database?.url ?? "");
  let world: World;
  let ours: Broker;
  let theirs: Broker;
  let session: Session;
  let seq: number;

  beforeAll(() => harness.connect());
  afterAll(() => harness.end());
  beforeEach(async () => {
    world = await World.start(harness);
    ours = new Broker(harness);
    theirs = new Broker(harness);
    session = await world.session();
    await write(set("t:1", { n: 0, other: 0 }));
    await write(set("t:2", { n: 0 }));
    seq = await write(patch("t:1", { op: "replace", path: "/value/n", value: 1 }));
    [ours.tries, ours.commits] = [0, 0];
  });
  afterEach(() => world.close());

  async function write(...operations: Parameters<Session["build"]>[0]): Promise<number> {
    const verdict = await session.send(session.build(operations), session.opened, ours.store);
    if (verdict.type === "rejected") throw verdict.error;
    return verdict.seq;
  }

  /** A patch of the field that the session knows, through the broker that has it cached. */
  const commitOurs = (parts: { branch?: string } = {}) => {
    const confirmed = [read("t:1", seq, "n")];
    const operation = patch("t:1", { op: "replace", path: "/value/n", value: 2 });
    return session.send(session.build([operation], { confirmed, ...parts }), session.opened, ours.store);
  };

  const theirSession = async () => {
    const other = await world.session();
    return {
      write: (...ops: Parameters<Session["build"]>[0]) => other.send(other.build(ops), other.opened, theirs.store),
    };
  };

  /** Begins the second when the first stands before its COMMIT, and lets that go on once the second waits for the lock. */
  async function whileItWaits<T>(first: () => Promise<unknown>, second: () => Promise<T>): Promise<T> {
    let waiting: Promise<T> | undefined;
    theirs.beforeCommit = async () => {
      theirs.beforeCommit = async () => undefined;
      waiting = second();
      waiting.catch(() => undefined);
      while (!(await isWaiting())) await new Promise(setImmediate);
    };
    await first();
    if (waiting === undefined) throw new Error("nothing was committed");
    return waiting;
  }

  async function isWaiting(): Promise<boolean> {
    const rows = await world.query(`SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
      AND wait_event_type = 'Lock' AND query LIKE 'WITH%held AS MATERIALIZED%'`);
    return rows.length > 0;
  }

  test("costs one transaction where everything is as it was", async () => {
    expect(brief(await commitOurs())).toBe(seq + 1);
    expect([ours.tries, ours.commits]).toEqual([1, 1]);
  });

  test("that another broker's commit overtook is decided again: a conflict is found, and a seq is given once", async () => {
    const other = await theirSession();
    await other.write(patch("t:1", { op: "replace", path: "/value/n", value: 7 }));
    expect(brief(await commitOurs())).toBe("ConflictError");
    expect([ours.tries, ours.commits]).toEqual([2, 1]);
  });

  test("waits for another broker's commit and sees it", async () => {
    const other = await theirSession();
    const stale = await whileItWaits(
      () => other.write(patch("t:1", { op: "replace", path: "/value/n", value: 7 })),
      commitOurs,
    );
    expect(brief(stale)).toBe("ConflictError");
    expect(await world.document("t:1")).toMatchObject({ value: { n: 7 } });
  });

  test("that waited for a commit of something else has the seq behind it", async () => {
    const other = await theirSession();
    const verdict = await whileItWaits(
      () => other.write(patch("t:2", { op: "replace", path: "/value/n", value: 7 })),
      commitOurs,
    );
    expect(brief(verdict)).toBe(seq + 2);
    expect(await world.lastSeq()).toBe(seq + 2);
    expect(await world.document("t:1")).toMatchObject({ value: { n: 2 } });
  });

  test("that waited for a transaction that left everything as it was is written as it was decided", async () => {
    const openAnother = () => openSession(world.ports(theirs.store), world.space, alice, { openId: "another" });
    expect(brief(await whileItWaits(openAnother, commitOurs))).toBe(seq + 1);
    expect([ours.tries, ours.commits]).toEqual([1, 1]);
    expect(await world.document("t:1")).toMatchObject({ value: { n: 2 } });
  });

  test("is refused when the session was taken over before it or while it waits (SPC-4)", async () => {
    const { sessionId, sessionToken } = session.opened;
    const takeOver = (token: string, openId: string) =>
      openSession(world.ports(theirs.store), world.space, alice, { openId, sessionId, sessionToken: token });
    let taken = sessionToken;
    const waited = whileItWaits(async () => {
      taken = (await takeOver(sessionToken, "take-1")).sessionToken;
    }, commitOurs);
    expect(await refusal(waited)).toBe("session_revoked_error");
    await takeOver(taken, "take-2");
    expect(await refusal(commitOurs())).toBe("session_revoked_error");
    expect(await world.lastSeq()).toBe(seq);
  });

  test("is refused on a branch that was deleted while it waits", async () => {
    await session.createBranch("draft");
    seq = await write(patch("t:1", { op: "replace", path: "/value/n", value: 1 }));
    const parts = { branch: "draft" };
    const onDraft = () => session.send(session.build([set("t:3", { n: 1 })], parts), session.opened, ours.store);
    await onDraft();
    await onDraft();
    const other = await world.session();
    const request = { ...other.opened, localSeq: 1, name: "draft" };
    const late = whileItWaits(() => deleteBranch(world.ports(theirs.store), world.space, alice, request), onDraft);
    expect(await refusal(late)).toBe("branch_deleted");
  });

  test("gets the verdict that another broker gave it, also a rejection, which has no seq (SPC-1)", async () => {
    const commit = session.build([patch("t:1", { op: "remove", path: "/value/gone" })]);
    const first = await session.send(commit, session.opened, theirs.store);
    expect(brief(first)).toBe("PatchError");
    const again = await session.send(commit, session.opened, ours.store);
    expect([brief(again), again.replayed]).toEqual(["PatchError", true]);
    // One without a cache holds the lock when it stands before its COMMIT.
    theirs = new Broker(harness);
    const late = session.build([set("t:9", { n: 1 })]);
    const waited = await whileItWaits(
      () => session.send(late, session.opened, theirs.store),
      () => session.send(late, session.opened, ours.store),
    );
    expect([brief(waited), waited.replayed]).toEqual([seq + 1, true]);
  });

  test("does not pass one of its session that another broker rejected (SPC-1)", async () => {
    const operation = patch("t:1", { op: "remove", path: "/value/gone" });
    const later = session.build([operation], { localSeq: session.nextLocalSeq + 1 });
    expect(brief(await session.send(later, session.opened, theirs.store))).toBe("PatchError");
    const passed = session.build([set("t:1", { n: 3 })], { localSeq: session.nextLocalSeq - 2 });
    expect(await refusal(session.send(passed, session.opened, ours.store))).toBe("local_seq_passed_error");
    expect(await world.lastSeq()).toBe(seq);
  });

  test("without the signature that is asked for by now is refused", async () => {
    await setSignedWrites(world.ports(theirs.store), world.space, "required");
    expect(await refusal(commitOurs())).toBe("forbidden");
    expect(await world.lastSeq()).toBe(seq);
  });

  test("of a member who was removed is refused", async () => {
    await world.query(`UPDATE mesh.member SET revoked_at = now() WHERE pubkey = '${alice}'`);
    expect(await refusal(commitOurs())).toBe("unauthorized");
    expect(await world.lastSeq()).toBe(seq);
  });

  test("that fails before COMMIT leaves nothing, and nothing of it is cached", async () => {
    ours.beforeCommit = async () => {
      ours.beforeCommit = async () => undefined;
      throw new Error("planned failure");
    };
    await expect(commitOurs()).rejects.toThrow("planned failure");
    expect(await world.lastSeq()).toBe(seq);
    expect(await world.document("t:1")).toMatchObject({ value: { n: 1 } });
    expect(brief(await commitOurs())).toBe(seq + 1);
  });
});
