// The tables of this package on SQLite: the registrar's and those of `once`.
import { loadMigrations, type Migration } from "@claudemesh/storage/migrations";

export function registrarMigrations(): Migration[] {
  return loadMigrations("registrar", new URL("./migrations/", import.meta.url));
}
