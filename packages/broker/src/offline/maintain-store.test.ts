// Looking after a SQLite store from outside: beside a broker that serves on it, and without one.
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pino } from "pino";
import { expect, test } from "vitest";
import {
  createTestMesh,
  makeTemporaryFolder,
  startTestBroker,
  startTestPair,
} from "../../../../tests/support/broker-harness.ts";
import { grant, register } from "../../../../tests/support/registrar-member.ts";
import { Housekeeping } from "../background/housekeeping.ts";
import { readBrokerConfig } from "../config.ts";
import {
  backUpStore,
  checkStore,
  migrateStore,
  type OrphanReport,
  statsOfStore,
  sweepStore,
} from "./maintain-store.ts";
import { withOfflineStore } from "./open-store.ts";

const dayMs = 86_400_000;

async function startWithMessages() {
  const folder = makeTemporaryFolder();
  const { broker, alice, bob } = await startTestPair({ folder });
  for (const id of ["m1", "m2", "m3"]) await alice.send(id, bob);
  return { folder, broker, alice, bob, store: { kind: "sqlite", path: broker.storePath } as const };
}

test("a store is checked and counted while a broker serves on it", async () => {
  const { alice, store } = await startWithMessages();
  expect(await checkStore(store)).toMatchObject({ ok: true, meshes: 1 });
  const { location, sizeBytes, meshes } = await statsOfStore(store);
  expect(location).toBe(store.path);
  expect(sizeBytes).toBeGreaterThan(10_000);
  expect(meshes).toMatchObject([{ name: "acme", id: alice.meshId, rows: { members: 2, deliveries_unsettled: 3 } }]);
});

test("a check covers the registrar and once, also that of a night", async () => {
  const { broker, alice, bob, store } = await startWithMessages();
  await register(bob, await grant(alice));
  const claim = { claim_id: "c", inputs_fingerprint: "0".repeat(64), lease_s: 60 };
  expect((await bob.call("POST", "/once/deploy/claim", claim)).status).toBe(201);
  const looked = (await checkStore(store)).checks.filter(({ rows }) => rows > 0).map(({ name }) => name);
  expect(looked).toEqual(expect.arrayContaining(["consume_with_other_digests", "once_epoch_over_open_one"]));
  await broker.stop();
  const db = new DatabaseSync(store.path);
  db.exec("DROP TRIGGER registrar_registration_update; UPDATE registrar_registration SET target = 'elsewhere'");
  db.exec("DROP TRIGGER once_claim_stands; UPDATE once_claim SET epoch = 2");
  db.close();
  const found = (checks: readonly { name: string; found: number }[]) =>
    checks.filter((each) => each.found > 0).map(({ name }) => name);
  const broken = ["consume_without_registration", "once_epoch_over_open_one"];
  expect(found((await checkStore(store)).checks)).toEqual(broken);
  await withOfflineStore(store, "change", async ({ messages, otherRules, spaces }) => {
    const counted: string[][] = [];
    const metrics = { checked: (report: OrphanReport) => counted.push(found(report.checks)) } as never;
    const config = readBrokerConfig({ store: `sqlite:${store.path}` }, {}, undefined);
    const surroundings = { config, messages, spaces, otherRules, metrics, nowMs: Date.now };
    await new Housekeeping({ ...surroundings, log: pino({ level: "silent" }) }).checkTonight();
    expect(counted).toEqual([broken]);
  });
});

test("a store that a broker serves on is not swept from outside; without it, by the settings given", async () => {
  const { broker, alice, bob, folder, store } = await startWithMessages();
  const config = readBrokerConfig(
    { store: `sqlite:${store.path}`, "message-retention-days": "2" },
    { CLAUDEMESH_DEDUPE_RETENTION_DAYS: "7" },
    undefined,
  );
  await expect(sweepStore(config)).rejects.toMatchObject({
    code: "busy",
    message: expect.stringContaining("--broker"),
  });
  await expect(migrateStore(store, { dryRun: false })).rejects.toMatchObject({ code: "busy" });
  await broker.stop();
  expect(await sweepStore(config)).toEqual({});
  const db = new DatabaseSync(store.path);
  db.prepare("UPDATE message_history SET accepted_at = ? WHERE history_id < 3").run(Date.now() - 3 * dayMs);
  db.close();
  expect(await sweepStore(config)).toMatchObject({ messages: 2, expired_deliveries: 2 });
  const again = await startTestBroker({ folder });
  alice.url = again.url;
  expect((await alice.send("m1", bob)).body).toMatchObject({ duplicate: true, history_available: false });
  expect((await alice.send("m3", bob)).body).toMatchObject({ duplicate: true, history_available: true });
});

test("the spent budget of the current window is never swept from outside, however long that is", async () => {
  const folder = makeTemporaryFolder();
  const broker = await startTestBroker({ folder, flags: { "rate-limit": "5/86400s" } });
  const alice = await createTestMesh(broker);
  // Its token is one unit too.
  await alice.send("m1", alice);
  await broker.stop();
  await sweepStore(readBrokerConfig({ store: `sqlite:${broker.storePath}` }, {}, undefined));
  const db = new DatabaseSync(broker.storePath);
  expect(db.prepare("SELECT used FROM rate_limit_window").get()?.used).toBe(2);
  db.close();
});

test("a backup is one moment of the store in a private file, which a broker can serve, and never replaces anything", async () => {
  const { store, folder, alice, bob } = await startWithMessages();
  const file = join(folder, "copy.db");
  expect(await backUpStore(store, file)).toMatchObject({ type: "copied", file });
  expect((statSync(file).mode & 0o777).toString(8)).toBe("600");
  await expect(backUpStore(store, file)).rejects.toMatchObject({ kind: "path_refused" });
  const taken = join(folder, "taken");
  writeFileSync(taken, "mine");
  await expect(backUpStore(store, taken)).rejects.toMatchObject({ kind: "path_refused" });
  const restored = await startTestBroker({ folder, flags: { store: `sqlite:${file}` } });
  alice.url = restored.url;
  expect((await alice.send("m1", bob)).body).toMatchObject({ duplicate: true, history_id: 1 });
});

test("what a migration would do is reported without doing it, and is done once", async () => {
  const store = { kind: "sqlite", path: join(makeTemporaryFolder(), "new", "broker.db") } as const;
  const planned = await migrateStore(store, { dryRun: true });
  expect(planned.map(({ package: name, number }) => `${name}/${number}`)).toContain("messages/3");
  expect(existsSync(store.path)).toBe(false);
  expect(await migrateStore(store, { dryRun: false })).toEqual(planned);
  expect((statSync(store.path).mode & 0o777).toString(8)).toBe("600");
  expect(await migrateStore(store, { dryRun: true })).toEqual([]);
  expect(await migrateStore(store, { dryRun: false })).toEqual([]);
});

test("a store that is not there or is older than this build is named with what to do", async () => {
  const path = join(makeTemporaryFolder(), "none.db");
  await expect(checkStore({ kind: "sqlite", path })).rejects.toMatchObject({ code: "not_found" });
  expect(existsSync(path)).toBe(false);
  new DatabaseSync(path).close();
  writeFileSync(path, "");
  await expect(checkStore({ kind: "sqlite", path })).rejects.toThrow("claudemesh broker migrate");
});

test("a file that is no database is refused by every command, and stays as it is", async () => {
  const folder = makeTemporaryFolder();
  const path = join(folder, "notes.txt");
  writeFileSync(path, "what I have to do today\n", { mode: 0o644 });
  const store = { kind: "sqlite", path } as const;
  const config = readBrokerConfig({ store: `sqlite:${path}` }, {}, undefined);
  const commands = {
    check: () => checkStore(store),
    stats: () => statsOfStore(store),
    sweep: () => sweepStore(config),
    plan: () => migrateStore(store, { dryRun: true }),
    migrate: () => migrateStore(store, { dryRun: false }),
    backup: () => backUpStore(store, join(folder, "copy.db")),
  };
  for (const [name, run] of Object.entries(commands)) {
    await expect(run(), name).rejects.toMatchObject({ kind: "corrupt", message: expect.stringContaining("--store") });
    expect((statSync(path).mode & 0o777).toString(8), name).toBe("644");
    expect(readdirSync(folder), name).toEqual(["notes.txt"]);
  }
  expect(readFileSync(path, "utf8")).toBe("what I have to do today\n");
});
