// What a send to a destination would meet, on SQLite: the judgement of an accept, made beforehand.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { stateOfPresence, stateOfTopic } from "../../core/destination-state.ts";
import type { DestinationQuery, DestinationState } from "../../ports/reading.ts";

export function selectDestinationState(
  db: Sqlite,
  { meshId, sender, destination }: DestinationQuery,
): DestinationState {
  const { kind, ref } = destination;
  switch (kind) {
    case "topic":
      return stateOfTopic(selectTopicState(db, meshId, ref, sender));
    case "queue":
      return stateOfPresence(db.sql("SELECT 1 FROM queue WHERE mesh_id = ? AND id = ?").get(meshId, ref) !== undefined);
    case "dm": {
      const live = "SELECT 1 FROM member WHERE mesh_id = ? AND pubkey = ? AND revoked_at IS NULL";
      return stateOfPresence(db.sql(live).get(meshId, ref) !== undefined);
    }
  }
}

function selectTopicState(db: Sqlite, meshId: string, topic: string, sender: string) {
  const row = db
    .sql<{ only_subscribers: number; is_subscribed: number; has_others: number }>(
      `SELECT t.post_policy = 'subscribers' AS only_subscribers,
         EXISTS (SELECT 1 FROM topic_subscription s
           WHERE s.mesh_id = t.mesh_id AND s.topic = t.name AND s.member_pubkey = ?3) AS is_subscribed,
         EXISTS (SELECT 1 FROM topic_subscription s
           JOIN member m ON m.mesh_id = s.mesh_id AND m.pubkey = s.member_pubkey AND m.revoked_at IS NULL
           WHERE s.mesh_id = t.mesh_id AND s.topic = t.name AND s.member_pubkey <> ?3) AS has_others
       FROM topic t WHERE t.mesh_id = ?1 AND t.name = ?2`,
    )
    .get(meshId, topic, sender);
  if (row === undefined) return undefined;
  return {
    onlySubscribers: row.only_subscribers === 1,
    isSubscribed: row.is_subscribed === 1,
    hasOthers: row.has_others === 1,
  };
}
