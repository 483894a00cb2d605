// That what is kept depends on nothing but the clock and the chance that the stores are given.
import { openSqlite } from "@claudemesh/storage/sqlite";
import { migrateSqlite } from "@claudemesh/storage/sqlite-migrations";
import { expect, test } from "vitest";
import type { Chance } from "../../ports.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { noFailpoints } from "../../testing/test-stores.ts";
import { inboxMigrations, outboxMigrations } from "./open-databases.ts";
import { createStores } from "./open-stores.ts";

async function openWith(chance: Chance) {
  const outbox = openSqlite({ path: ":memory:" });
  const inbox = openSqlite({ path: ":memory:" });
  await migrateSqlite(outbox, outboxMigrations());
  await migrateSqlite(inbox, inboxMigrations());
  return createStores({ db: outbox, schema: 1 }, { db: inbox, schema: 1 }, new ManualClock(), noFailpoints, chance);
}

test("the same chance gives the same ids, and nothing is written before the turn comes", async () => {
  const turns: (() => void)[] = [];
  const chance: Chance = {
    random: () => 0,
    randomBytes: (length) => new Uint8Array(length).fill(7),
    nextTurn: (run) => turns.push(run),
  };
  const [first, second] = await Promise.all([openWith(chance), openWith(chance)]);
  expect(first?.nextOutboxId()).toBe(second?.nextOutboxId());
  const kept = first?.members.change({ put: [{ pubkey: "ab".repeat(32), name: "ada" }], remove: [] });
  expect(first?.members.load()).toEqual([]);
  for (const turn of turns) turn();
  await kept;
  expect(first?.members.load()).toEqual([{ pubkey: "ab".repeat(32), name: "ada" }]);
});
