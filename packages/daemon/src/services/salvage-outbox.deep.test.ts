import { existsSync, readdirSync, readFileSync, renameSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { nodeSha256 } from "@claudemesh/client/internal/node-sha256";
import { openSqlite } from "@claudemesh/storage/sqlite";
import { describe, expect, it, onTestFinished } from "vitest";
import { openOutboxDatabase, recoveringPath } from "../stores/sqlite/open-databases.ts";
import { settle } from "../testing/scripted-link.ts";
import { startTestDaemon, type TestHome, temporaryHome } from "../testing/test-daemon.ts";
import { salvageOutbox } from "./salvage-outbox.ts";

const pageBytes = 4_096;
const rows = 60;
const idOf = (row: number) => `order-${String(row).padStart(3, "0")}`;
const bodyOf = (row: number) => `${idOf(row)} says ${"x".repeat(900)}`;

/** An outbox whose first rows are done, of which one is a tombstone, and the others pending; all of it in the file. */
async function fillOutbox(at: TestHome, done = 10): Promise<void> {
  const daemon = await startTestDaemon({ at });
  daemon.link.goOnline();
  for (let row = 0; row < rows; row++) {
    if (row === done) {
      daemon.link.goOffline();
      await settle();
    }
    await daemon.send({ to: "#general", message: bodyOf(row), client_message_id: idOf(row) });
    if (row >= done) continue;
    const frame = await daemon.link.requested("send");
    frame.answer(201, { broker_message_id: `b-${row}`, history_id: row + 1, duplicate: false });
    await settle();
  }
  await daemon.daemon.stop();
  const db = new DatabaseSync(at.paths.outboxDb);
  db.exec(`INSERT INTO outbox_tombstone SELECT client_message_id, id, request_fingerprint, wire_fingerprint, to_address,
      destination_kind, destination_ref, priority, meta, reply_to_id, envelope_version, enqueued_at, attempts,
      delivered_at, broker_message_id, history_id, 1, accept_duplicate
    FROM outbox WHERE client_message_id = '${idOf(0)}';
    DELETE FROM outbox WHERE client_message_id = '${idOf(0)}'`);
  // No page keeps an old copy of a row after this, so that each row is on one page.
  db.exec("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
  db.close();
}

/** The page of the table that holds a row, by its first byte: 13 is a leaf of a table. */
function pageOf(bytes: Buffer, row: number): number {
  for (let from = 0; ; from++) {
    from = bytes.indexOf(bodyOf(row).slice(0, 40), from);
    if (from < 0) throw new Error(`${idOf(row)} is in no page`);
    const page = Math.floor(from / pageBytes);
    if (bytes[page * pageBytes] === 13) return page;
  }
}

/** Writes over the pages that hold these rows; says which rows those were. */
function ruinPages(at: TestHome, ...ruined: readonly number[]): string[] {
  const bytes = readFileSync(at.paths.outboxDb);
  const pages = new Map(Array.from({ length: rows - 1 }, (_, row) => [row + 1, pageOf(bytes, row + 1)]));
  const bad = new Set(ruined.map((row) => pages.get(row) ?? 0));
  for (const page of bad) bytes.fill(0x5a, page * pageBytes, (page + 1) * pageBytes);
  writeFileSync(at.paths.outboxDb, bytes);
  return [...pages].filter(([, page]) => bad.has(page)).map(([row]) => idOf(row));
}

const hashOf = (path: string) => nodeSha256.hex(readFileSync(path));
const asideOf = (at: TestHome) =>
  readdirSync(at.paths.dir).filter((name) => /^outbox\.db\.corrupt-[0-9TZ-]+$/.test(name));

describe("recovering a damaged outbox", () => {
  it("keeps every row that can be read, says which are lost, and sets the damaged file aside as it was", async () => {
    const at = temporaryHome();
    await fillOutbox(at);
    const gone = ruinPages(at, 5, 30);
    const damaged = hashOf(at.paths.outboxDb);
    await expect(startTestDaemon({ at })).rejects.toMatchObject({ reason: "outbox_corrupt" });

    const recovery = await salvageOutbox(at.paths, Date.UTC(2030, 0, 2, 3, 4, 5));
    const done = gone.filter((id) => id < idOf(10)).length;
    expect(recovery).toMatchObject({
      outcome: "recovered",
      setAside: `${at.paths.outboxDb}.corrupt-2030-01-02T03-04-05-000Z`,
      salvage: {
        rowsRead: rows - 1 - gone.length,
        rowsLost: gone.length,
        tombstonesRead: 1,
        tombstonesLost: 0,
        fateUnknown: rows - 10 - (gone.length - done),
      },
    });
    if (recovery.outcome !== "recovered") return;
    expect(recovery.salvage.lostIds.toSorted()).toEqual(gone.toSorted());
    expect(hashOf(recovery.setAside)).toBe(damaged);
    expect(statSync(recovery.setAside).mode & 0o777).toBe(0o600);
    expect(statSync(at.paths.outboxDb).mode & 0o777).toBe(0o600);
    expect(readdirSync(at.paths.dir).filter((name) => name.includes("recovering"))).toEqual([]);
  });

  it("leaves rows that answer as before, and sends again what was to be sent, under its own id", async () => {
    const at = temporaryHome();
    await fillOutbox(at);
    const gone = ruinPages(at, 30);
    await salvageOutbox(at.paths);
    const daemon = await startTestDaemon({ at });
    const again = (row: number) => daemon.send({ to: "#general", message: bodyOf(row), client_message_id: idOf(row) });
    expect((await again(0)).body).toMatchObject({ status: "done", duplicate: true, broker_message_id: "b-0" });
    expect((await again(7)).body).toMatchObject({ status: "done", duplicate: true, broker_message_id: "b-7" });
    expect((await again(59)).body).toMatchObject({ status: "queued", duplicate: true });
    const { body } = await daemon.call("GET", `/v1/outbox/${idOf(59)}`);
    expect(body.row).toMatchObject({ status: "pending", fate: "unknown", attempts: 1, unanswered: 1 });
    // A lost id is free again here: the broker is who still knows it.
    expect(gone).toContain(idOf(30));
    expect((await again(30)).body).toMatchObject({ status: "queued", duplicate: false });
    daemon.link.goOnline();
    await settle();
    const sent = daemon.link.ofKind("send").map(({ input }) => input);
    expect(sent.map((input) => input.client_message_id)).toContain(idOf(59));
    for (const input of sent) expect(String(input.body)).toMatch(new RegExp(`^${input.client_message_id} says x+$`));
  });

  it("never sends a row whose content is not what was accepted", async () => {
    const at = temporaryHome();
    await fillOutbox(at);
    const bytes = readFileSync(at.paths.outboxDb);
    const page = pageOf(bytes, 40) * pageBytes;
    const at40 = bytes.indexOf(bodyOf(40).slice(0, 40), page);
    bytes.write("ORDER", at40 + bodyOf(40).length - 10);
    writeFileSync(at.paths.outboxDb, bytes);
    ruinPages(at, 20);
    const recovery = await salvageOutbox(at.paths);
    expect(recovery).toMatchObject({ salvage: { lostIds: expect.arrayContaining([idOf(40)]) } });
    const { db } = await openOutboxDatabase(at.paths.outboxDb);
    onTestFinished(() => {
      db.close();
    });
    expect(db.sql("SELECT 1 FROM outbox WHERE client_message_id = ?").get(idOf(40))).toBeUndefined();
  });

  it("reads what is behind a damaged page when the indexes are damaged too", async () => {
    const at = temporaryHome();
    await fillOutbox(at);
    const db = new DatabaseSync(at.paths.outboxDb, { readOnly: true });
    const roots = db.prepare("SELECT rootpage FROM sqlite_schema WHERE type = 'index'").all();
    db.close();
    const bytes = readFileSync(at.paths.outboxDb);
    for (const { rootpage } of roots)
      bytes.fill(0x5a, (Number(rootpage) - 1) * pageBytes, Number(rootpage) * pageBytes);
    writeFileSync(at.paths.outboxDb, bytes);
    const gone = ruinPages(at, 20, 40);
    const recovery = await salvageOutbox(at.paths);
    expect(recovery).toMatchObject({ outcome: "recovered", salvage: { rowsRead: rows - 1 - gone.length } });
  });

  it.each([
    ["is no database at all", (path: string) => writeFileSync(path, "x".repeat(8_192))],
    ["has lost everything but its first page", (path: string) => truncateSync(path, pageBytes)],
    ["is empty but for its name", (path: string) => writeFileSync(path, "SQLite format 3\0")],
  ])("that %s leaves an empty one, and says that nothing was read", async (_, harm) => {
    const at = temporaryHome();
    await fillOutbox(at);
    harm(at.paths.outboxDb);
    expect(await salvageOutbox(at.paths)).toMatchObject({
      outcome: "recovered",
      salvage: { rowsRead: 0, tombstonesRead: 0, fateUnknown: 0 },
    });
    expect(asideOf(at)).toHaveLength(1);
    expect((await startTestDaemon({ at })).rowCount()).toBe(0);
  });
});

describe("a recovery", () => {
  it("changes nothing where the outbox is sound", async () => {
    const at = temporaryHome();
    await fillOutbox(at);
    const before = hashOf(at.paths.outboxDb);
    expect(await salvageOutbox(at.paths)).toEqual({ outcome: "sound", mesh: "acme" });
    expect(hashOf(at.paths.outboxDb)).toBe(before);
    expect(asideOf(at)).toEqual([]);
  });

  it("is refused while a daemon runs, and where there is nothing to recover", async () => {
    const daemon = await startTestDaemon();
    await expect(salvageOutbox(daemon.paths)).rejects.toMatchObject({ reason: "daemon_running" });
    await expect(salvageOutbox(temporaryHome().paths)).rejects.toMatchObject({ reason: "nothing_to_recover" });
  });

  it("that was cut off while it read begins anew; until then no daemon starts", async () => {
    const at = temporaryHome();
    await fillOutbox(at);
    const gone = ruinPages(at, 30);
    writeFileSync(recoveringPath(at.paths.outboxDb), "half a database");
    await expect(startTestDaemon({ at })).rejects.toMatchObject({
      reason: "outbox_corrupt",
      message: expect.stringContaining("claudemesh daemon recover"),
    });
    expect(await salvageOutbox(at.paths)).toMatchObject({ salvage: { rowsRead: rows - 1 - gone.length } });
    expect((await startTestDaemon({ at })).rowCount()).toBe(rows - 1 - gone.length);
  });

  it("that was cut off between setting the old one aside and renaming the new one is finished", async () => {
    const at = temporaryHome();
    await fillOutbox(at);
    const gone = ruinPages(at, 30);
    await salvageOutbox(at.paths);
    // As it lay there one step before.
    renameSync(at.paths.outboxDb, recoveringPath(at.paths.outboxDb));
    writeFileSync(`${at.paths.outboxDb}-wal`, "of the damaged one");
    await expect(startTestDaemon({ at })).rejects.toMatchObject({ reason: "outbox_corrupt" });
    expect(existsSync(at.paths.outboxDb)).toBe(false);
    expect(await salvageOutbox(at.paths)).toEqual({ outcome: "finished", mesh: "acme" });
    expect(existsSync(`${at.paths.outboxDb}-wal`)).toBe(false);
    expect((await startTestDaemon({ at })).rowCount()).toBe(rows - 1 - gone.length);
  });

  it("reads an outbox of an older build, and leaves that of a newer one alone", async () => {
    const change = (at: TestHome, sql: string) => {
      const db = new DatabaseSync(at.paths.outboxDb);
      db.exec(`${sql}; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)`);
      db.close();
      return ruinPages(at, 30);
    };
    const older = temporaryHome();
    await fillOutbox(older);
    const gone = change(older, "ALTER TABLE outbox DROP COLUMN accept_duplicate");
    expect(await salvageOutbox(older.paths)).toMatchObject({ salvage: { rowsRead: rows - 1 - gone.length } });

    const newer = temporaryHome();
    await fillOutbox(newer);
    change(newer, "ALTER TABLE outbox ADD COLUMN tomorrow TEXT");
    const before = hashOf(newer.paths.outboxDb);
    await expect(salvageOutbox(newer.paths)).rejects.toMatchObject({ reason: "schema_newer" });
    expect(hashOf(newer.paths.outboxDb)).toBe(before);
    expect(existsSync(recoveringPath(newer.paths.outboxDb))).toBe(false);
  });

  it("includes what was committed to the log and is not in the file yet", async () => {
    const at = temporaryHome();
    await fillOutbox(at);
    const daemon = await startTestDaemon({ at });
    await daemon.send({ to: "#general", message: "late", client_message_id: "late" });
    const copies = ["", "-wal"].map((suffix) => [suffix, readFileSync(at.paths.outboxDb + suffix)] as const);
    await daemon.daemon.stop();
    for (const [suffix, bytes] of copies) writeFileSync(at.paths.outboxDb + suffix, bytes, { mode: 0o600 });
    const gone = ruinPages(at, 30);
    expect(await salvageOutbox(at.paths)).toMatchObject({ salvage: { rowsRead: rows - gone.length } });
    const db = openSqlite({ path: at.paths.outboxDb });
    onTestFinished(() => {
      db.close();
    });
    expect(db.sql("SELECT status FROM outbox WHERE client_message_id = 'late'").get()).toEqual({ status: "pending" });
  });
});
