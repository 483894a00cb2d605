// Leases that expired in great numbers: how many of them one lease request scans, and what it leaves behind. Most are rows
// without a message, because no test here has to lease them.
import { expect, test } from "vitest";
import { createConsumers } from "./queue-consumers.ts";
import type { World } from "./world.ts";

/** A row of a queue whose lease has expired. */
type ExpiredRow = { readonly historyId: number; readonly deliveries?: number };

const perScan = 1_000;

export function describeExpiredLeases(world: () => World): void {
  const { start, take, lease, parked } = createConsumers(world);
  const table = () => world().table("queue_message");

  /** Leases that expired one after the other, in the order of the rows, the last of them just now. */
  async function expireLeases(ended: readonly ExpiredRow[]): Promise<void> {
    const { meshId, nowMs } = world();
    const rows = ended.map(({ historyId, deliveries = 1 }, index) => {
      const endedAtMs = nowMs - ended.length + index + 1;
      return `('${meshId}', 'jobs', ${historyId}, 'broker-of-${historyId}', 'leased', ${deliveries}, 'h', 't', ${endedAtMs})`;
    });
    await world().query(`DELETE FROM ${table()} WHERE history_id IN (${ended.map(({ historyId }) => historyId)})`);
    await world().query(`INSERT INTO ${table()} (mesh_id, queue, history_id, broker_message_id, state, deliveries,
      lease_holder, lease_token, lease_expires_at) VALUES ${rows}`);
    // The messages of those that have one bear its name.
    await world().query(`UPDATE ${table()} SET broker_message_id = (SELECT m.id FROM ${world().table("message_queue")} m
      WHERE m.mesh_id = ${table()}.mesh_id AND m.history_id = ${table()}.history_id) WHERE history_id < 1000`);
  }

  const withoutMessage = (count: number, deliveries = 1): ExpiredRow[] =>
    Array.from({ length: count }, (_, index) => ({ historyId: 1_001 + index, deliveries }));

  /** How many rows are stored in each state, apart from those whose lease has expired. */
  async function written(): Promise<Record<string, number>> {
    const rows = await world().query(`SELECT state, lease_expires_at FROM ${table()}`);
    const stateOf = ({ state, lease_expires_at }: (typeof rows)[number]) =>
      state === "leased" && Number(lease_expires_at) <= world().nowMs ? "lease_expired" : String(state);
    return Object.fromEntries([...Map.groupBy(rows, stateOf)].map(([state, some]) => [state, some.length]));
  }

  test("are scanned once: what is not leased again is ready, and no later request finds it expired", async () => {
    const [alice] = await start(3);
    await expireLeases([{ historyId: 1 }, { historyId: 2 }, { historyId: 3 }, ...withoutMessage(900)]);
    const first = await take(alice, "r1", { max: 1 });
    expect(first.items).toMatchObject([{ client_message_id: "m1", deliveries: 2 }]);
    expect(await written()).toEqual({ leased: 1, ready: 902 });
    expect((await take(alice, "r2", { max: 1 })).clientIds).toEqual(["m2"]);
    expect(await written()).toEqual({ leased: 2, ready: 901 });
  });

  test("are scanned a thousand at a time, first those that expired first; the next request scans the others", async () => {
    const [alice] = await start(2);
    await expireLeases([{ historyId: 2 }, ...withoutMessage(perScan - 1), { historyId: 1 }]);
    expect((await take(alice, "r1", { max: 1 })).clientIds).toEqual(["m2"]);
    expect(await written()).toEqual({ leased: 1, ready: perScan - 1, lease_expired: 1 });
    expect((await take(alice, "r2", { max: 1 })).clientIds).toEqual(["m1"]);
    expect(await written()).toEqual({ leased: 2, ready: perScan - 1 });
  });

  test("after their last delivery hide nothing that may be leased again, however many they are", async () => {
    const [alice] = await start(1);
    await expireLeases([...withoutMessage(2 * perScan, 3), { historyId: 1 }]);
    expect((await take(alice, "r1", { max: 1 })).clientIds).toEqual(["m1"]);
    expect(await written()).toEqual({ leased: 1, parked: 2 * perScan });
    expect(await lease(alice, "r2")).toEqual({ type: "empty" });
  });

  test("after their last delivery are listed as parked, however many expired before them", async () => {
    await start(2);
    await expireLeases([
      ...withoutMessage(perScan + 500, 2),
      { historyId: 2, deliveries: 3 },
      { historyId: 1, deliveries: 3 },
    ]);
    expect((await parked(0, 1)).clientIds).toEqual(["m1"]);
    expect((await parked(1, 1)).items).toMatchObject([
      { client_message_id: "m2", deliveries: 3, parked_at: world().nowMs - 1 },
    ]);
    expect((await parked(2, 1)).clientIds).toEqual([]);
    // A listing writes down expired leases only where there are more than one scan can read.
    expect(await written()).toEqual({ ready: perScan, lease_expired: 502 });
  });
}
