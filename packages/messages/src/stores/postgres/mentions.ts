// Who was mentioned where, on PostgreSQL, from the index that the accept writes.
import type { FoundPage, MentionStore } from "../../ports/reading.ts";
import type { Reading } from "./stored-accepts.ts";
import { scanRows, selectVisiblePage } from "./visible-page.ts";

export async function selectMentions(db: Reading, query: Parameters<MentionStore["read"]>[0]): Promise<FoundPage> {
  const picked = await db.query<{ history_id: number }>(
    `SELECT history_id FROM mesh.mention_index WHERE mesh_id = $1 AND mentioned_pubkey = $2 AND history_id > $3
     ORDER BY history_id LIMIT $4`,
    [query.meshId, query.of, query.after, scanRows],
  );
  return selectVisiblePage(
    db,
    query,
    picked.map((row) => row.history_id),
  );
}
