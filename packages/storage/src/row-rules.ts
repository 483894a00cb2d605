// Rules that tie rows of different tables together, for packages that state them and for checks of a whole store:
// a rule is a condition on one row that breaks it. Which tables and rules there are is each package's own. How a page of
// rows is read is in sqlite/rule-store.ts and postgres/rule-store.ts.
// Why: docs/decisions/0054.

/** What differs between the stores. A package with more to say extends it. */
export type RowDialect = {
  /** The full name of a table. */
  readonly table: (name: string) => string;
  /** An integer of milliseconds from a column that holds a time. */
  readonly ms: (column: string) => string;
};

export type KeyType = "text" | "integer" | "id" | "bytes";

export type RuleText = {
  /** The rule as a sentence. */
  readonly rule: string;
  /** Of docs/invariants.md, where the rule is part of one. */
  readonly invariant: string | undefined;
  /** Where a row takes much longer to look at than those of other rules; undefined: as many as the caller likes. */
  readonly rowsPerPage?: number;
};

export type RowValue = string | number | boolean | null | Uint8Array;

export type RowRule<Dialect extends RowDialect = RowDialect> = RuleText & {
  readonly table: string;
  /** The rest of the primary key after mesh_id; none: the table has one row for each mesh. */
  readonly key: Readonly<Record<string, KeyType>>;
  /** Of a row `r`, in SQL; undefined where SQL cannot tell. */
  readonly broken?: (dialect: Dialect) => string;
  /** What SQL cannot tell: of the row's key and these columns. */
  readonly examine?: {
    readonly columns: readonly string[];
    readonly isBroken: (row: Readonly<Record<string, RowValue>>) => boolean;
  };
};

export type RowRules<Dialect extends RowDialect = RowDialect> = Readonly<Record<string, RowRule<Dialect>>>;

/** Where the next page begins. */
export type RowCursor = readonly (string | number | Uint8Array)[];

export type RowPage = {
  readonly rows: number;
  /** The keys of rows that break the rule, as text. */
  readonly found: readonly string[];
  /** Undefined where this was the last page. */
  readonly next: RowCursor | undefined;
};

/** A package's rules, on the tables that it keeps in one store. */
export type RuleStore = {
  readonly rules: Readonly<Record<string, RuleText>>;
  /**
   * Up to `limit` rows, in the order of their keys, each with all that it must fit to on one snapshot: what is written
   * or removed meanwhile by a program that keeps the rules is never found.
   */
  readonly checkPage: (
    name: string,
    meshId: string,
    after: RowCursor | undefined,
    options: { readonly nowMs: number; readonly limit: number },
  ) => Promise<RowPage>;
  /** Tables with rows of a mesh that is not in the directory: `table/mesh id`, some of them. */
  readonly strayMeshes: () => Promise<string[]>;
};

/** One that SQL can tell. */
export const rule = <Dialect extends RowDialect = RowDialect>(
  table: string,
  key: RowRule["key"],
  text: string,
  broken: (dialect: Dialect) => string,
  invariant?: string,
): RowRule<Dialect> => ({ table, key, rule: text, broken, invariant });

/** Another row of the same mesh. */
export const exists = (d: RowDialect, table: string, alias: string, condition: string): string =>
  `EXISTS (SELECT 1 FROM ${d.table(table)} ${alias} WHERE ${alias}.mesh_id = r.mesh_id AND ${condition})`;

export const lacks = (d: RowDialect, table: string, alias: string, condition: string): string =>
  `NOT ${exists(d, table, alias, condition)}`;

/** Every table of the rules: their rows belong to a mesh by their first column. */
export function tablesOf(rules: RowRules<never>): string[] {
  return [...new Set(Object.values(rules).map(({ table }) => table))];
}

export type FoundRow = Readonly<Record<string, RowValue>>;

/** What a page of rows says, with the SQL's verdict in the column `broken`. */
export function toRowPage(rule: RowRule<never>, rows: readonly FoundRow[], limit: number): RowPage {
  const columns = Object.keys(rule.key);
  const keyOf = (row: FoundRow): RowCursor => columns.map((column) => (row[column] ?? "") as RowCursor[number]);
  const isBroken = (row: FoundRow) => row.broken === true || row.broken === 1 || rule.examine?.isBroken(row) === true;
  const last = rows.length === limit && columns.length > 0 ? rows.at(-1) : undefined;
  return {
    rows: rows.length,
    found: rows.filter(isBroken).map((row) => keyText(keyOf(row))),
    next: last && keyOf(last),
  };
}

/** The key of a row as people read it. */
function keyText(key: RowCursor): string {
  return key.map((part) => (part instanceof Uint8Array ? Buffer.from(part).toString("hex") : String(part))).join("/");
}
