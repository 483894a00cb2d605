// The work of commits, bounded: what is too much consumes nothing, what is not stays quick to read, and a bound on what is
// looked at never lets a stale read pass.
import type { FabricObject } from "@claudemesh/protocol/spaces/fabric-value";
import type { Operation, PatchOp } from "@claudemesh/protocol/spaces/operations";
import { Work } from "@claudemesh/protocol/spaces/work";
import { expect, test } from "vitest";
import { changesByPrefix } from "../../services/changes.ts";
import { findVerdict, listByPrefix, readLog, readMany } from "../../services/query.ts";
import { alice, brief, patch, read, refusal, type Session, set, type World } from "./world.ts";

const zeros = Array(300_000).fill(0) as number[];
const spliceAtHead: PatchOp = { op: "splice", path: "/value", index: 0, remove: 0, add: [1] };
const splices = (count: number): Operation[] => Array.from({ length: count }, () => patch("big:1", spliceAtHead));

export function describeWork(world: () => World): void {
  test("a commit that is too expensive says by how much, consumes nothing and is no verdict; its localSeq is free", async () => {
    const session = await world().session();
    await session.write([{ op: "set", id: "big:1", value: { value: zeros } }]);
    const localSeq = 7;
    const sent = session.send(session.build(splices(2_000), { localSeq }));
    const error = await sent.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "commit_too_expensive", status: 422, retryable: false });
    const { work, limit } = (error as { details: { work: number; limit: number } }).details;
    expect(work).toBeGreaterThan(limit);
    const { sessionId } = session.opened;
    expect(await refusal(findVerdict(world().ports(), world().space, alice, sessionId, localSeq))).toBe(
      "commit_not_found",
    );
    expect((await world().document("big:1"))?.value).toHaveLength(300_000);
    // In parts it passes, the first of them under the same number.
    expect(brief(await session.send(session.build(splices(100), { localSeq })))).toBe(2);
    expect(brief(await session.commit(splices(100)))).toBe(3);
    expect((await world().document("big:1"))?.value).toHaveLength(300_200);
  });

  test("a commit that reads many documents with many keys is refused before it has read a tenth of a second of them", async () => {
    const session = await world().session();
    const wide = Object.fromEntries(Array.from({ length: 40_000 }, (_, key) => [`key ${key}`, 1]));
    const ids = Array.from({ length: 12 }, (_, index) => `wide:${index}`);
    for (const id of ids) await session.write([{ op: "set", id, value: { value: wide } }]);
    await world().reopen();
    const touch: PatchOp = { op: "add", path: "/note", value: 1 };
    const reader = await world().session();
    const error = await reader.commit(ids.map((id) => patch(id, touch))).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "commit_too_expensive" });
    // One of them is an ordinary commit.
    expect(brief(await reader.commit([patch("wide:0", touch)]))).toBe(13);
  });

  test("neighbours of a commit that is too expensive are decided as if it had not come", async () => {
    const session = await world().session();
    await session.write([{ op: "set", id: "big:1", value: { value: zeros } }]);
    const other = await world().session();
    const outcomes = await Promise.all([
      other.commit([set("a:1", { n: 1 })]),
      refusal(session.send(session.build(splices(2_000)))),
      session.commit(splices(50)),
      other.commit([set("a:1", { n: 2 })]),
    ]);
    expect(outcomes[1]).toBe("commit_too_expensive");
    expect(await world().document("a:1")).toEqual({ value: { n: 2 } });
    expect((await world().document("big:1"))?.value).toHaveLength(300_050);
  });

  test("a document is written out when replaying it has become work, not only when it was patched often", async () => {
    const session = await world().session();
    const snapshots = async () => (await world().query(`SELECT seq FROM ${world().table("space_snapshot")}`)).length;
    await session.write([{ op: "set", id: "big:1", value: { value: zeros } }]);
    await session.commit([patch("big:1", { op: "replace", path: "/value/0", value: 1 })]);
    expect(await snapshots()).toBe(0);
    await session.commit(splices(50));
    expect(await snapshots()).toBe(1);
    await world().reopen();
    await session.commit([patch("big:1", { op: "replace", path: "/value/0", value: 2 })]);
    expect((await world().document("big:1"))?.value).toHaveLength(300_050);
  });

  test("SPC-2: behind more later writes than are looked through, a read counts as stale, however few rows they are", async () => {
    const session = await world().session();
    const seen = await session.write([set("a:1", { kept: 1, other: {} })]);
    // The only write that matters is the oldest; what came later is long.
    await session.write([patch("a:1", { op: "replace", path: "/value/kept", value: 2 })]);
    for (let n = 0; n < 4; n += 1) await session.commit([patch("a:1", ...longPatches(n))]);
    await world().reopen();
    const commit = (confirmed: ReturnType<typeof read>) => session.commit([set("b:1", {})], { confirmed: [confirmed] });
    expect(brief(await commit(read("a:1", seen, "kept")))).toBe("ConflictError");
    expect(brief(await commit(read("a:1", seen + 4, "kept")))).toBe(seen + 6);
  });

  test("many reads against many later writes are each judged as alone", async () => {
    const session = await world().session();
    const keys = Array.from({ length: 400 }, (_, n) => `k${n}`);
    const seen = await session.write([set("a:1", Object.fromEntries(keys.map((key) => [key, 0])))]);
    const changed = keys.filter((_, n) => n % 40 === 7);
    for (let n = 0; n < 20; n += 1) {
      const patches = changed.map((key): PatchOp => ({ op: "replace", path: `/value/${key}`, value: n }));
      await session.commit([patch("a:1", ...patches)]);
    }
    const confirmed = keys.map((key) => read("a:1", seen, key));
    const verdict = await session.commit([set("b:1", {})], { confirmed });
    if (verdict.type !== "rejected") throw new Error("not rejected");
    const { conflicts } = verdict.error.details as { conflicts: { path: string[]; actual: { seq: number } }[] };
    expect(conflicts.map(({ path }) => path[1])).toEqual(changed);
    expect(new Set(conflicts.map(({ actual }) => actual.seq))).toEqual(new Set([seen + 20]));
    const unchanged = confirmed.filter(({ path }) => !changed.includes(path[1] ?? ""));
    expect(brief(await session.commit([set("b:1", {})], { confirmed: unchanged }))).toBe(seen + 21);
  });

  test("a conflict of very many large entities tells the seq of each, and shows the values that there is room for", async () => {
    const session = await world().session();
    const ids = Array.from({ length: 12 }, (_, n) => `big:${n}`);
    await writeLarge(session, ids);
    const confirmed = ids.map((id) => read(id, 0));
    const verdict = await session.commit([set("b:1", {})], { confirmed });
    if (verdict.type !== "rejected") throw new Error("not rejected");
    const { conflicts } = verdict.error.details as { conflicts: { actual: { seq: number; value?: unknown } }[] };
    expect(conflicts.map(({ actual }) => actual.seq)).toEqual(ids.map((_, n) => n + 1));
    expect(conflicts.filter(({ actual }) => actual.value !== undefined)).toHaveLength(0);
  });

  test("what one turn may read ends with what has become much, and says where it goes on, until all is read", async () => {
    const session = await world().session();
    await session.write(["a:0", "a:1", "a:2"].map((id) => set(id, { small: true })));
    const large = ["a:3", "a:4", "a:5", "a:6"];
    await writeLarge(session, large);
    const ids = ["a:0", "a:1", "a:2", ...large];
    const ports = world().ports();
    const pages: string[][] = [];
    let cursor: string | undefined;
    do {
      const query = { prefix: "a:", cursor, limit: 100, work: new Work() };
      const page = await listByPrefix(ports, world().space, query);
      pages.push(page.items.map(({ id }) => id));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(pages).toEqual([["a:0", "a:1", "a:2", "a:3"], ["a:4"], ["a:5"], ["a:6"]]);
    const ofIds = await readMany(ports, world().space, ids, { work: new Work() });
    expect([ofIds.read, ofIds.items.length]).toEqual([4, 4]);
    const changes = await changesByPrefix(ports, world().space, {
      prefix: "a:",
      sinceSeq: 0,
      limit: 100,
      work: new Work(),
    });
    expect([changes.items.length, changes.nextCursor]).toEqual([4, "a:3"]);
    // Who sets no bound gets all.
    expect((await readMany(ports, world().space, ids, {})).items).toHaveLength(7);
  });

  test("pending reads of content that was moved very often are counted, however short the commit is that moved it", async () => {
    const session = await world().session();
    const deep = Array.from({ length: 100 }, () => "a");
    const base = `/value/${deep.join("/")}`;
    let value: FabricObject = Object.fromEntries(Array.from({ length: 70 }, (_, n) => [`x${n}`, n]));
    for (const key of deep) value = { [key]: value };
    const seen = await session.write([set("a:1", value)]);
    const moves = Array.from({ length: 64 }, (_, n): PatchOp => {
      return { op: "move", from: `${base}/x${63 - n}`, path: `${base}/x${64 - n}` };
    });
    await session.write([patch("a:1", { op: "remove", path: `${base}/x64` }, ...moves)], { localSeq: 40 });
    const pending = Array.from({ length: 2_000 }, (_, n) => {
      return { id: "a:1", path: ["value", ...deep, "x0", `n${n}`], localSeq: 40, basisSeq: seen };
    });
    expect(await refusal(session.commit([set("b:1", {})], { pending }))).toBe("commit_too_expensive");
    expect(brief(await session.commit([set("b:1", {})], { pending: pending.slice(0, 10) }))).toBe(3);
  });

  test("the log is paged by size as well: a page ends early, says where it goes on, and all of it can be read", async () => {
    const session = await world().session();
    const ids = Array.from({ length: 6 }, (_, n) => `big:${n}`);
    await writeLarge(session, ids);
    const seqs: number[] = [];
    let after: number | undefined = 0;
    let pages = 0;
    while (after !== undefined) {
      const page: Awaited<ReturnType<typeof readLog>> = await readLog(world().ports(), world().space, { after }, 100);
      expect(page.items.length).toBeGreaterThan(0);
      expect(page.items.length).toBeLessThan(6);
      seqs.push(...page.items.map(({ seq }) => seq));
      after = page.nextAfter;
      pages += 1;
    }
    expect(seqs).toEqual([1, 2, 3, 4, 5, 6]);
    expect(pages).toBeGreaterThan(1);
  });
}

/** Of values that are never read, under keys that make their footprint long. */
function longPatches(round: number): PatchOp[] {
  const key = "x".repeat(500);
  return Array.from({ length: 300 }, (_, n) => ({ op: "add", path: `/value/other/${key}${round}-${n}`, value: 0 }));
}

async function writeLarge(session: Session, ids: readonly string[]): Promise<void> {
  const text = "x".repeat(700_000);
  for (const id of ids) await session.write([set(id, { text })]);
}
