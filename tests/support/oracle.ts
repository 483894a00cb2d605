// What must be true of a mesh once it has settled, whatever happened to its processes: everything acknowledged is there
// once; what was never acknowledged is there once or not at all; and the layers agree with each other.
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { runCli } from "./process.ts";
import type { Sent } from "./senders.ts";
import type { Peer, World } from "./world.ts";

export async function expectDeliveredOnce(receiver: Peer, sent: readonly Sent[]): Promise<void> {
  const items = await receiver.inbox();
  const copies = new Map<string, string[]>();
  for (const item of items) {
    copies.set(item.client_message_id, [...(copies.get(item.client_message_id) ?? []), item.body ?? "(unreadable)"]);
  }
  const lost = sent.filter((one) => one.answered && !copies.has(one.id)).map((one) => one.id);
  assert.deepEqual(lost, [], `answered and never delivered to ${receiver.name}: ${some(lost)}`);
  const doubled = [...copies].filter(([, texts]) => texts.length > 1).map(([id]) => id);
  assert.deepEqual(doubled, [], `delivered to ${receiver.name} more than once: ${some(doubled)}`);
  for (const one of sent) {
    const [text] = copies.get(one.id) ?? [];
    if (text !== undefined) assert.equal(text, one.text, `${one.id} came to ${receiver.name} with another text`);
  }
}

/** Enough of a list to look into it. */
function some(ids: readonly string[]): string {
  const shown = ids.slice(0, 20).join(", ");
  return ids.length > 20 ? `${shown} and ${ids.length - 20} more` : shown;
}

/** Deliveries that no receiver has confirmed yet. */
export function countUnsettled(world: World): number {
  return readBroker(world, (count) => count("SELECT count(*) AS n FROM delivery_queue WHERE settled_at IS NULL"));
}

function readBroker<T>(world: World, read: (count: (sql: string) => number) => T): T {
  const db = new DatabaseSync(world.storePath, { readOnly: true });
  try {
    return read((sql) => Number(db.prepare(sql).get()?.n));
  } finally {
    db.close();
  }
}

/** Each stored message has one dedupe row, one message row and one history row; history ids have no gap and no twin. */
export function expectBrokerConsistent(world: World): { readonly stored: number } {
  return readBroker(world, (count) => {
    const stored = count("SELECT count(*) AS n FROM client_message_dedupe");
    assert.equal(count("SELECT count(*) AS n FROM message_history"), stored);
    const messages = "(SELECT id FROM topic_message UNION ALL SELECT id FROM message_queue)";
    assert.equal(count(`SELECT count(DISTINCT id) AS n FROM ${messages}`), stored);
    const joined = `SELECT count(*) AS n FROM client_message_dedupe d
      JOIN message_history h ON h.mesh_id = d.mesh_id AND h.history_id = d.history_id
        AND h.broker_message_id = d.broker_message_id AND h.client_message_id = d.client_message_id
      JOIN ${messages} m ON m.id = d.broker_message_id`;
    assert.equal(count(joined), stored);
    assert.equal(count("SELECT coalesce(max(history_id), 0) AS n FROM message_history"), stored);
    assert.equal(count("SELECT count(*) AS n FROM delivery_queue WHERE settled_at IS NULL"), 0);
    return { stored };
  });
}

/** Every outbox row has ended at the broker, and says which message it became. */
export async function expectOutboxDone(sender: Peer): Promise<void> {
  const rows = await sender.outbox();
  const open = rows.filter((row) => row.status !== "done" || row.broker_message_id === null);
  const shown = open.map((row) => `${row.client_message_id} (${row.status}, ${row.last_error})`);
  assert.deepEqual(shown, [], `${sender.name}'s outbox holds open rows: ${some(shown)}`);
}

type AuditValue = { readonly balanced: boolean; readonly complete: boolean; readonly imbalances: readonly unknown[] };

/** `claudemesh audit` over the homes of all of them: exit code 0, everything looked at, nothing out of balance. */
export async function expectAuditBalances(...peers: readonly [Peer, ...Peer[]]): Promise<void> {
  const [own, ...others] = peers;
  const homes = others.flatMap((peer) => ["--home", peer.home]);
  const { code, stdout, stderr } = await runCli(["audit", "--json", ...homes], { home: own.home });
  const { balanced, complete, imbalances } = JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "{}") as AuditValue;
  const found = { balanced, complete, imbalances, code };
  const wanted = { balanced: true, complete: true, imbalances: [], code: 0 };
  assert.deepEqual(found, wanted, `the audit says ${JSON.stringify(found).slice(0, 2_000)} ${stderr}`);
}

/** All of it, for a world in which two peers sent to each other. Says how many messages were answered and stored. */
export async function expectNothingLostOrDoubled(run: {
  readonly world: World;
  readonly alice: Peer;
  readonly bob: Peer;
  readonly fromAlice: readonly Sent[];
  readonly fromBob: readonly Sent[];
}): Promise<{ readonly answered: number; readonly stored: number }> {
  const { world, alice, bob, fromAlice, fromBob } = run;
  await expectDeliveredOnce(bob, fromAlice);
  await expectDeliveredOnce(alice, fromBob);
  await expectOutboxDone(alice);
  await expectOutboxDone(bob);
  const { stored } = expectBrokerConsistent(world);
  const answered = [...fromAlice, ...fromBob].filter((one) => one.answered).length;
  assert.ok(stored >= answered, `${answered} answered and ${stored} stored`);
  await expectAuditBalances(alice, bob);
  return { answered, stored };
}
