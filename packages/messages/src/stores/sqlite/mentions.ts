// Mentions on SQLite, from the index that the accept writes.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { FoundPage, MentionStore } from "../../ports/reading.ts";
import { scanRows, selectVisiblePage } from "./visible-page.ts";

export function selectMentions(db: Sqlite, query: Parameters<MentionStore["read"]>[0]): FoundPage {
  const picked = db
    .sql<{ history_id: number }>(
      `SELECT history_id FROM mention_index WHERE mesh_id = ? AND mentioned_pubkey = ? AND history_id > ?
       ORDER BY history_id LIMIT ?`,
    )
    .all(query.meshId, query.of, query.after, scanRows);
  return selectVisiblePage(
    db,
    query,
    picked.map((row) => row.history_id),
  );
}
