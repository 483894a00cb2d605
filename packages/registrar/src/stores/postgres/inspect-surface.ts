// What a live PostgreSQL schema has of the registrar's surface. An index counts if it is valid, whole and ready; a trigger
// if it is enabled and calls the function that the migration makes, word for word; a check if it is validated.
import type { Migration } from "@claudemesh/storage/migrations";
import { appendOnlyTables, type SurfaceFacts, surfaceRights, surfaceTables, surfaceWords } from "../../core/surface.ts";
import type { Reading } from "./stored-requests.ts";

export async function inspectSurface(db: Reading, migrations: readonly Migration[]): Promise<SurfaceFacts> {
  const tables = Object.keys(surfaceTables);
  const [columns, indexes, checks, triggers, rights, references] = [
    await selectColumns(db, tables),
    await selectUniqueIndexes(db, tables),
    await selectChecks(db, tables),
    await selectTriggers(db, tables),
    await selectRights(db),
    await selectReferences(db, tables),
  ];
  const bodies = functionBodies(migrations);
  const facts = [
    ...columns.map(({ table, name, notnull }) => surfaceWords.foundColumn(table, name, notnull)),
    ...indexes.map(({ table, columns: names }) => surfaceWords.unique(table, ...names)),
    ...checks.map(({ name }) => surfaceWords.check(name)),
    ...triggers.flatMap((trigger) => triggerFacts(trigger, bodies)),
    ...references.map(({ table, to }) => `reference ${table} to ${to}`),
    ...rights.tables.flatMap(({ table, append, change }) => [
      ...(append ? [surfaceRights.writer(table)] : []),
      ...(!change || rights.superuser ? [surfaceRights.rights(table)] : []),
    ]),
  ];
  const notes = rights.superuser
    ? ["The role is a superuser: revoked rights do not bind it, and only the triggers refuse changes."]
    : [];
  return { store: "postgres", facts: new Set(facts), notes };
}

function selectColumns(db: Reading, tables: readonly string[]) {
  return db.query<{ table: string; name: string; notnull: boolean }>(
    `SELECT c.relname AS table, a.attname AS name, a.attnotnull AS notnull
     FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
     WHERE c.relnamespace = to_regnamespace('mesh') AND c.relname = ANY ($1) AND a.attnum > 0 AND NOT a.attisdropped`,
    [tables],
  );
}

function selectUniqueIndexes(db: Reading, tables: readonly string[]) {
  return db.query<{ table: string; columns: string[] }>(
    `SELECT c.relname AS table, array_agg(coalesce(a.attname::text, 'an expression') ORDER BY k.ordinal) AS columns
     FROM pg_index x JOIN pg_class c ON c.oid = x.indrelid
     CROSS JOIN LATERAL unnest(x.indkey) WITH ORDINALITY AS k (attnum, ordinal)
     LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum AND k.attnum > 0
     WHERE c.relnamespace = to_regnamespace('mesh') AND c.relname = ANY ($1) AND x.indisunique AND x.indisvalid
       AND x.indisready AND x.indimmediate AND x.indpred IS NULL AND k.ordinal <= x.indnkeyatts
     GROUP BY c.relname, x.indexrelid`,
    [tables],
  );
}

function selectChecks(db: Reading, tables: readonly string[]) {
  return db.query<{ name: string }>(
    `SELECT k.conname AS name FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
     WHERE c.relnamespace = to_regnamespace('mesh') AND c.relname = ANY ($1) AND k.contype = 'c' AND k.convalidated`,
    [tables],
  );
}

function selectReferences(db: Reading, tables: readonly string[]) {
  return db.query<{ table: string; to: string }>(
    `SELECT c.relname AS table, k.confrelid::regclass::text AS to FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
     WHERE c.relnamespace = to_regnamespace('mesh') AND c.relname = ANY ($1) AND k.contype = 'f'`,
    [tables],
  );
}

type TriggerRow = {
  readonly table: string;
  readonly name: string;
  readonly enabled: boolean;
  readonly conditional: boolean;
  readonly type: number;
  readonly function: string;
  readonly body: string;
};

// Rules rewrite statements before any trigger sees them; what distinguishes them is that they have no function.
function selectTriggers(db: Reading, tables: readonly string[]) {
  return db.query<TriggerRow>(
    `SELECT c.relname AS table, t.tgname AS name, t.tgenabled IN ('O', 'A') AS enabled, t.tgqual IS NOT NULL AS conditional,
       t.tgtype::integer AS type, p.proname AS function, p.prosrc AS body
     FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
     WHERE c.relnamespace = to_regnamespace('mesh') AND c.relname = ANY ($1) AND NOT t.tgisinternal
     UNION ALL
     SELECT c.relname, r.rulename, true, false, 0, '', '' FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
     WHERE c.relnamespace = to_regnamespace('mesh') AND c.relname = ANY ($1)`,
    [tables],
  );
}

/** Bits of pg_trigger.tgtype. */
const rowLevel = 1;
const before = 2;
const events = { delete: 8, update: 16, truncate: 32 } as const;

function triggerFacts(trigger: TriggerRow, bodies: ReadonlyMap<string, string>): string[] {
  const { table, name, type } = trigger;
  const intact =
    trigger.enabled &&
    !trigger.conditional &&
    (type & before) !== 0 &&
    bodies.get(trigger.function) === trigger.body.trim() &&
    // Only an approval may change at all, row by row, and by the function that lets nothing but its revocation pass.
    (trigger.function === "registrar_refuse_change"
      ? table === "registrar_approval" && (type & rowLevel) !== 0
      : (type & rowLevel) === 0);
  if (!intact) return [`unknown trigger or rule ${name} on ${table}`];
  return Object.entries(events).flatMap(([event, bit]) =>
    (type & bit) === 0 ? [] : [surfaceWords.guard(table, event)],
  );
}

function functionBodies(migrations: readonly Migration[]): Map<string, string> {
  return new Map(
    migrations.flatMap(({ sql }) =>
      [...sql.matchAll(/CREATE FUNCTION mesh\.(\w+)\(\)[^$]*\$\$([^$]*)\$\$/g)].map(([, name = "", body = ""]) => [
        name,
        body.trim(),
      ]),
    ),
  );
}

type TableRights = { readonly table: string; readonly append: boolean; readonly change: boolean };

async function selectRights(db: Reading): Promise<{ superuser: boolean; tables: TableRights[] }> {
  const [role] = await db.query<{ superuser: boolean }>(
    "SELECT rolsuper AS superuser FROM pg_roles WHERE rolname = current_user",
    [],
  );
  const tables = await db.query<TableRights>(
    `SELECT c.relname AS table, has_table_privilege(c.oid, 'INSERT') AS append,
       has_table_privilege(c.oid, 'UPDATE, DELETE, TRUNCATE') AS change
     FROM pg_class c WHERE c.relnamespace = to_regnamespace('mesh') AND c.relname = ANY ($1)`,
    [appendOnlyTables],
  );
  return { superuser: role?.superuser === true, tables };
}
