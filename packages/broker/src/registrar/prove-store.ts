// The registrar's proof for a store that is named and not served: looks at the live schema, changes nothing, and takes no
// lock, so that it may run beside a broker.
import { proveSurface, type SurfaceFacts, type SurfaceProof } from "@claudemesh/registrar/surface";
import type { StoreConfig } from "../config.ts";

export async function proveStore(store: StoreConfig): Promise<SurfaceProof> {
  return proveSurface(store.kind === "sqlite" ? await inspectSqlite(store.path) : await inspectPostgres(store.url));
}

async function inspectSqlite(path: string): Promise<SurfaceFacts> {
  const { openSqlite } = await import("@claudemesh/storage/sqlite");
  const { inspectSqliteSurface } = await import("@claudemesh/registrar/sqlite");
  const db = openSqlite({ path, mustExist: true });
  try {
    return inspectSqliteSurface(db);
  } finally {
    db.close();
  }
}

async function inspectPostgres(url: string): Promise<SurfaceFacts> {
  const { openPostgres } = await import("@claudemesh/storage/postgres");
  const { inspectPostgresSurface } = await import("@claudemesh/registrar/postgres");
  const postgres = openPostgres({ url, poolSize: 1, onIdleError: () => undefined });
  try {
    return await inspectPostgresSurface(postgres);
  } finally {
    await postgres.close();
  }
}
