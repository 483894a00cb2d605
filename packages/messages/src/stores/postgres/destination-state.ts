// What a send to a destination would meet, on PostgreSQL: the judgement of an accept, made beforehand.
import { type StoredTopicState, stateOfPresence, stateOfTopic } from "../../core/destination-state.ts";
import type { DestinationQuery, DestinationState } from "../../ports/reading.ts";
import type { Reading } from "./stored-accepts.ts";

export async function selectDestinationState(
  db: Reading,
  { meshId, sender, destination }: DestinationQuery,
): Promise<DestinationState> {
  const { kind, ref } = destination;
  switch (kind) {
    case "topic":
      return stateOfTopic(await selectTopicState(db, meshId, ref, sender));
    case "queue": {
      const rows = await db.query("SELECT 1 FROM mesh.queue WHERE mesh_id = $1 AND id = $2", [meshId, ref]);
      return stateOfPresence(rows.length === 1);
    }
    case "dm": {
      const live = "SELECT 1 FROM mesh.member WHERE mesh_id = $1 AND pubkey = $2 AND revoked_at IS NULL";
      const rows = await db.query(live, [meshId, ref]);
      return stateOfPresence(rows.length === 1);
    }
  }
}

async function selectTopicState(
  db: Reading,
  meshId: string,
  topic: string,
  sender: string,
): Promise<StoredTopicState | undefined> {
  const [row] = await db.query<StoredTopicState>(
    `SELECT t.post_policy = 'subscribers' AS "onlySubscribers",
       EXISTS (SELECT 1 FROM mesh.topic_subscription s
         WHERE s.mesh_id = t.mesh_id AND s.topic = t.name AND s.member_pubkey = $3) AS "isSubscribed",
       EXISTS (SELECT 1 FROM mesh.topic_subscription s
         JOIN mesh.member m ON m.mesh_id = s.mesh_id AND m.pubkey = s.member_pubkey AND m.revoked_at IS NULL
         WHERE s.mesh_id = t.mesh_id AND s.topic = t.name AND s.member_pubkey <> $3) AS "hasOthers"
     FROM mesh.topic t WHERE t.mesh_id = $1 AND t.name = $2`,
    [meshId, topic, sender],
  );
  return row;
}
