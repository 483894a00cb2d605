// The registrar's proof for a store that is named and not served: looks at the live schema, changes nothing, and takes no
// lock, so that it may run beside a broker.
import { inspectPostgresSurface } from "@claudemesh/registrar/postgres";
import { inspectSqliteSurface } from "@claudemesh/registrar/sqlite";
import { proveSurface, type SurfaceProof } from "@claudemesh/registrar/surface";
import { placeOf, type StoreConfig } from "../config.ts";
import { withPostgres, withSqlite } from "../offline/open-store.ts";

export async function proveStore(store: StoreConfig): Promise<SurfaceProof> {
  const facts =
    store.kind === "sqlite"
      ? await withSqlite(placeOf(store), async (db) => inspectSqliteSurface(db))
      : await withPostgres(store.url, inspectPostgresSurface);
  return proveSurface(facts);
}
