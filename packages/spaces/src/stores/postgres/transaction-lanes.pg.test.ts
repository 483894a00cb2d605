// What sharing a transaction means for those who share it.
import { openPostgres } from "@claudemesh/storage/postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { TransactionLanes } from "./transaction-lanes.ts";

const database = await createTestDatabase("lanes");
afterAll(() => database?.drop());
const space = { meshId: "m", spaceId: "s" };

describe.skipIf(database === undefined)("transaction lanes", () => {
  const postgres = openPostgres({ url: database?.url ?? "", poolSize: 4, onIdleError: () => undefined });
  let commits = 0;
  const probe = {
    beforeCommit: () => undefined,
    afterCommit: () => {
      commits += 1;
    },
  };
  beforeAll(async () => {
    await postgres.transaction((tx) => tx.script("CREATE SCHEMA lane; CREATE TABLE lane.row (n int PRIMARY KEY)"));
  });
  afterAll(() => postgres.close());

  const insert = (lanes: TransactionLanes, n: number, alone = false) =>
    lanes.run(space, (tx) => tx.execute("INSERT INTO lane.row (n) VALUES ($1)", [n]), alone);
  const rows = async () => (await postgres.read<{ n: number }>("SELECT n FROM lane.row ORDER BY n")).map(({ n }) => n);

  test("those who wait share a transaction, and who must be alone has one to itself", async () => {
    const lanes = new TransactionLanes(postgres, probe);
    commits = 0;
    await Promise.all([insert(lanes, 1), insert(lanes, 2), insert(lanes, 3, true), insert(lanes, 4), insert(lanes, 5)]);
    expect(commits).toBe(3);
    expect(await rows()).toEqual([1, 2, 3, 4, 5]);
  });

  test("one at fault leaves its neighbours in peace", async () => {
    const lanes = new TransactionLanes(postgres, probe);
    const broken = lanes.run(space, async () => Promise.reject(new TypeError("a bug")), false);
    const settled = await Promise.allSettled([insert(lanes, 11), insert(lanes, 1), broken, insert(lanes, 12)]);
    expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected", "fulfilled"]);
    expect(await rows()).toEqual(expect.arrayContaining([11, 12]));
  });

  test("bodies run in the order in which they came", async () => {
    const lanes = new TransactionLanes(postgres, probe);
    const order: number[] = [];
    await Promise.all([1, 2, 3, 4, 5, 6].map((n) => lanes.run(space, async () => order.push(n), n % 3 === 0)));
    expect(order).toEqual([1, 2, 3, 4, 5, 6]);
  });
});
