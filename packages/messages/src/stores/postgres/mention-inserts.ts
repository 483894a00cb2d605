// Writing the mentions of a batch's messages, on PostgreSQL: a statement of its own, so that a mention index that refuses a row
// is known for what it is, and sends without mentions do not need it.
// Why: docs/decisions/0156.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { textArray, uuidArray } from "@claudemesh/storage/postgres-arrays";
import type { SendToAccept } from "../../ports.ts";
import { writeMentions } from "../mention-failure.ts";

// A send that was not accepted has no message under this id, which no other send ever had, and so gets no mention.
const mentionsSql = `
  INSERT INTO mesh.mention_index (mesh_id, mentioned_pubkey, history_id, broker_message_id)
  SELECT $1, m.pubkey, m.history_id, m.id
  FROM (
    SELECT e.id, e.pubkey, coalesce(
      (SELECT t.history_id FROM mesh.topic_message t WHERE t.mesh_id = $1 AND t.id = e.id),
      (SELECT q.history_id FROM mesh.message_queue q WHERE q.mesh_id = $1 AND q.id = e.id)) AS history_id
    FROM unnest($2::uuid[], $3::text[]) AS e (id, pubkey)
  ) AS m
  WHERE m.history_id IS NOT NULL`;

/** Runs behind the statement that writes the messages, in the same transaction. Undefined where no send has mentions. */
export function insertMentions(
  tx: PostgresTransaction,
  meshId: string,
  sends: readonly SendToAccept[],
): Promise<number> | undefined {
  const mentions = sends.flatMap((send) => send.mentions.map((pubkey) => ({ id: send.brokerMessageId, pubkey })));
  if (mentions.length === 0) return undefined;
  const values = [meshId, uuidArray(mentions.map(({ id }) => id)), textArray(mentions.map(({ pubkey }) => pubkey))];
  return tx.execute(mentionsSql, values, writeMentions);
}
