// What must be true once everything has come to rest, whatever happened before: everything that was acknowledged is
// there once, at its end, and the layers agree with each other.
import { checkAllOrphans } from "@claudemesh/messages/services/check-orphans";
import type { DaemonActor } from "../world/daemon.ts";
import type { World } from "../world/world.ts";
import type { AckedSend, Answers } from "./answers.ts";
import type { Committed, HistoryLedger } from "./history-ledger.ts";
import { Violation } from "./violation.ts";

type OutboxRow = {
  client_message_id: string;
  id: string;
  to_address: string;
  status: string;
  prefix: string;
  last_error: string | null;
  broker_message_id: string | null;
  history_id: number | null;
  superseded_by: string | null;
  accept_duplicate: number;
};

const prefixOf = "lower(substr(hex(request_fingerprint), 1, 16)) AS prefix";
const outboxSql = `SELECT client_message_id, id, to_address, status, ${prefixOf}, last_error, broker_message_id, history_id,
    superseded_by, accept_duplicate FROM outbox
  UNION ALL SELECT client_message_id, id, to_address, 'done', ${prefixOf}, NULL, broker_message_id, history_id, NULL, 0
    FROM outbox_tombstone`;

/** Where the plan's sends to nowhere go. */
const nowhere = "#nowhere";

/** How rows have ended, by status and reason: what a run has met. */
export function tallyRows(world: World): Map<string, number> {
  const tally = new Map<string, number>();
  for (const { outbox } of world.daemons) {
    const tombstones = outbox.sql<{ rows: number }>("SELECT count(*) AS rows FROM outbox_tombstone").get()?.rows ?? 0;
    tally.set("row tombstone", (tally.get("row tombstone") ?? 0) + tombstones);
    for (const { status, last_error } of outbox.sql<OutboxRow>("SELECT status, last_error FROM outbox").all()) {
      const end = status === "dead" ? `row dead ${(last_error ?? "").split(":")[0]}` : `row ${status}`;
      tally.set(end, (tally.get(end) ?? 0) + 1);
    }
  }
  return tally;
}

/** Nothing waits for anything any more. */
export function isSettled(world: World): boolean {
  const open = (daemon: DaemonActor) =>
    daemon.api === undefined ||
    daemon.outbox.sql("SELECT 1 FROM outbox WHERE status = 'pending' OR status = 'inflight'").get() !== undefined ||
    daemon.inbox.sql("SELECT 1 FROM inbox_state WHERE key = 'rebuild_after_history_id'").get() !== undefined;
  const unsettled = "SELECT 1 FROM delivery_queue WHERE settled_at IS NULL LIMIT 1";
  return !world.daemons.some(open) && world.broker.disk.sql(unsettled).get() === undefined;
}

/** For a failure: what is still open. */
export function describeOpen(world: World): string {
  const parts = world.daemons.map((daemon, number) => {
    const rows = daemon.outbox
      .sql<{ client_message_id: string; status: string; last_error: string | null }>(
        "SELECT client_message_id, status, last_error FROM outbox WHERE status = 'pending' OR status = 'inflight'",
      )
      .all();
    const link = daemon.api?.health.linkStatus().state ?? "not running";
    const rebuild = daemon.inbox.sql("SELECT 1 FROM inbox_state WHERE key = 'rebuild_after_history_id'").get();
    const inbox = rebuild === undefined ? "" : ", inbox not rebuilt";
    return `daemon-${number} (${link}${inbox}) ${JSON.stringify(rows.slice(0, 3))} of ${rows.length}`;
  });
  const deliveries = world.broker.disk
    .sql<{ history_id: number; recipient_pubkey: string }>(
      "SELECT history_id, recipient_pubkey FROM delivery_queue WHERE settled_at IS NULL",
    )
    .all();
  return `${parts.join("; ")}; ${deliveries.length} deliveries ${JSON.stringify(deliveries.slice(0, 2))}`;
}

export function checkOutboxes(world: World, answers: Answers, ledger: HistoryLedger): void {
  const byDaemon = world.daemons.map(
    (daemon) =>
      new Map(
        daemon.outbox
          .sql<OutboxRow>(outboxSql)
          .all()
          .map((row) => [row.client_message_id, row]),
      ),
  );
  for (const acked of answers.acked) {
    const row = byDaemon[acked.daemon]?.get(acked.clientMessageId);
    checkAcked(acked, row);
  }
  for (const [number, rows] of byDaemon.entries()) {
    const byId = new Map([...rows.values()].map((row) => [row.id, row]));
    const sender = world.daemonAt(number).pubkey;
    for (const row of rows.values()) checkRow(row, byId, sender, { world, answers, ledger });
  }
}

function checkAcked({ clientMessageId, outboxId, fingerprint }: AckedSend, row: OutboxRow | undefined): void {
  if (row === undefined) throw new Violation("acked_send_lost", `${clientMessageId} was answered and has no row`);
  if (row.id !== outboxId || (fingerprint !== "" && row.prefix !== fingerprint)) {
    throw new Violation("acked_send_lost", `${clientMessageId} was row ${outboxId} (${fingerprint}), and is ${row.id}`);
  }
}

type Truth = { readonly world: World; readonly answers: Answers; readonly ledger: HistoryLedger };

function checkRow(row: OutboxRow, byId: ReadonlyMap<string, OutboxRow>, sender: string, truth: Truth): void {
  const { ledger } = truth;
  const { client_message_id: id, status } = row;
  const own = ledger.find(sender, id);
  if (status === "done" && !isThe(row, own)) {
    throw new Violation("stored_send_lost", `${id} is done as history ${row.history_id}, and was never committed`);
  }
  if (status === "dead") checkDead(row, truth);
  if (row.superseded_by === null) return;
  const successor = byId.get(row.superseded_by);
  if (successor === undefined)
    throw new Violation("acked_send_lost", `${id} became ${row.superseded_by}, which is not there`);
  const doubled = own !== undefined && ledger.find(sender, successor.client_message_id) !== undefined;
  if (doubled && row.accept_duplicate !== 1) {
    throw new Violation(
      "committed_twice",
      `${id} was committed and so was ${successor.client_message_id}, its successor`,
    );
  }
}

function isThe(row: OutboxRow, committed: Committed | undefined): boolean {
  return committed?.brokerMessageId === row.broker_message_id && committed?.historyId === row.history_id;
}

/** Reasons that a world like this one can give: nowhere to go, another's id, or too old and settled as such. */
function checkDead({ client_message_id: id, to_address, last_error }: OutboxRow, { world, answers }: Truth): void {
  const reason = (last_error ?? "").split(":")[0];
  if (reason === "destination_not_found" && to_address === nowhere) return;
  if (reason === "idempotency_key_reused" && answers.contested.has(id)) return;
  if (reason === "taken" && answers.contested.has(id)) return;
  // A requeue asked for a fence and did not go through, or the row came to its end by age.
  if (reason === "fenced") return;
  if (reason === "expired" && world.settings.leapDays.some((days) => days > 0)) return;
  throw new Violation("dead_without_reason", `${id}: ${last_error}`);
}

export function checkInboxes(world: World, answers: Answers, ledger: HistoryLedger): void {
  for (const [number, daemon] of world.daemons.entries()) checkInbox(number, daemon, answers, ledger);
  const delivered = world.broker.disk
    .sql<{ history_id: number; recipient_pubkey: string } & MessageIds>(
      `SELECT d.history_id, d.recipient_pubkey, h.client_message_id, h.broker_message_id FROM delivery_queue d
       JOIN message_history h ON h.mesh_id = d.mesh_id AND h.history_id = d.history_id WHERE d.outcome = 'delivered'`,
    )
    .all();
  for (const { history_id, recipient_pubkey, ...ids } of delivered) {
    const receiver = world.daemons.find(({ pubkey }) => pubkey === recipient_pubkey);
    if (receiver === undefined || hasReceived(receiver, ids)) continue;
    throw new Violation("delivery_lost", `history ${history_id} (${ids.client_message_id}) is settled and in no inbox`);
  }
}

type MessageIds = { readonly client_message_id: string; readonly broker_message_id: string };

/** By both: a client id may have stood for several messages. */
function hasReceived({ inbox }: DaemonActor, { client_message_id, broker_message_id }: MessageIds): boolean {
  const known = (table: string) =>
    inbox
      .sql(`SELECT 1 FROM ${table} WHERE client_message_id = ? AND broker_message_id = ?`)
      .get(client_message_id, broker_message_id) !== undefined;
  return known("inbox_message") || known("inbox_tombstone");
}

function checkInbox(number: number, { inbox, pubkey }: DaemonActor, answers: Answers, ledger: HistoryLedger): void {
  const rows = inbox
    .sql<{ client_message_id: string; history_id: number; unreadable: number; restored: number; body: Uint8Array }>(
      "SELECT client_message_id, history_id, unreadable, restored, body FROM inbox_message",
    )
    .all();
  for (const { client_message_id: id, history_id, unreadable, restored, body } of rows) {
    const committed = ledger.at(history_id);
    // What a subscriber may read of a topic's past comes back with a lost inbox, delivered to it or not.
    const isFor = committed?.recipients.includes(pubkey) || (restored === 1 && committed?.kind === "topic");
    if (committed?.clientMessageId !== id || !isFor) {
      throw new Violation("inbox_wrong", `daemon-${number} has ${id}, which was never committed for it`);
    }
    const expected = answers.bodiesOf(id);
    const text = Buffer.from(body).toString();
    // A send without an id of its own whose answer was lost has one that no one knows.
    if (unreadable !== 0 || (expected.size > 0 && !expected.has(text))) {
      throw new Violation("inbox_wrong", `daemon-${number} has ${id} with other content: ${text.slice(0, 60)}`);
    }
  }
  const twice = inbox
    .sql<{ broker_message_id: string }>(
      "SELECT broker_message_id FROM inbox_message INTERSECT SELECT broker_message_id FROM inbox_tombstone",
    )
    .get();
  if (twice !== undefined) throw new Violation("inbox_wrong", `${twice.broker_message_id} is both there and removed`);
}

export async function checkOrphans(world: World): Promise<void> {
  const { broker } = world;
  const report = await checkAllOrphans({ store: broker.messages, nowMs: broker.host.wallMs });
  if (report.ok) return;
  const found = report.checks.filter((check) => check.found > 0).map(({ name, examples }) => `${name} ${examples[0]}`);
  throw new Violation("orphans_found", found.join("; "));
}
