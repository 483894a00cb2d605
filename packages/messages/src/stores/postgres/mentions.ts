// Who was mentioned where, on PostgreSQL, from the index that the accept writes.
import type { FoundPage, MentionStore } from "../../ports/reading.ts";
import type { Reading } from "./stored-accepts.ts";
import { selectVisiblePage } from "./visible-page.ts";

export async function selectMentions(db: Reading, query: Parameters<MentionStore["read"]>[0]): Promise<FoundPage> {
  const [counter] = await db.query<{ last_history_id: number }>(
    "SELECT last_history_id FROM mesh.mesh_history_counter WHERE mesh_id = $1",
    [query.meshId],
  );
  return selectVisiblePage(db, query, {
    last: counter?.last_history_id ?? 0,
    table: "mesh.mention_index",
    condition: (value) => `mentioned_pubkey = ${value}`,
    value: query.of,
  });
}
