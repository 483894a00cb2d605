// Topics and subscriptions on PostgreSQL.
import { lockMesh } from "@claudemesh/members/postgres";
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { beforeNul } from "@claudemesh/storage/postgres-text";
import { CountRoom, countedMax } from "../../core/count-room.ts";
import type { PostPolicy, Topic, TopicCounts } from "../../ports.ts";
import type { Reading } from "./stored-accepts.ts";

export async function insertTopic(
  tx: PostgresTransaction,
  meshId: string,
  topic: { name: string; postPolicy: PostPolicy; createdBy: string },
  nowMs: number,
): Promise<"created" | "exists" | "different"> {
  const created = await tx.execute(
    `INSERT INTO mesh.topic (mesh_id, name, post_policy, created_by, created_at) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT DO NOTHING`,
    [meshId, topic.name, topic.postPolicy, topic.createdBy, new Date(nowMs)],
  );
  if (created === 1) return "created";
  const [stored] = await tx.query<{ post_policy: PostPolicy }>(
    "SELECT post_policy FROM mesh.topic WHERE mesh_id = $1 AND name = $2",
    [meshId, topic.name],
  );
  return stored?.post_policy === topic.postPolicy ? "exists" : "different";
}

export function selectTopics(
  db: Reading,
  meshId: string,
  reader: string,
  after: string,
  limit: number,
): Promise<Topic[]> {
  return db.query<Topic>(
    `SELECT t.name, t.post_policy AS "postPolicy", EXISTS (SELECT 1 FROM mesh.topic_subscription s
       WHERE s.mesh_id = t.mesh_id AND s.topic = t.name AND s.member_pubkey = $2) AS subscribed
     FROM mesh.topic t WHERE t.mesh_id = $1 AND t.name > $3 ORDER BY t.name LIMIT $4`,
    [meshId, reader, beforeNul(after), limit],
  );
}

export async function topicExists(db: Reading, meshId: string, topic: string): Promise<boolean> {
  return (await db.query("SELECT 1 FROM mesh.topic WHERE mesh_id = $1 AND name = $2", [meshId, topic])).length > 0;
}

export async function countTopics(db: Reading, meshId: string, upTo: number): Promise<number> {
  const counted =
    "SELECT count(*)::int AS n FROM (SELECT FROM mesh.topic WHERE mesh_id = $1 LIMIT $2) AS those_counted";
  const [row] = await db.query<{ n: number }>(counted, [meshId, upTo]);
  return row?.n ?? 0;
}

/** One statement: what a page may count at most follows from its number of topics and `countedMax`. */
const topicsPerStep = 10;

export async function measureTopics(
  db: Reading,
  meshId: string,
  topics: readonly string[],
): Promise<Map<string, TopicCounts>> {
  const room = new CountRoom();
  const counts = new Map<string, TopicCounts>();
  for (let from = 0; from < topics.length; from += topicsPerStep) {
    const rows = await db.query<{ topic: string; subscribers: number; messages: number; last_message_at: Date | null }>(
      `SELECT t.topic, s.n AS subscribers, coalesce(c.messages, 0)::float8 AS messages, c.last_message_at
       FROM unnest($2::text[]) WITH ORDINALITY AS t (topic, ordinal)
       CROSS JOIN LATERAL (SELECT count(*)::int AS n FROM
         (SELECT 1 FROM mesh.topic_subscription WHERE mesh_id = $1 AND topic = t.topic LIMIT $3) AS l) AS s
       LEFT JOIN mesh.topic_counter c ON c.mesh_id = $1 AND c.topic = t.topic
       ORDER BY t.ordinal`,
      [meshId, topics.slice(from, from + topicsPerStep), countedMax],
    );
    for (const { topic, subscribers, messages, last_message_at } of rows) {
      counts.set(topic, { subscribers, messages, lastMessageAtMs: last_message_at?.getTime() });
      if (!room.take(subscribers)) return counts;
    }
  }
  return counts;
}

/** False where there is no such topic. The topic is locked against deletion while the subscription is written. */
async function holdTopic(tx: PostgresTransaction, meshId: string, topic: string): Promise<boolean> {
  const rows = await tx.query("SELECT 1 FROM mesh.topic WHERE mesh_id = $1 AND name = $2 FOR KEY SHARE", [
    meshId,
    topic,
  ]);
  return rows.length === 1;
}

export async function insertSubscription(
  tx: PostgresTransaction,
  meshId: string,
  topic: string,
  pubkey: string,
  nowMs: number,
): Promise<boolean> {
  if (!(await holdTopic(tx, meshId, topic))) return false;
  await tx.execute(
    `INSERT INTO mesh.topic_subscription (mesh_id, topic, member_pubkey, subscribed_at) VALUES ($1, $2, $3, $4)
     ON CONFLICT DO NOTHING`,
    [meshId, topic, pubkey, new Date(nowMs)],
  );
  return true;
}

export async function deleteSubscription(
  tx: PostgresTransaction,
  meshId: string,
  topic: string,
  pubkey: string,
): Promise<boolean> {
  if (!(await holdTopic(tx, meshId, topic))) return false;
  await tx.execute("DELETE FROM mesh.topic_subscription WHERE mesh_id = $1 AND topic = $2 AND member_pubkey = $3", [
    meshId,
    topic,
    pubkey,
  ]);
  return true;
}

/** Under the mesh's lock, like every change that an accept depends on. */
export async function deleteTopic(tx: PostgresTransaction, meshId: string, topic: string): Promise<void> {
  await lockMesh(tx, meshId);
  // The topic is deleted first: this waits for transactions that are subscribing to it, because they have locked it.
  await tx.execute("DELETE FROM mesh.topic WHERE mesh_id = $1 AND name = $2", [meshId, topic]);
  await tx.execute("DELETE FROM mesh.topic_subscription WHERE mesh_id = $1 AND topic = $2", [meshId, topic]);
}
