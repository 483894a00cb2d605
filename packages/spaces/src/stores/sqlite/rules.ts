// Looking for rows of spaces that do not fit together, on SQLite.
import { type RuleStore, tablesOf } from "@claudemesh/storage/row-rules";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { createSqliteRuleStore, sqliteDialect } from "@claudemesh/storage/sqlite-rules";
import { spaceRules } from "../row-rules.ts";

export function createSqliteSpaceRules(db: Sqlite): RuleStore {
  return createSqliteRuleStore(db, { rules: spaceRules, dialect: sqliteDialect, tables: tablesOf(spaceRules) });
}
