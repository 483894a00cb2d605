import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { clientIdCharacters } from "../load/client-ids.ts";
import { seededId, sqliteSeededId } from "./seeded-ids.ts";

const orders = ["time_ordered", "random"] as const;
const numbers = [0, 1, 2, 255, 4_999_999];

describe("ids of rows written in bulk", () => {
  it.each(orders)("%s ids have the length of a ULID and are all different", (order) => {
    const ids = Array.from({ length: 10_000 }, (_, n) => seededId(order, n));
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.every((id) => id.length === clientIdCharacters)).toBe(true);
  });

  it("time-ordered ones grow with their number, scattered ones fall into every sixteenth alike", () => {
    const ids = (order: (typeof orders)[number]) => Array.from({ length: 4_096 }, (_, n) => seededId(order, n));
    expect(ids("time_ordered")).toEqual(ids("time_ordered").sort());
    const sixteenths = Map.groupBy(ids("random"), (id) => id[0]);
    expect(sixteenths.size).toBe(16);
    for (const each of sixteenths.values()) expect(Math.abs(each.length - 256)).toBeLessThan(5);
  });

  it.each(orders)("%s ones are the same in SQL", (order) => {
    const db = new DatabaseSync(":memory:");
    const rows = numbers.map((i) =>
      db.prepare(`SELECT ${sqliteSeededId(order)} AS id FROM (SELECT ? AS i)`).get(BigInt(i)),
    );
    db.close();
    expect(rows.map((row) => row?.id)).toEqual(numbers.map((n) => seededId(order, n)));
  });
});
