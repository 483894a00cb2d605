// Mentions on SQLite, from the index that the accept writes.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { FoundPage, MentionStore } from "../../ports/reading.ts";
import { selectVisiblePage } from "./visible-page.ts";

export function selectMentions(db: Sqlite, query: Parameters<MentionStore["read"]>[0]): Promise<FoundPage> {
  const counter = db
    .sql<{ last_history_id: number }>("SELECT last_history_id FROM mesh_history_counter WHERE mesh_id = ?")
    .get(query.meshId);
  const select = db.sql<{ history_id: number }>(
    `SELECT history_id FROM mention_index
     WHERE mesh_id = ? AND mentioned_pubkey = ? AND history_id > ? AND history_id <= ? ORDER BY history_id`,
  );
  return selectVisiblePage(db, query, {
    last: counter?.last_history_id ?? 0,
    between: (after, upTo) => select.all(query.meshId, query.of, after, upTo),
  });
}
