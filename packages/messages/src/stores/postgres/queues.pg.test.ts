// What is particular to queues on PostgreSQL: how often a consumer waits for the server, and that COMMIT, which waits for no
// answer, commits all of it or nothing.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { PostgresHarness } from "./testing/postgres-harness.ts";
import { QueueRig } from "./testing/queue-rig.ts";

const database = await createTestDatabase("queues");
afterAll(() => database?.drop());

describe.skipIf(database === undefined)("queues on PostgreSQL", () => {
  const url = database?.url ?? "";
  const harness = new PostgresHarness(url);
  let rig: QueueRig;

  beforeAll(() => harness.connect());
  afterAll(() => harness.end());
  beforeEach(async () => {
    rig = await QueueRig.start(harness, url);
  });
  afterEach(() => rig.close());

  test("a lease waits twice, a settlement too: once to read, and once for COMMIT, behind what it writes", async () => {
    await rig.addMessages(1, 100, "ready");
    const ids = await rig.take("r1", 60);
    expect(ids).toHaveLength(60);
    expect(rig.queueing).toMatchObject({ waits: 2, underway: 2 });
    expect(await rig.ack("r1", ids)).toMatchObject({ type: "settled" });
    expect(rig.queueing).toMatchObject({ waits: 2, underway: 2 });
  });

  test("what is leased is read a few at a time where it is much, and none of it is missed", async () => {
    await rig.addMessages(1, 300, "ready");
    expect(new Set(await rig.take("r1", 150)).size).toBe(150);
    expect(new Set([...(await rig.take("r2", 150)), ...(await rig.take("r1", 150))]).size).toBe(300);
  });

  test("nothing is committed where a message is no longer as it was read, though no caller checks before COMMIT", async () => {
    await rig.addMessages(1, 3, "ready");
    await harness.query(
      `CREATE FUNCTION public.pass_over() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`,
    );
    const hold = (number: number) =>
      harness.query(`CREATE TRIGGER held BEFORE UPDATE ON mesh.queue_message FOR EACH ROW
        WHEN (OLD.history_id = ${number}) EXECUTE FUNCTION public.pass_over()`);
    const letGo = () => harness.query("DROP TRIGGER held ON mesh.queue_message");

    await hold(2);
    await expect(rig.lease("r1", 3)).rejects.toThrow("changed between reading and writing");
    expect(await harness.query("SELECT 1 FROM mesh.queue_message WHERE state <> 'ready'")).toEqual([]);
    expect(await harness.query("SELECT 1 FROM mesh.queue_lease")).toEqual([]);
    await letGo();
    const ids = await rig.take("r1", 3);
    await hold(3);
    await expect(rig.ack("r1", ids)).rejects.toThrow("changed between reading and writing");
    expect(await harness.query("SELECT 1 FROM mesh.queue_settlement")).toEqual([]);
    await letGo();
    expect(await rig.ack("r1", ids)).toMatchObject({ type: "settled" });
  });
});
