// SQLite through the spaces suite, what a retry costs there, and how long accepts wait for forgotten sessions.
import { afterAll, describe, expect, test } from "vitest";
import { sessionUnusedMs } from "../../core/session.ts";
import { sweepAllSessions, sweepSessions } from "../../services/spaces.ts";
import { describeSpacesSuite } from "../suites/spaces.suite.ts";
import { alice, set, World } from "../suites/world.ts";
import { SqliteHarness } from "./testing/sqlite-harness.ts";

const harness = new SqliteHarness();
afterAll(() => harness.removeFiles());

describe("spaces on SQLite", () => describeSpacesSuite(harness));

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

test("unused sessions go a few at a time, each with all it was opened by, and those in use stay", async () => {
  const world = await World.start(harness);
  let [opened] = await Promise.all(Array.from({ length: 600 }, () => world.open()));
  for (let n = 0; n < 3; n++) opened = await world.open(alice, `again-${n}`, opened);
  world.nowMs += sessionUnusedMs + 1;
  const live = await world.open();
  const steps: number[] = [];
  for await (const removed of sweepSessions(world.ports())) steps.push(removed);
  expect(steps.reduce((sum, removed) => sum + removed)).toBe(600);
  expect(Math.max(...steps)).toBe(64);
  expect([await world.count("space_session"), await world.count("space_session_open")]).toEqual([1, 1]);
  expect(await world.query("SELECT session_id FROM space_session")).toEqual([{ session_id: live.sessionId }]);
  await world.close();
});

test("a session that was opened very often goes in several steps, between which its rows fit together", async () => {
  const world = await World.start(harness);
  await world.open();
  await world.query(`INSERT INTO space_session_open
      (mesh_id, space_id, member_pubkey, open_hash, session_id, epoch, salt, resumed)
    WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
    SELECT mesh_id, space_id, member_pubkey, CAST(i AS BLOB), session_id, i, salt, 1 FROM space_session_open, n`);
  await world.query("UPDATE space_session SET epoch = 1200");
  world.nowMs += sessionUnusedMs + 1;
  const left: number[] = [];
  for await (const _ of sweepSessions(world.ports())) {
    left.push(await world.count("space_session_open"));
    const { found } = await world.rules.checkPage("session_without_open", world.space.meshId, undefined, {
      nowMs: world.nowMs,
      limit: 10,
    });
    expect(found).toEqual([]);
  }
  expect(left).toEqual([688, 176, 0]);
  expect(await sweepAllSessions(world.ports())).toBe(0);
  await world.close();
});
