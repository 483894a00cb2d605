// Looking for rows of the registrar and of `once` that do not fit together, on PostgreSQL.
import type { Postgres } from "@claudemesh/storage/postgres";
import { createPostgresRuleStore, postgresDialect } from "@claudemesh/storage/postgres-rules";
import { type RuleStore, tablesOf } from "@claudemesh/storage/row-rules";
import { registrarRules } from "../row-rules.ts";

export function createPostgresRegistrarRules(postgres: Postgres): RuleStore {
  const reading = { query: <Row>(text: string, values?: readonly unknown[]) => postgres.read<Row>(text, values) };
  const tables = tablesOf(registrarRules);
  return createPostgresRuleStore(reading, { rules: registrarRules, dialect: postgresDialect, tables });
}
