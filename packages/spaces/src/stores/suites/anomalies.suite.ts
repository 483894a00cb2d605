// The ten anomalies by which isolation levels differ (the Hermitage suite): none of them can be committed. A
// predicate is a read of the entity that lists what is searched, since listings by prefix are no transactional reads.
import type { EntityDocument } from "@claudemesh/protocol/spaces/entity";
import type { FabricValue } from "@claudemesh/protocol/spaces/fabric-value";
import { valueAt } from "@claudemesh/protocol/spaces/value-at";
import { expect, test } from "vitest";
import { brief, patch, read, set, type World } from "./world.ts";

function numberIn(document: EntityDocument | undefined): FabricValue {
  const found = valueAt(document, ["value", "value"]);
  return found.exists ? found.value : undefined;
}

export function describeAnomalies(world: () => World): void {
  const start = async () => {
    const [one, two, three] = [await world().session(), await world().session(), await world().session()];
    const seq = await one.write([
      set("row:1", { value: 10 }),
      set("row:2", { value: 20 }),
      set("index:rows", { rows: { "1": 10, "2": 20 } }),
    ]);
    return { one, two, three, seq };
  };
  const values = async () => (await world().read(["row:1", "row:2"])).map(({ document }) => numberIn(document));

  test("G0, dirty write: two transactions' writes do not mix", async () => {
    const { one, two } = await start();
    await Promise.all([
      one.commit([set("row:1", { value: 11 }), set("row:2", { value: 21 })]),
      two.commit([set("row:1", { value: 12 }), set("row:2", { value: 22 })]),
    ]);
    expect([
      [11, 21],
      [12, 22],
    ]).toContainEqual(await values());
  });

  test("G1a, aborted read: what a rejected commit wrote is never seen", async () => {
    const { one, two, seq } = await start();
    await two.write([set("row:2", { value: 21 })]);
    expect(brief(await one.commit([set("row:1", { value: 101 })], { confirmed: [read("row:2", seq)] }))).toBe(
      "ConflictError",
    );
    expect(await values()).toEqual([10, 21]);
  });

  test("G1b, intermediate read: of several writes in one commit only the last is seen, at any seq", async () => {
    const { one } = await start();
    const seq = await one.write([set("row:1", { value: 101 }), set("row:1", { value: 11 })]);
    for (const atSeq of [seq - 1, seq]) {
      expect([{ value: { value: 10 } }, { value: { value: 11 } }]).toContainEqual(
        await world().document("row:1", "", atSeq),
      );
    }
  });

  test("G1c, circular information flow: two transactions can't each read the other's write", async () => {
    const { one, two, seq } = await start();
    const first = await one.commit([set("row:1", { value: 11 })], { confirmed: [read("row:2", seq)] });
    const second = await two.commit([set("row:2", { value: 22 })], { confirmed: [read("row:1", seq)] });
    expect([brief(first), brief(second)]).toEqual([2, "ConflictError"]);
  });

  test("OTV, observed transaction vanishes: a transaction is seen whole or not at all", async () => {
    const { one, two, three } = await start();
    const first = await one.write([set("row:1", { value: 11 }), set("row:2", { value: 19 })]);
    const saw = [read("row:1", first), read("row:2", first)];
    await two.write([set("row:1", { value: 12 }), set("row:2", { value: 18 })]);
    expect(brief(await three.commit([set("sum:1", { sum: 30 })], { confirmed: saw }))).toBe("ConflictError");
    for (const atSeq of [1, 2, 3]) {
      const rows = await world().read(["row:1", "row:2"], "", atSeq);
      expect(new Set(rows.map(({ seq }) => seq)).size).toBe(1);
    }
  });

  test("PMP, predicate many preceders: what a predicate found is still what it would find", async () => {
    const { one, two, seq } = await start();
    await two.write([
      set("row:3", { value: 30 }),
      patch("index:rows", { op: "add", path: "/value/rows/3", value: 30 }),
    ]);
    const predicate = { ...read("index:rows", seq, "rows"), shallow: true };
    expect(brief(await one.commit([set("sum:1", { count: 2 })], { confirmed: [predicate] }))).toBe("ConflictError");
  });

  test("P4, lost update: of two that read and write the same, one is rejected", async () => {
    const { one, two, seq } = await start();
    const bump = (value: number) => [set("row:1", { value })];
    const verdicts = await Promise.all([
      one.commit(bump(11), { confirmed: [read("row:1", seq)] }),
      two.commit(bump(12), { confirmed: [read("row:1", seq)] }),
    ]);
    expect(verdicts.map(({ type }) => type).sort()).toEqual(["accepted", "rejected"]);
  });

  test("G-single, read skew: two reads of different moments do not commit together", async () => {
    const { one, two, seq } = await start();
    const later = await two.write([set("row:1", { value: 12 }), set("row:2", { value: 18 })]);
    const skewed = { confirmed: [read("row:1", seq), read("row:2", later)] };
    expect(brief(await one.commit([set("sum:1", { sum: 28 })], skewed))).toBe("ConflictError");
  });

  test("G2-item, write skew: two that read both rows and write one each do not both commit", async () => {
    const { one, two, seq } = await start();
    const both = { confirmed: [read("row:1", seq), read("row:2", seq)] };
    const verdicts = await Promise.all([
      one.commit([set("row:1", { value: 11 })], both),
      two.commit([set("row:2", { value: 21 })], both),
    ]);
    expect(verdicts.map(({ type }) => type).sort()).toEqual(["accepted", "rejected"]);
  });

  test("G2, anti-dependency cycle over a predicate: two that found nothing do not both add", async () => {
    const { one, two, seq } = await start();
    const nothing = { confirmed: [{ ...read("index:rows", seq, "rows"), shallow: true }] };
    const add = (key: string) => [
      set(`row:${key}`, { value: 30 }),
      patch("index:rows", { op: "add", path: `/value/rows/${key}`, value: 30 }),
    ];
    const verdicts = await Promise.all([one.commit(add("3"), nothing), two.commit(add("4"), nothing)]);
    expect(verdicts.map(({ type }) => type).sort()).toEqual(["accepted", "rejected"]);
  });
}
