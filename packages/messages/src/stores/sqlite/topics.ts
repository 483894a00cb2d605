// Topics and subscriptions on SQLite.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { CountRoom, countedMax } from "../../core/count-room.ts";
import type { PostPolicy, Topic, TopicCounts } from "../../ports.ts";

export function insertTopic(
  tx: Sqlite,
  meshId: string,
  topic: { name: string; postPolicy: PostPolicy; createdBy: string },
  nowMs: number,
): "created" | "exists" | "different" {
  const stored = tx
    .sql<{ post_policy: PostPolicy }>("SELECT post_policy FROM topic WHERE mesh_id = ? AND name = ?")
    .get(meshId, topic.name);
  if (stored !== undefined) return stored.post_policy === topic.postPolicy ? "exists" : "different";
  tx.sql("INSERT INTO topic (mesh_id, name, post_policy, created_by, created_at) VALUES (?, ?, ?, ?, ?)").run(
    meshId,
    topic.name,
    topic.postPolicy,
    topic.createdBy,
    nowMs,
  );
  return "created";
}

export function selectTopics(db: Sqlite, meshId: string, reader: string, after: string, limit: number): Topic[] {
  const rows = db
    .sql<{ name: string; post_policy: PostPolicy; subscribed: number }>(
      `SELECT t.name, t.post_policy, EXISTS (SELECT 1 FROM topic_subscription s
         WHERE s.mesh_id = t.mesh_id AND s.topic = t.name AND s.member_pubkey = ?2) AS subscribed
       FROM topic t WHERE t.mesh_id = ?1 AND t.name > ?3 ORDER BY t.name LIMIT ?4`,
    )
    .all(meshId, reader, after, limit);
  return rows.map((row) => ({ name: row.name, postPolicy: row.post_policy, subscribed: row.subscribed === 1 }));
}

export function measureTopics(db: Sqlite, meshId: string, topics: readonly string[]): Map<string, TopicCounts> {
  const room = new CountRoom();
  const counts = new Map<string, TopicCounts>();
  for (const topic of topics) {
    const subscribed = db
      .sql<{ n: number }>(
        "SELECT count(*) AS n FROM (SELECT 1 FROM topic_subscription WHERE mesh_id = ? AND topic = ? LIMIT ?)",
      )
      .get(meshId, topic, countedMax);
    const counted = db
      .sql<{ messages: number; last_message_at: number }>(
        "SELECT messages, last_message_at FROM topic_counter WHERE mesh_id = ? AND topic = ?",
      )
      .get(meshId, topic);
    const subscribers = subscribed?.n ?? 0;
    counts.set(topic, { subscribers, messages: counted?.messages ?? 0, lastMessageAtMs: counted?.last_message_at });
    if (!room.take(subscribers)) return counts;
  }
  return counts;
}

export function topicExists(tx: Sqlite, meshId: string, topic: string): boolean {
  return tx.sql("SELECT 1 FROM topic WHERE mesh_id = ? AND name = ?").get(meshId, topic) !== undefined;
}

export function countTopics(db: Sqlite, meshId: string, upTo: number): number {
  const counted = "SELECT count(*) AS n FROM (SELECT 1 FROM topic WHERE mesh_id = ? LIMIT ?)";
  return db.sql<{ n: number }>(counted).get(meshId, upTo)?.n ?? 0;
}

export function insertSubscription(tx: Sqlite, meshId: string, topic: string, pubkey: string, nowMs: number): boolean {
  if (!topicExists(tx, meshId, topic)) return false;
  tx.sql(
    `INSERT INTO topic_subscription (mesh_id, topic, member_pubkey, subscribed_at) VALUES (?, ?, ?, ?)
     ON CONFLICT DO NOTHING`,
  ).run(meshId, topic, pubkey, nowMs);
  return true;
}

export function deleteSubscription(tx: Sqlite, meshId: string, topic: string, pubkey: string): boolean {
  if (!topicExists(tx, meshId, topic)) return false;
  tx.sql("DELETE FROM topic_subscription WHERE mesh_id = ? AND topic = ? AND member_pubkey = ?").run(
    meshId,
    topic,
    pubkey,
  );
  return true;
}

export function deleteTopic(tx: Sqlite, meshId: string, topic: string): void {
  tx.sql("DELETE FROM topic_subscription WHERE mesh_id = ? AND topic = ?").run(meshId, topic);
  tx.sql("DELETE FROM topic WHERE mesh_id = ? AND name = ?").run(meshId, topic);
}
