// SQLite through the spaces suite, and what a retry costs there.
import { afterAll, describe, expect, test } from "vitest";
import { describeSpacesConformance } from "../conformance.ts";
import { set, World } from "../conformance-world.ts";
import { SqliteHarness } from "./testing/sqlite-harness.ts";

const harness = new SqliteHarness();
afterAll(() => harness.removeFiles());

describe("spaces on SQLite", () => describeSpacesConformance(harness));

test("a retry of a decided commit writes nothing", async () => {
  const world = await World.start(harness);
  const session = await world.session();
  const commit = session.build([set("task:1", { n: 1 })]);
  await session.send(commit);
  const changes = async () => (await world.query("SELECT total_changes() AS n"))[0]?.n;
  const before = await changes();
  expect(before).toBeGreaterThan(0);
  expect(await session.send(commit)).toMatchObject({ seq: 1, replayed: true });
  expect(await changes()).toBe(before);
  await world.close();
});
