// Reading: now and as of any seq, one, many and by prefix, changes since a seq; with snapshots and without.
import { encodeFabric, type FabricObject } from "@claudemesh/protocol/spaces/fabric-value";
import { expect, test } from "vitest";
import { changesByPrefix, changesOfIds } from "../../services/changes.ts";
import { listByPrefix, readEntity, readLog } from "../../services/query.ts";
import { patch, read, refusal, remove, set, type World } from "./world.ts";

export function describeReading(world: () => World): void {
  test("absent, deleted and present are different answers", async () => {
    const session = await world().session();
    await session.write([set("task:1", { n: 1 }), set("task:2", { n: 1 })]);
    await session.write([remove("task:2")]);
    const at = (id: string) => readEntity(world().ports(), world().space, id, {});
    expect(await at("task:1")).toEqual({ id: "task:1", seq: 1, branch: "", document: { value: { n: 1 } } });
    expect(await at("task:2")).toEqual({ id: "task:2", seq: 2, branch: "", document: undefined });
    expect(await refusal(at("task:3"))).toBe("entity_not_found");
    expect(await refusal(readEntity(world().ports(), world().space, "task:1", { atSeq: 3 }))).toBe("seq_out_of_range");
    expect(await refusal(readEntity(world().ports(), world().space, "task:1", { branch: "x" }))).toBe(
      "branch_not_found",
    );
    expect(await refusal(readEntity(world().ports(), { ...world().space, spaceId: "x" }, "a:1", {}))).toBe(
      "space_not_found",
    );
  });

  test("what a full write has replaced is not read again", async () => {
    const session = await world().session();
    for (let n = 1; n <= 3; n++) await session.write([set("task:1", { n })]);
    for (let n = 4; n <= 5; n++) await session.write([patch("task:1", { op: "replace", path: "/value/n", value: n })]);
    const tail = async (upTo: number) => {
      const ask = { branch: "", entityId: "task:1", upTo };
      const [found] = await world().store.read(world().space, (view) => view.readTails([ask], 32));
      return found?.revisions.map(({ seq }) => seq);
    };
    expect(await tail(5)).toEqual([5, 4, 3]);
    expect(await tail(3)).toEqual([3]);
    expect(await world().document("task:1")).toEqual({ value: { n: 5 } });
    expect(await world().document("task:1", "", 2)).toEqual({ value: { n: 2 } });
  });

  test("every seq of a long history can be read, and deleting the snapshots loses nothing", async () => {
    const session = await world().session();
    await session.write([set("list:1", { items: [] })]);
    for (let n = 1; n <= 75; n++) {
      await session.write([
        patch("list:1", { op: "add", path: "/value/items/-", value: n }),
        patch("list:1", { op: "add", path: "/value/count", value: n }),
      ]);
    }
    expect(await world().count("space_snapshot")).toBeGreaterThanOrEqual(7);
    const all = async () => {
      const items: unknown[] = [];
      for (let seq = 1; seq <= 76; seq += 5) items.push(await world().document("list:1", "", seq));
      return items;
    };
    const before = await all();
    expect(before[3]).toEqual({ value: { items: Array.from({ length: 15 }, (_, n) => n + 1), count: 15 } });
    await world().store.dropSnapshots(world().space);
    expect(await world().count("space_snapshot")).toBe(0);
    expect(await all()).toEqual(before);
    await session.write([patch("list:1", { op: "replace", path: "/value/count", value: 0 })]);
    expect(await world().count("space_snapshot")).toBe(1);
    expect(await all()).toEqual(before);
  });

  test("every value comes back as it went in, through set, patch, snapshot and conflict", async () => {
    const session = await world().session();
    const odd: FabricObject = JSON.parse(
      '{"__proto__": 1, "constructor": "c", "": null, "/": {"/": []}, "nul": "\\u0000"}',
    );
    const values: FabricObject = {
      big: 2n ** 70n,
      nothing: undefined,
      bytes: new Uint8Array([0, 255]),
      odd,
      deep: [[{}]],
    };
    await session.write([set("task:1", values), set("task:2", {})]);
    for (let n = 0; n < 12; n++) {
      await session.write([patch("task:2", { op: "add", path: "/value/copy", value: values })]);
    }
    expect(await world().count("space_snapshot")).toBeGreaterThan(0);
    await world().reopen();
    expect(await world().document("task:1")).toStrictEqual({ value: values });
    expect(await world().document("task:2")).toStrictEqual({ value: { copy: values } });
    const verdict = await session.commit([set("task:3", {})], { confirmed: [read("task:2", 1, "copy")] });
    if (verdict.type !== "rejected") throw new Error("accepted");
    expect(verdict.error.details).toMatchObject({ conflicts: [{ actual: { value: encodeFabric(values) } }] });
  });

  test("a listing by prefix goes page by page in the order of bytes and leaves out what is deleted", async () => {
    const session = await world().session();
    const ids = ["task:1", "task:2", "task:3", "task:ä", "task:\u{ffff}", "task:\u{1f600}", "tasks:1", "tas:1"];
    await session.write(ids.map((id) => set(id, { id })));
    await session.write([remove("task:2")]);
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await listByPrefix(world().ports(), world().space, { prefix: "task:", cursor, limit: 2 });
      found.push(...page.items.map(({ id }) => id));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(found).toEqual(["task:1", "task:3", "task:ä", "task:\u{ffff}", "task:\u{1f600}"]);
    const past = await listByPrefix(world().ports(), world().space, { prefix: "task:2", atSeq: 1, limit: 10 });
    expect(past.items.map(({ id }) => id)).toEqual(["task:2"]);
  });

  test("changes since a seq are the latest state of each entity, deletions among them", async () => {
    const session = await world().session();
    await session.write([set("task:1", { n: 1 }), set("task:2", { n: 1 }), set("note:1", { n: 1 })]);
    await session.write([set("task:1", { n: 2 })]);
    await session.write([remove("task:2"), set("note:1", { n: 2 })]);
    const query = { sinceSeq: 1, prefix: "task:", limit: 10 };
    const byPrefix = await changesByPrefix(world().ports(), world().space, query);
    expect(byPrefix).toEqual({
      toSeq: 3,
      nextCursor: undefined,
      items: [
        { id: "task:1", seq: 2, branch: "", document: { value: { n: 2 } } },
        { id: "task:2", seq: 3, branch: "", document: undefined },
      ],
    });
    const ids = ["task:1", "note:1", "none:1"];
    const ofIds = await changesOfIds(world().ports(), world().space, { sinceSeq: 2 }, ids);
    expect(ofIds.items.map(({ id, seq }) => [id, seq])).toEqual([["note:1", 3]]);
  });

  test("changes on a branch hold what its ancestors wrote up to the fork and nothing after it", async () => {
    const session = await world().session();
    await session.write([set("task:1", { n: 1 }), set("task:2", { n: 1 })]);
    await session.write([set("task:1", { n: 2 })]);
    await session.createBranch("draft", { atSeq: 2 });
    await session.write([set("task:1", { n: 3 }), set("task:3", { n: 3 })]);
    await session.write([set("task:2", { n: 5 })], { branch: "draft" });
    const since = async (sinceSeq: number) => {
      const query = { branch: "draft", sinceSeq, prefix: "task:", limit: 10 };
      const { items } = await changesByPrefix(world().ports(), world().space, query);
      return items.map(({ id, seq }) => [id, seq]);
    };
    expect(await since(0)).toEqual([
      ["task:1", 2],
      ["task:2", 5],
    ]);
    expect(await since(1)).toEqual([
      ["task:1", 2],
      ["task:2", 5],
    ]);
    expect(await since(2)).toEqual([["task:2", 5]]);
    const ids = ["task:1", "task:2", "task:3"];
    const ofIds = await changesOfIds(world().ports(), world().space, { branch: "draft", sinceSeq: 2 }, ids);
    expect(ofIds.items.map(({ id, seq }) => [id, seq])).toEqual([["task:2", 5]]);
  });

  test("the log goes page by page from any seq", async () => {
    const session = await world().session();
    for (let n = 1; n <= 5; n++) await session.write([set("task:1", { n })]);
    const page = await readLog(world().ports(), world().space, { after: 2 }, 2);
    expect([page.items.map(({ seq }) => seq), page.nextAfter]).toEqual([[3, 4], 4]);
    const last = await readLog(world().ports(), world().space, { after: 4 }, 2);
    expect([last.items.map(({ seq }) => seq), last.nextAfter]).toEqual([[5], undefined]);
  });

  test("the log goes page by page from its end to its beginning, each page in the order of seq", async () => {
    const session = await world().session();
    const read = async (before: number) => {
      const page = await readLog(world().ports(), world().space, { before }, 2);
      return [page.items.map(({ seq }) => seq), page.nextAfter, page.prevBefore];
    };
    expect(await read(Number.MAX_SAFE_INTEGER)).toEqual([[], undefined, undefined]);
    for (let n = 1; n <= 5; n++) await session.write([set("task:1", { n })]);
    expect(await read(Number.MAX_SAFE_INTEGER)).toEqual([[4, 5], undefined, 4]);
    expect(await read(4)).toEqual([[2, 3], 3, 2]);
    expect(await read(2)).toEqual([[1], 1, undefined]);
    expect(await read(1)).toEqual([[], undefined, undefined]);
  });

  test("a page from the end of the log is bounded in bytes, and keeps what is nearest to the end", async () => {
    const session = await world().session();
    const text = "x".repeat(900_000);
    for (let n = 1; n <= 4; n++) await session.write([set("task:1", { n, text })]);
    const page = await readLog(world().ports(), world().space, { before: Number.MAX_SAFE_INTEGER }, 10);
    expect([page.items.map(({ seq }) => seq), page.prevBefore]).toEqual([[3, 4], 3]);
  });
}
