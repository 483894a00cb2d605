// Is the file what SQLite wrote, and do the rows keep the rules that the schema declares? Finds, never repairs.
import { StorageError } from "../storage-error.ts";
import type { Sqlite } from "./sqlite.ts";

/** `quick` skips comparing indexes with their tables; `full` takes seconds per million rows. */
export type IntegrityDepth = "quick" | "full";

/** One line per problem; none means sound. */
export function findIntegrityProblems(db: Sqlite, depth: IntegrityDepth): string[] {
  const pragma = depth === "full" ? "integrity_check" : "quick_check";
  try {
    const pages = db.sql<Record<string, string>>(`PRAGMA ${pragma}`).all();
    const problems = pages.flatMap((row) => Object.values(row)).filter((line) => line !== "ok");
    const orphans = db.sql<ForeignKeyProblem>("PRAGMA foreign_key_check").all();
    for (const { table, rowid, parent } of orphans) {
      problems.push(`row ${rowid ?? "?"} of ${table} refers to a row of ${parent} that does not exist`);
    }
    return problems;
  } catch (error) {
    // Damage that keeps the check itself from running is the answer, not a failure to answer.
    if (error instanceof StorageError && error.kind === "corrupt") return [error.message];
    throw error;
  }
}

interface ForeignKeyProblem {
  table: string;
  rowid: number | null;
  parent: string;
}
