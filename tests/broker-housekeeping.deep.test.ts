// The commands for the operator of a broker, as an operator runs them, against a broker that serves: check, sweep,
// stats, migrate, backup; and the audit of a member afterwards.
import { statSync } from "node:fs";
import { join } from "node:path";
import { openSqlite } from "@claudemesh/storage/sqlite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runCli, runJson } from "./support/process.ts";
import { type Peer, until, World } from "./support/world.ts";

const dayMs = 86_400_000;
const world = new World(["--message-retention-days", "2"]);
let alice: Peer;
let bob: Peer;

beforeAll(async () => {
  [alice, bob] = await world.startWithPair();
  await Promise.all([alice.start(), bob.start()]);
});
afterAll(() => world.end());

const at = () => ({ home: world.folder });
const store = () => ["--store", `sqlite:${world.storePath}`];
const online = () => ["--broker", world.brokerUrl, "--admin-token-file", `${world.storePath}.admin-token`];
const lastJson = (stdout: string) => JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "");

async function sendAndSettle(id: string): Promise<void> {
  await runJson(["send", "@bob", "hello", "--id", id], { home: alice.home });
  await until(`${id} has arrived`, async () =>
    (await bob.inbox()).some((item) => item.client_message_id === id) ? true : undefined,
  );
}

/** As another process does, while the broker serves. */
function change(sql: string, ...values: (string | number)[]): void {
  const db = openSqlite({ path: world.storePath, mustExist: true });
  db.sql(sql).run(...values);
  db.close();
}

test("a sweep over HTTP removes what is old, and the audits of both members balance with it as a class of its own", async () => {
  await sendAndSettle("old-1");
  await sendAndSettle("young-1");
  change("UPDATE message_history SET accepted_at = ? WHERE client_message_id = 'old-1'", Date.now() - 3 * dayMs);
  const denied = await runCli(["broker", "sweep", "--broker", world.brokerUrl, "--json"], at());
  expect(denied.code).toBe(2);
  expect(denied.stderr).toContain("admin token");
  const { swept } = await runJson<{ swept: Record<string, number> }>(["broker", "sweep", ...online()], at());
  expect(swept).toMatchObject({ messages: 1 });

  const audit = await runCli(["audit", "--home", bob.home, "--json"], { home: alice.home });
  expect(audit.code).toBe(0);
  const report = lastJson(audit.stdout);
  expect(report).toMatchObject({ balanced: true, complete: true });
  const classes = (home: number, layer: string) =>
    report.homes[home].layers.find((each: { layer: string }) => each.layer === layer).classes;
  expect(classes(0, "broker")).toMatchObject({ committed: 1, removed_by_retention: 1 });
  expect(classes(1, "inbox")).toMatchObject({ settled: 1, gone_from_broker: 1 });
});

test("statistics and a check are read beside the broker, and a check of it over HTTP says the same", async () => {
  const stats = await runJson<{ size_bytes: number; meshes: { mesh: string; rows: Record<string, number> }[] }>(
    ["broker", "stats", ...store()],
    at(),
  );
  expect(stats.meshes).toMatchObject([{ mesh: "acme", rows: { members: 2, dedupe_rows: 2, direct_messages: 1 } }]);
  expect(await runJson(["broker", "check", ...store()], at())).toMatchObject({ ok: true, found: 0, meshes: 1 });
  expect(await runJson(["broker", "check", ...online()], at())).toMatchObject({ ok: true, found: 0, meshes: 1 });
  const both = await runCli(["broker", "check", ...store(), ...online()], at());
  expect(both).toMatchObject({ code: 2, stderr: expect.stringContaining("not both") });
});

test("a backup can be checked by itself; what is broken in it is named, and the exit code is 1", async () => {
  const file = join(world.folder, "copy.db");
  await runJson(["broker", "backup", file, ...store()], at());
  expect((statSync(file).mode & 0o777).toString(8)).toBe("600");
  expect((await runCli(["broker", "backup", file, ...store()], at())).code).toBe(1);
  const copy = ["--store", `sqlite:${file}`];
  expect(await runJson(["broker", "migrate", ...copy, "--dry-run"], at())).toMatchObject({ migrations: [] });
  const db = openSqlite({ path: file, mustExist: true });
  db.exec("DELETE FROM message_history WHERE client_message_id = 'young-1'");
  db.close();
  const broken = await runCli(["broker", "check", ...copy, "--json"], at());
  expect(broken.code).toBe(1);
  const found = lastJson(broken.stdout).checks.filter((each: { found: number }) => each.found > 0);
  expect(found.map((each: { name: string }) => each.name)).toContain("dedupe_without_history");
  const checked = await runCli(["broker", "check", ...copy], at());
  expect(checked).toMatchObject({ code: 1, stdout: expect.stringMatching(/dedupe_without_history .*MSG-19/) });
});

test("a broker that serves is not swept or migrated from outside, and one that is away is named as such", async () => {
  const swept = await runCli(["broker", "sweep", ...store(), "--json"], at());
  expect(lastJson(swept.stdout)).toMatchObject({ error: "busy" });
  expect((await runCli(["broker", "migrate", ...store(), "--json"], at())).code).not.toBe(0);
  const away = await runCli(
    ["broker", "check", "--broker", "http://127.0.0.1:9", "--admin-token-file", `${world.storePath}.admin-token`],
    at(),
  );
  expect(away.code).toBe(3);
});
