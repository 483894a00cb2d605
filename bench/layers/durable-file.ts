// A SQLite file with the product's durability, for loops that write its rows without it.
import { DatabaseSync } from "node:sqlite";

export function openDurableFile(path: string): DatabaseSync {
  const db = new DatabaseSync(path);
  db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON");
  const mode = db.prepare("PRAGMA journal_mode").get()?.journal_mode;
  const synchronous = db.prepare("PRAGMA synchronous").get()?.synchronous;
  if (mode !== "wal" || synchronous !== 2) throw new Error(`SQLite is in ${mode} with synchronous ${synchronous}`);
  return db;
}
