// Looking for rows of spaces that do not fit together, on PostgreSQL.
import type { Postgres } from "@claudemesh/storage/postgres";
import { createPostgresRuleStore, postgresDialect } from "@claudemesh/storage/postgres-rules";
import { type RuleStore, tablesOf } from "@claudemesh/storage/row-rules";
import { spaceRules } from "../row-rules.ts";

export function createPostgresSpaceRules(postgres: Postgres): RuleStore {
  const reading = { query: <Row>(text: string, values?: readonly unknown[]) => postgres.read<Row>(text, values) };
  return createPostgresRuleStore(reading, {
    rules: spaceRules,
    dialect: postgresDialect,
    tables: tablesOf(spaceRules),
  });
}
