// Claim, B2 and B3 for a batch of sends of one mesh, inside a transaction that the caller opened as READ COMMITTED. The
// claims come first, since they may wait for other transactions; nothing waits after the mesh's lock.
import assert from "node:assert/strict";
import { lockMesh } from "@claudemesh/members/postgres";
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import type { SendToAccept, StoredAccept } from "../../ports.ts";
import { deleteClaims, insertClaims, type JudgedSend, writeAccepts } from "./accept-statements.ts";
import { selectAccepted } from "./stored-accepts.ts";

export type AcceptOutcome =
  | JudgedSend
  /** The id was consumed before. */
  | { readonly type: "stored"; readonly stored: StoredAccept }
  /** The id was consumed and its row has just been forgotten: another try will find it free. */
  | { readonly type: "forgotten" };

/** One outcome per send, in their order. No two of them may have the same client_message_id. */
export async function acceptInTransaction(
  tx: PostgresTransaction,
  meshId: string,
  sends: readonly SendToAccept[],
): Promise<AcceptOutcome[]> {
  // Planning takes longer than running: once for each connection is enough, see accept-statements.ts.
  const settled = tx.script("SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off");
  // Every transaction claims in the same order, so that two of them never wait for each other.
  const [claimed] = await Promise.all([insertClaims(tx, meshId, [...sends].sort(byClientMessageId)), settled]);
  const firsts = sends.filter((send) => claimed.has(send.clientMessageId));
  const others = sends.filter((send) => !claimed.has(send.clientMessageId));

  const outcomes = new Map<SendToAccept, AcceptOutcome>();
  if (others.length > 0) {
    // A statement after the wait: it sees what the other transaction committed.
    const stored = await selectAccepted(tx, others);
    for (const [index, send] of others.entries()) outcomes.set(send, toOutcome(stored[index]));
  }
  if (firsts.length > 0) {
    const [, judged] = await Promise.all([lockMesh(tx, meshId), writeAccepts(tx, meshId, firsts)]);
    for (const [index, outcome] of judged.entries()) outcomes.set(at(firsts, index), outcome);
    const refused = firsts.filter((_, index) => judged[index]?.type === "refused");
    if (refused.length > 0) await deleteClaims(tx, meshId, refused);
  }
  return sends.map((send) => {
    const outcome = outcomes.get(send);
    assert(outcome !== undefined, "every send of a batch has an outcome");
    return outcome;
  });
}

function at<T>(items: readonly T[], index: number): T {
  const item = items[index];
  assert(item !== undefined, `there is no item ${index}`);
  return item;
}

function toOutcome(stored: StoredAccept | undefined): AcceptOutcome {
  return stored === undefined ? { type: "forgotten" } : { type: "stored", stored };
}

function byClientMessageId(a: SendToAccept, b: SendToAccept): number {
  if (a.clientMessageId === b.clientMessageId) return 0;
  return a.clientMessageId < b.clientMessageId ? -1 : 1;
}
