// Claim, B2 and B3 for a batch of sends of one mesh, inside a transaction that the caller opened as READ COMMITTED, on a
// connection whose plans are generic. The claims come first, since they may wait for other transactions; nothing waits
// after the mesh's lock.
import assert from "node:assert/strict";
import { lockMesh } from "@claudemesh/members/postgres";
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import type { SendToAccept, StoredAccept } from "../../ports.ts";
import { insertClaims, type JudgedSend, writeAccepts } from "./accept-statements.ts";
import { selectAccepted } from "./stored-accepts.ts";

export type AcceptOutcome =
  | JudgedSend
  /** The id was consumed before. */
  | { readonly type: "stored"; readonly stored: StoredAccept }
  /** The id was consumed and its row has just been forgotten: another try will find it free. */
  | { readonly type: "forgotten" }
  /** It was not offered to the store at all: too long after its look-up. */
  | { readonly type: "outdated" };

/**
 * Resolves when the last statement is on its way, so that COMMIT can travel behind it: who holds the mesh's lock does
 * not wait for us in between. `decided`, one outcome per send in their order, is true once the transaction committed.
 * No two of the sends may have the same client_message_id.
 */
export async function sendAccepts(
  tx: PostgresTransaction,
  meshId: string,
  sends: readonly SendToAccept[],
): Promise<{ readonly decided: Promise<AcceptOutcome[]> }> {
  // Every transaction claims in the same order, so that two of them never wait for each other.
  const claimed = await insertClaims(tx, meshId, [...sends].sort(byClientMessageId));
  const firsts = sends.filter((send) => claimed.has(send.clientMessageId));
  const others = firsts.length === sends.length ? [] : sends.filter((send) => !claimed.has(send.clientMessageId));
  // A statement after the wait: it sees what the other transaction committed.
  const reading = others.length === 0 ? [] : selectAccepted(tx, others);
  const locking = firsts.length === 0 ? undefined : lockMesh(tx, meshId);
  const writing = firsts.length === 0 ? [] : writeAccepts(tx, meshId, firsts);
  const decided = Promise.all([reading, writing, locking]).then(([stored, judged]) => {
    if (others.length === 0) return judged;
    const outcomes = new Map<SendToAccept, AcceptOutcome>();
    for (const [index, send] of others.entries()) outcomes.set(send, toOutcome(stored[index]));
    for (const [index, send] of firsts.entries()) outcomes.set(send, at(judged, index));
    return sends.map((send) => {
      const outcome = outcomes.get(send);
      assert(outcome !== undefined, "every send of a batch has an outcome");
      return outcome;
    });
  });
  // Who commits without waiting for it hears of a failure from COMMIT.
  decided.catch(() => undefined);
  return { decided };
}

/** As above, for who goes on inside the transaction. */
export async function acceptInTransaction(
  tx: PostgresTransaction,
  meshId: string,
  sends: readonly SendToAccept[],
): Promise<AcceptOutcome[]> {
  return (await sendAccepts(tx, meshId, sends)).decided;
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
