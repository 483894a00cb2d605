import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { nodeSha256 } from "@claudemesh/client/internal/node-sha256";
import { StorageError } from "@claudemesh/storage/errors";
import { describe, expect, it, onTestFinished } from "vitest";
import { recordingLog } from "../../testing/test-stores.ts";
import { inboxMigrations, openInboxDatabase, openOutboxDatabase, outboxMigrations } from "./open-databases.ts";
import { createRowIds, lowestUlidAt } from "./time-ordered-ids.ts";

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "cm-db-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Files and their hashes, less what any reader may make: shared memory, and a log without a page in it. */
function contents(folder: string): Record<string, string> {
  const files = readdirSync(folder)
    .filter((name) => !name.endsWith("-shm"))
    .map((name) => [name, readFileSync(join(folder, name))] as const)
    .filter(([, bytes]) => bytes.length > 0);
  return Object.fromEntries(files.map(([name, bytes]) => [name, nodeSha256.hex(bytes)]));
}

/** Writes over the middle of a table's pages. */
function damage(path: string): void {
  const bytes = readFileSync(path);
  bytes.fill(0x5a, 4_096 + 8, bytes.length - 16);
  writeFileSync(path, bytes);
}

describe("a damaged outbox", () => {
  it.each([
    ["whose pages are overwritten", damage],
    ["that is no database", (path: string) => writeFileSync(path, "x".repeat(8_192))],
    ["that was cut off", (path: string) => truncateSync(path, 4_096 + 100)],
  ])("%s refuses the start, says what to do, and is left as it is", async (_, harm) => {
    const folder = temporaryFolder();
    const path = join(folder, "outbox.db");
    (await openOutboxDatabase(path)).db.close();
    harm(path);
    const before = contents(folder);
    await expect(openOutboxDatabase(path)).rejects.toMatchObject({
      reason: "outbox_corrupt",
      message: expect.stringContaining("claudemesh daemon recover"),
    });
    expect(contents(folder)).toEqual(before);
  });

  it("with a log that was not folded in yet keeps that log too", async () => {
    const folder = temporaryFolder();
    const path = join(folder, "outbox.db");
    (await openOutboxDatabase(path)).db.close();
    const { db } = await openOutboxDatabase(path);
    db.sql("INSERT INTO daemon_state (key, value) VALUES ('a', 'b')").run();
    const log = readFileSync(`${path}-wal`);
    db.close();
    writeFileSync(`${path}-wal`, log);
    damage(path);
    const before = contents(folder);
    expect(Object.keys(before)).toContain("outbox.db-wal");
    await expect(openOutboxDatabase(path)).rejects.toMatchObject({ reason: "outbox_corrupt" });
    expect(contents(folder)).toEqual(before);
  });
});

describe("a damaged inbox", () => {
  it.each([
    ["whose pages are overwritten", damage],
    ["that is no database", (path: string) => writeFileSync(path, "x".repeat(8_192))],
  ])("%s is set aside with its log, logged, and begun anew with a rebuild due", async (_, harm) => {
    const folder = temporaryFolder();
    const path = join(folder, "inbox.db");
    const log = recordingLog();
    const first = await openInboxDatabase(path, "then", log);
    expect(first.setAside).toBeUndefined();
    first.db.close();
    harm(path);
    writeFileSync(`${path}-wal`, "leftover");
    const damaged = readFileSync(path);
    const { db, setAside } = await openInboxDatabase(path, "now", log);
    onTestFinished(() => {
      db.close();
    });
    expect(setAside).toBe(`${path}.corrupt-now`);
    expect(readFileSync(`${path}.corrupt-now`)).toEqual(damaged);
    expect(readdirSync(folder)).toContain("inbox.db.corrupt-now-wal");
    expect(log.lines).toMatchObject([{ level: "warn", event: "inbox_corruption_recovered" }]);
    expect(db.sql("SELECT key, value FROM inbox_state").all()).toEqual([
      { key: "rebuild_after_history_id", value: "0" },
    ]);
  });
});

describe("a schema that is newer than this build", () => {
  it.each(["outbox", "inbox"] as const)("in %s.db refuses the start", async (name) => {
    const folder = temporaryFolder();
    const path = join(folder, `${name}.db`);
    const open = () => (name === "outbox" ? openOutboxDatabase(path) : openInboxDatabase(path, "now", recordingLog()));
    (await open()).db.close();
    const raw = new DatabaseSync(path);
    const later = (name === "outbox" ? outboxMigrations() : inboxMigrations()).length + 1;
    raw.exec(
      `INSERT INTO schema_migration (package, number, name, checksum) VALUES ('daemon-${name}', ${later}, 'later', 'x')`,
    );
    raw.close();
    await expect(open()).rejects.toMatchObject({ reason: "schema_newer" });
  });
});

describe("row ids", () => {
  it("go on growing when the clock was set back between two starts", async () => {
    const folder = temporaryFolder();
    const { db } = await openInboxDatabase(join(folder, "inbox.db"), "now", recordingLog());
    onTestFinished(() => {
      db.close();
    });
    const insert = (id: string) =>
      db
        .sql(
          `INSERT INTO inbox (id, client_message_id, broker_message_id, history_id, sender_pubkey, priority, meta,
             accepted_at, received_at, body) VALUES (?, ?, '', 1, '', 'next', '', 1, 1, x'')`,
        )
        .run(id, id);
    const first = createRowIds(db, "inbox", () => 1_800_000_000_000)();
    insert(first);
    const second = createRowIds(db, "inbox", () => 1_700_000_000_000)();
    expect(second > first).toBe(true);
  });

  it("are never below the lowest id of their moment", async () => {
    const folder = temporaryFolder();
    const { db } = await openOutboxDatabase(join(folder, "outbox.db"));
    onTestFinished(() => {
      db.close();
    });
    const timeMs = 1_800_000_000_000;
    const id = createRowIds(db, "outbox", () => timeMs)();
    expect(id >= lowestUlidAt(timeMs)).toBe(true);
    expect(id < lowestUlidAt(timeMs + 1)).toBe(true);
  });
});

describe("a disk that cannot be read", () => {
  const unreadable = () => {
    throw new StorageError("io", "disk I/O error");
  };

  it("ends the start with that error: no outbox is called damaged, no inbox is set aside", async () => {
    const folder = temporaryFolder();
    const outbox = join(folder, "outbox.db");
    const inbox = join(folder, "inbox.db");
    (await openOutboxDatabase(outbox)).db.close();
    (await openInboxDatabase(inbox, "now", recordingLog())).db.close();
    const before = contents(folder);
    await expect(openOutboxDatabase(outbox, unreadable)).rejects.toMatchObject({ kind: "io" });
    const log = recordingLog();
    await expect(openInboxDatabase(inbox, "now", log, unreadable)).rejects.toMatchObject({ kind: "io" });
    expect(log.lines).toEqual([]);
    expect(contents(folder)).toEqual(before);
  });
});
