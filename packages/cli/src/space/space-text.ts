// Entities, branches and merge conflicts as people read them.
import type { JsonValue } from "@claudemesh/protocol/json";
import { formatTable } from "../output/table.ts";
import type { Entity } from "./space-access.ts";

export const branchName = (branch: string | undefined): string =>
  branch === undefined || branch === "" ? "main" : branch;

/** One line for a table: the application's data, and the rest of the document where there is some. */
export function describeDocument(document: JsonValue | undefined): string {
  if (document === undefined) return "(deleted)";
  if (!isObject(document)) return JSON.stringify(document);
  const { value, ...metadata } = document;
  const rest = Object.keys(metadata).length === 0 ? "" : `  ${JSON.stringify(metadata)}`;
  return `${value === undefined ? "(no value)" : JSON.stringify(value)}${rest}`;
}

export function describeEntity({ id, seq, branch, document }: Entity): string {
  const head = `${id}  seq ${seq}  ${branchName(branch)}`;
  return document === undefined ? `${head}\n(deleted)` : `${head}\n${JSON.stringify(document, undefined, 2)}`;
}

export function entityTable(items: readonly Entity[], columns: number | undefined): string {
  const rows = items.map(({ id, seq, document }) => [id, String(seq), describeDocument(document)]);
  return formatTable(["ENTITY", "SEQ", "VALUE"], rows, columns);
}

export type Conflict = {
  readonly id: string;
  readonly source: JsonValue;
  readonly target: JsonValue;
  readonly ancestor: JsonValue;
};

/** The paths at which the three documents differ, each with its value in all three. */
export function describeConflict(
  conflict: Conflict,
  names: { readonly source: string; readonly target: string },
  columns: number | undefined,
): string {
  const rows = differences("", conflict.ancestor, conflict.source, conflict.target);
  const header = ["WHERE", "BASE", `THEIRS (${names.source})`, `OURS (${names.target})`];
  return `${conflict.id}\n${formatTable(header, rows, columns)}`;
}

type Value = JsonValue | undefined;

function differences(at: string, base: Value, theirs: Value, ours: Value): string[][] {
  const texts = [base, theirs, ours].map((side) => show(at, side));
  if (new Set(texts).size === 1) return [];
  const sides = [base, theirs, ours];
  if (!sides.every((side) => isObject(side))) return [[at === "" ? "(document)" : at, ...texts]];
  const keys = new Set(sides.flatMap((side) => Object.keys(side)));
  return [...keys].toSorted().flatMap((key) => {
    const [b, t, o] = sides.map((side) => (Object.hasOwn(side, key) ? side[key] : undefined));
    return differences(`${at}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`, b, t, o);
  });
}

/** A whole document that is null was deleted; inside one, null is a value. */
function show(at: string, value: Value): string {
  if (value === undefined) return "-";
  return value === null && at === "" ? "(deleted)" : JSON.stringify(value);
}

function isObject(value: Value): value is { readonly [key: string]: JsonValue } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
