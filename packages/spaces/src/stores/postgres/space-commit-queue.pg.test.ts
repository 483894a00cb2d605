// What sharing a transaction means for the bodies that share it.
import { StorageError } from "@claudemesh/storage/errors";
import { openPostgres } from "@claudemesh/storage/postgres";
import { migratePostgres } from "@claudemesh/storage/postgres-migrations";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { ready } from "../../ports/flow.ts";
import { SpaceCommitQueue } from "./space-commit-queue.ts";
import { postgresSpacesMigrations } from "./spaces-store.ts";
import { acceptSends } from "./testing/postgres-harness.ts";

const database = await createTestDatabase("commit_queue");
afterAll(() => database?.drop());
const space = { meshId: "00000000-0000-7000-8000-000000000001", spaceId: "s" };

describe.skipIf(database === undefined)("the queue of a space's commits", () => {
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

  const createQueue = () => new SpaceCommitQueue(postgres, { hooks, acceptSends });
  /** A row that can be there once. */
  const insert = (queue: SpaceCommitQueue, n: number, alone = false) => {
    const open = { memberPubkey: "m", openHash: Uint8Array.of(n), sessionId: `${n}`, epoch: n };
    const row = { ...open, salt: Uint8Array.of(0), resumed: false };
    return queue.run(space, (tx) => tx.insertOpen(row), { alone });
  };
  const rows = async () => {
    const found = await postgres.read<{ n: number }>("SELECT epoch AS n FROM mesh.space_session_open ORDER BY epoch");
    return found.map(({ n }) => n);
  };

  test("bodies that wait share a transaction, and one that must be alone has one to itself", async () => {
    const queue = createQueue();
    commits = 0;
    await Promise.all([insert(queue, 1), insert(queue, 2), insert(queue, 3, true), insert(queue, 4), insert(queue, 5)]);
    expect(commits).toBe(3);
    expect(await rows()).toEqual([1, 2, 3, 4, 5]);
  });

  test("one at fault leaves its neighbours in peace", async () => {
    const queue = createQueue();
    const fail = () => {
      throw new TypeError("a bug");
    };
    const broken = queue.run(space, () => ready(fail), {});
    const settled = await Promise.allSettled([insert(queue, 11), insert(queue, 1), broken, insert(queue, 12)]);
    expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected", "fulfilled"]);
    expect(await rows()).toEqual(expect.arrayContaining([11, 12]));
  });

  test("one for which the disk has no room leaves the retry beside it in peace", async () => {
    const queue = createQueue();
    const full = new StorageError("disk_full", "no room");
    const retry = queue.run(space, () => ready(() => "stored verdict"), {});
    const fail = () => {
      throw full;
    };
    const tooLarge = queue.run(space, () => ready(fail), {});
    expect(await Promise.allSettled([retry, tooLarge])).toEqual([
      { status: "fulfilled", value: "stored verdict" },
      { status: "rejected", reason: full },
    ]);
  });

  test("what was decided and cannot be written takes everything of its transaction with it", async () => {
    const queue = createQueue();
    const sessionId = "21";
    const open = { memberPubkey: "m", openHash: Uint8Array.of(21), sessionId, epoch: 21 };
    const verdict = { sessionId, localSeq: 1, memberPubkey: "m", branch: "main", seq: undefined, result: "{}" };
    const unwritable = { ...verdict, decidedAtMs: 0, fingerprint: undefined as unknown as Uint8Array };
    const work = queue.run(
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
    const queue = createQueue();
    const order: number[] = [];
    await Promise.all(
      [1, 2, 3, 4, 5, 6].map((n) => queue.run(space, () => ready(() => order.push(n)), { alone: n % 3 === 0 })),
    );
    expect(order).toEqual([1, 2, 3, 4, 5, 6]);
  });
});
