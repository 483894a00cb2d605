// Claims, judges and writes a batch of sends of one mesh, inside a transaction that the caller opened as READ COMMITTED, on a
// connection whose plans are generic. The claims come first, since they may wait for other transactions; nothing waits
// after the mesh's lock.
import { lockMesh } from "@claudemesh/members/postgres";
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import type { SendToAccept } from "../../ports.ts";
import { type Ids, insertClaims, type JudgedSend, writeAccepts } from "./accept-statements.ts";
import { checkedAtCommit } from "./checked-at-commit.ts";
import { insertMentions } from "./mention-inserts.ts";

export type AcceptOutcome =
  | JudgedSend
  /** It was not offered to the store at all, because its look-up was too long ago. */
  | { readonly type: "outdated" };

/**
 * Sends every statement without waiting for answers, and COMMIT can be sent right behind them: the transaction does not wait
 * for this process while it holds the mesh's lock. `decided` has one outcome per send, in their order; they hold once the
 * transaction has committed.
 * No two of the sends may have the same client_message_id.
 */
export function pipelineAcceptBatch(
  tx: PostgresTransaction,
  meshId: string,
  sends: readonly SendToAccept[],
  ids: Ids,
): { readonly decided: Promise<AcceptOutcome[]> } {
  // Every transaction claims in the same order, so that two of them never wait for each other.
  const claiming = checkedAtCommit(insertClaims(tx, meshId, [...sends].sort(byClientMessageId), ids));
  const locking = checkedAtCommit(lockMesh(tx, meshId));
  // Statements after the wait: they see what the other transaction committed.
  const writing = checkedAtCommit(writeAccepts(tx, meshId, sends, ids));
  const mentioning = insertMentions(tx, meshId, sends);
  return {
    decided: checkedAtCommit(Promise.all([claiming, locking, writing, mentioning]).then(([, , judged]) => judged)),
  };
}

/** The same for a transaction that goes on afterwards, and that must not fail where an id is taken. */
export async function acceptInTransaction(
  tx: PostgresTransaction,
  meshId: string,
  sends: readonly SendToAccept[],
): Promise<AcceptOutcome[]> {
  return pipelineAcceptBatch(tx, meshId, sends, "contested").decided;
}

function byClientMessageId(a: SendToAccept, b: SendToAccept): number {
  if (a.clientMessageId === b.clientMessageId) return 0;
  return a.clientMessageId < b.clientMessageId ? -1 : 1;
}
