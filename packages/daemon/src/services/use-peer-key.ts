// Pinned names for a command that sends without a daemon. It reads and writes the daemon's own store, so that a key that
// was pinned by one way holds for the other.
import type { MeshPaths } from "@claudemesh/client/home";
import { openSqlite } from "@claudemesh/storage/sqlite";
import { migrateSqlite } from "@claudemesh/storage/sqlite-migrations";
import { keyChanged } from "../core/peer-pin.ts";
import { outboxMigrations } from "../stores/sqlite/open-databases.ts";
import { loadPins, putPin } from "../stores/sqlite/peer-pins-store.ts";

/** Throws `peer_key_changed` where the name is pinned to another key; the first use pins. */
export async function usePeerKey(paths: Pick<MeshPaths, "outboxDb">, name: string, pubkey: string): Promise<void> {
  const db = openSqlite({ path: paths.outboxDb });
  try {
    await migrateSqlite(db, outboxMigrations());
    const pin = loadPins(db).find((each) => each.name === name);
    if (pin !== undefined && pin.pubkey !== pubkey) throw keyChanged(pin, pubkey);
    if (pin !== undefined) return;
    db.transaction(() => putPin(db, { name, pubkey, pinnedAt: Date.now(), verifiedAt: undefined }));
  } finally {
    db.close();
  }
}
