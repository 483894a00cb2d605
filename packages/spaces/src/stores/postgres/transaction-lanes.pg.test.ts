// What sharing a transaction means for those who share it.
import { StorageError } from "@claudemesh/storage/errors";
import { openPostgres } from "@claudemesh/storage/postgres";
import { migratePostgres } from "@claudemesh/storage/postgres-migrations";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { ready } from "../../ports/flow.ts";
import { postgresSpacesMigrations } from "./spaces-store.ts";
import { acceptSends } from "./testing/postgres-harness.ts";
import { TransactionLanes } from "./transaction-lanes.ts";

const database = await createTestDatabase("lanes");
afterAll(() => database?.drop());
const space = { meshId: "00000000-0000-7000-8000-000000000001", spaceId: "s" };

describe.skipIf(database === undefined)("transaction lanes", () => {
  const postgres = openPostgres({ url: database?.url ?? "", poolSize: 4, onIdleError: () => undefined });
  let commits = 0;
  const hooks = {
    before: () => undefined,
    after: () => {
      commits += 1;
    },
  };
  beforeAll(() => migratePostgres(postgres, postgresSpacesMigrations()));
  afterAll(() => postgres.close());

  const createLanes = () => new TransactionLanes(postgres, { hooks, acceptSends });
  /** A row that can be there once. */
  const insert = (lanes: TransactionLanes, n: number, alone = false) => {
    const open = { memberPubkey: "m", openHash: Uint8Array.of(n), sessionId: `${n}`, epoch: n };
    const row = { ...open, salt: Uint8Array.of(0), resumed: false };
    return lanes.run(space, (tx) => tx.insertOpen(row), { alone });
  };
  const rows = async () => {
    const found = await postgres.read<{ n: number }>("SELECT epoch AS n FROM mesh.space_session_open ORDER BY epoch");
    return found.map(({ n }) => n);
  };

  test("those who wait share a transaction, and who must be alone has one to itself", async () => {
    const lanes = createLanes();
    commits = 0;
    await Promise.all([insert(lanes, 1), insert(lanes, 2), insert(lanes, 3, true), insert(lanes, 4), insert(lanes, 5)]);
    expect(commits).toBe(3);
    expect(await rows()).toEqual([1, 2, 3, 4, 5]);
  });

  test("one at fault leaves its neighbours in peace", async () => {
    const lanes = createLanes();
    const fail = () => {
      throw new TypeError("a bug");
    };
    const broken = lanes.run(space, () => ready(fail), {});
    const settled = await Promise.allSettled([insert(lanes, 11), insert(lanes, 1), broken, insert(lanes, 12)]);
    expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected", "fulfilled"]);
    expect(await rows()).toEqual(expect.arrayContaining([11, 12]));
  });

  test("one for which the disk has no room leaves the retry beside it in peace", async () => {
    const lanes = createLanes();
    const full = new StorageError("disk_full", "no room");
    const retry = lanes.run(space, () => ready(() => "stored verdict"), {});
    const fail = () => {
      throw full;
    };
    const tooLarge = lanes.run(space, () => ready(fail), {});
    expect(await Promise.allSettled([retry, tooLarge])).toEqual([
      { status: "fulfilled", value: "stored verdict" },
      { status: "rejected", reason: full },
    ]);
  });

  test("what was decided and cannot be written takes everything of its transaction with it", async () => {
    const lanes = createLanes();
    const sessionId = "21";
    const open = { memberPubkey: "m", openHash: Uint8Array.of(21), sessionId, epoch: 21 };
    const verdict = { sessionId, localSeq: 1, memberPubkey: "m", branch: "main", seq: undefined, result: "{}" };
    const unwritable = { ...verdict, decidedAtMs: 0, fingerprint: undefined as unknown as Uint8Array };
    const work = lanes.run(
      space,
      function* (tx) {
        yield* tx.insertOpen({ ...open, salt: Uint8Array.of(0), resumed: false });
        yield* tx.writeRejected(unwritable);
      },
      {},
    );
    await expect(work).rejects.toThrow(TypeError);
    expect(await rows()).not.toContain(21);
  });

  test("bodies run in the order in which they came", async () => {
    const lanes = createLanes();
    const order: number[] = [];
    await Promise.all(
      [1, 2, 3, 4, 5, 6].map((n) => lanes.run(space, () => ready(() => order.push(n)), { alone: n % 3 === 0 })),
    );
    expect(order).toEqual([1, 2, 3, 4, 5, 6]);
  });
});
