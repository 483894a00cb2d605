// An outbox that an earlier version wrote, opened by this one: every row and tombstone is there, answers as before, and
// can be requeued.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { outboxStatuses } from "@claudemesh/protocol/messages/outbox-row";
import { GroupCommit } from "@claudemesh/storage/group-commit";
import { openSqlite } from "@claudemesh/storage/sqlite";
import { migrateSqlite } from "@claudemesh/storage/sqlite-migrations";
import { describe, expect, it, onTestFinished } from "vitest";
import { openOutboxDatabase, outboxMigrations } from "./open-databases.ts";
import { createSqliteOutboxStore } from "./outbox-store.ts";
import { createSqliteRequeueStore } from "./requeue-store.ts";

const columns = `id, client_message_id, request_fingerprint, wire_fingerprint, to_address, destination_kind,
  destination_ref, priority, meta, reply_to_id, envelope_version, enqueued_at, attempts, unanswered, fenced,
  next_attempt_at, status, last_error, delivered_at, broker_message_id, history_id, aborted_at, aborted_by,
  superseded_by, payload`;
const keptInTombstone = `client_message_id, id, request_fingerprint, wire_fingerprint, to_address, destination_kind,
  destination_ref, priority, meta, reply_to_id, envelope_version, enqueued_at, attempts, delivered_at,
  broker_message_id, history_id`;

/** One row in each state, the done one with a large payload, and a tombstone, as the first schema had them. */
async function writeFirstVersion(path: string) {
  const db = openSqlite({ path });
  await migrateSqlite(db, outboxMigrations().slice(0, 1));
  outboxStatuses.forEach((status, index) => {
    const answered = status === "done" ? [5, `b-${index}`, index] : [null, null, null];
    const aborted = status === "aborted" ? [6, "operator", "0000000000000000000000000D"] : [null, null, null];
    const payload = new Uint8Array(status === "done" ? 200_000 : 10).fill(index);
    const id = `0000000000000000000000000${"ABCDE"[index]}`;
    db.sql(`INSERT INTO outbox (${columns}) VALUES (?, ?, zeroblob(32), zeroblob(32), '#general', 'topic', 'general',
        'low', '{"a":1}', 'm0', '1', 3, 2, 1, 0, 4, ?, 'why', ?, ?, ?, ?, ?, ?, ?)`).run(
      id,
      `client-${status}`,
      status,
      ...answered,
      ...aborted,
      payload,
    );
  });
  db.sql(`INSERT INTO outbox_tombstone (${keptInTombstone}, pruned_at)
    SELECT 'client-pruned', 'PRUNED', request_fingerprint, wire_fingerprint, to_address, destination_kind,
      destination_ref, priority, meta, reply_to_id, envelope_version, enqueued_at, attempts, delivered_at,
      broker_message_id, history_id, 9 FROM outbox WHERE status = 'done'`).run();
  const rows = db.sql(`SELECT ${columns} FROM outbox ORDER BY id`).all();
  const tombstones = db.sql(`SELECT ${keptInTombstone}, pruned_at FROM outbox_tombstone`).all();
  db.close();
  return { rows, tombstones };
}

async function openUpgraded() {
  const folder = mkdtempSync(join(tmpdir(), "cm-db-"));
  const path = join(folder, "outbox.db");
  const written = await writeFirstVersion(path);
  const { db, schema } = await openOutboxDatabase(path);
  onTestFinished(() => {
    db.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const commit = new GroupCommit(db);
  return {
    db,
    schema,
    written,
    outbox: createSqliteOutboxStore(db, commit),
    requeues: createSqliteRequeueStore(db, commit),
  };
}

describe("an outbox of the first version", () => {
  it("keeps every byte, and no row of it says that a duplicate was accepted", async () => {
    const { db, schema, written } = await openUpgraded();
    expect(schema).toBe(outboxMigrations().length);
    expect(db.sql(`SELECT ${columns} FROM outbox ORDER BY id`).all()).toEqual(written.rows);
    expect(db.sql(`SELECT ${keptInTombstone}, pruned_at FROM outbox_tombstone`).all()).toEqual(written.tombstones);
    expect(written.rows).toHaveLength(outboxStatuses.length);
    expect(db.sql("SELECT accept_duplicate FROM outbox WHERE accept_duplicate <> 0").all()).toEqual([]);
  });

  it("is read, chain and tombstone included, like one of this version", async () => {
    const { outbox } = await openUpgraded();
    expect(outbox.inspect("client-aborted")?.chain.map(({ status }) => status)).toEqual(["aborted", "dead"]);
    expect(outbox.inspect("PRUNED")?.row).toMatchObject({
      status: "done",
      accept_duplicate: 0,
      broker_message_id: "b-2",
    });
    expect(outbox.find("client-pruned")).toMatchObject({ status: "done", outboxId: "PRUNED" });
  });

  it("has rows that can be requeued, and the mark survives pruning", async () => {
    const { outbox, requeues } = await openUpgraded();
    const order = {
      oldId: "0000000000000000000000000D",
      newId: "0000000000000000000000000F",
      newClientMessageId: "again",
      nowMs: 100,
      patched: undefined,
      provenUncommitted: false,
      acceptDuplicate: true,
      despiteUnknownFate: true,
    };
    expect(await requeues.requeue(order)).toEqual({ type: "requeued" });
    expect(outbox.inspect("again")?.chain.map(({ client_message_id }) => client_message_id)).toEqual([
      "client-aborted",
      "client-dead",
      "again",
    ]);
    await outbox.commitLate(order.newId, { brokerMessageId: "b", historyId: 8, historyAvailable: true }, 200);
    expect(await outbox.prune(86_400_000, 300, 10)).toBe(2);
    expect(outbox.inspect("again")?.row).toMatchObject({ status: "done", accept_duplicate: 1, history_id: 8 });
  });
});
