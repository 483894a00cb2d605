// Whether the daemon of a home has learned that its member was removed from the mesh, for a command that lists meshes whether
// their daemons run or not.
import { existsSync } from "node:fs";
import type { MeshPaths } from "@claudemesh/client/home";
import { openSqliteReadOnly } from "@claudemesh/storage/sqlite";
import { loadMembershipEnd } from "./stores/sqlite/members-store.ts";

/** When that was, in milliseconds; undefined where nothing of it is known, also because the database cannot be read. */
export function readMembershipEnd({ outboxDb }: Pick<MeshPaths, "outboxDb">): number | undefined {
  if (!existsSync(outboxDb)) return undefined;
  try {
    const db = openSqliteReadOnly(outboxDb);
    try {
      return loadMembershipEnd(db)?.at;
    } finally {
      db.close();
    }
  } catch {
    // A list of meshes is no place for what the daemon and doctor say of a broken database.
    return undefined;
  }
}
