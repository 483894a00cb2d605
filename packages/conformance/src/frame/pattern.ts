// The expected form of an answer: literal values, rules with a description for people, objects that name the fields
// that matter (others are allowed, because answers may gain fields), arrays item by item.
import { isUlid, isUuidV7 } from "@claudemesh/protocol/ids";

class Rule {
  readonly says: string;
  readonly accepts: (value: unknown) => boolean;

  constructor(says: string, accepts: (value: unknown) => boolean) {
    this.says = says;
    this.accepts = accepts;
  }
}

export type Pattern =
  | Rule
  | string
  | number
  | boolean
  | null
  | readonly Pattern[]
  | { readonly [field: string]: Pattern | undefined };

export type Difference = { readonly path: string; readonly expected: string; readonly got: string };

const text = (says: string, accepts: (value: string) => boolean) =>
  new Rule(says, (value) => typeof value === "string" && accepts(value));

export const absent = new Rule("no such field", (value) => value === undefined);
export const anything = new Rule("any value", (value) => value !== undefined);
export const aText = text("a text that is not empty", (value) => value !== "");
export const aBoolean = new Rule("true or false", (value) => typeof value === "boolean");
export const aList = new Rule("a list", Array.isArray);
export const aUuidV7 = text("a UUIDv7 in lower case", isUuidV7);
export const aUlid = text("a ULID", isUlid);
export const aPrefix = text("16 characters of lower-case hex", (value) => /^[0-9a-f]{16}$/.test(value));
export const aPublicKey = text("64 characters of lower-case hex", (value) => /^[0-9a-f]{64}$/.test(value));
export const aCount = new Rule("a whole number from 0", (value) => Number.isSafeInteger(value) && Number(value) >= 0);
export const aHistoryId = new Rule(
  "a whole number from 1",
  (value) => Number.isSafeInteger(value) && Number(value) > 0,
);
/** Milliseconds since the epoch, and in this century: seconds would be far too small. */
export const aTime = new Rule("a time in integer milliseconds", (value) => {
  return Number.isSafeInteger(value) && Number(value) > 1_000_000_000_000;
});
export const oneOf = (...values: readonly (string | number | null)[]) =>
  new Rule(`one of ${values.map(show).join(", ")}`, (value) => values.some((each) => each === value));

/** The first path at which the value does not match the pattern. */
export function findDifference(pattern: Pattern, value: unknown, path = ""): Difference | undefined {
  if (pattern instanceof Rule) {
    return pattern.accepts(value) ? undefined : { path, expected: pattern.says, got: show(value) };
  }
  if (typeof pattern !== "object" || pattern === null) {
    return pattern === value ? undefined : { path, expected: show(pattern), got: show(value) };
  }
  if (Array.isArray(pattern)) return findInList(pattern, value, path);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return { path, expected: "an object", got: show(value) };
  }
  for (const [field, wanted] of Object.entries(pattern)) {
    if (wanted === undefined) continue;
    const inner = Object.hasOwn(value, field) ? (value as Record<string, unknown>)[field] : undefined;
    const difference = findDifference(wanted, inner, path === "" ? field : `${path}.${field}`);
    if (difference !== undefined) return difference;
  }
  return undefined;
}

function findInList(pattern: readonly Pattern[], value: unknown, path: string): Difference | undefined {
  if (!Array.isArray(value) || value.length !== pattern.length) {
    return { path, expected: `a list of ${pattern.length}`, got: show(value) };
  }
  for (const [index, each] of pattern.entries()) {
    const difference = findDifference(each, value[index], `${path}[${index}]`);
    if (difference !== undefined) return difference;
  }
  return undefined;
}

const shownCharacters = 600;

export function show(value: unknown): string {
  if (value === undefined) return "nothing";
  const written = JSON.stringify(value) ?? String(value);
  return written.length > shownCharacters ? `${written.slice(0, shownCharacters)}…` : written;
}
