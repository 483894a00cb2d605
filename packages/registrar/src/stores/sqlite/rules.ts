// Looking for rows of the registrar and of `once` that do not fit together, on SQLite.
import { type RuleStore, tablesOf } from "@claudemesh/storage/row-rules";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { createSqliteRuleStore, sqliteDialect } from "@claudemesh/storage/sqlite-rules";
import { registrarRules } from "../row-rules.ts";

export function createSqliteRegistrarRules(db: Sqlite): RuleStore {
  const tables = tablesOf(registrarRules);
  return createSqliteRuleStore(db, { rules: registrarRules, dialect: sqliteDialect, tables });
}
