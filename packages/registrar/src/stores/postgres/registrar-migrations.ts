// The tables of this package on PostgreSQL: the registrar's and those of `once`.
import { loadMigrations, type Migration } from "@claudemesh/storage/migrations";

export function postgresRegistrarMigrations(): Migration[] {
  return loadMigrations("registrar", new URL("./migrations/", import.meta.url));
}
