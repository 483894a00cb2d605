// Says in plain English what a schema asks of a value. People read these sentences on a terminal and in a log, and do
// not know the vocabulary of a schema validator.
import type { ErrorObject } from "ajv";
import { describePattern } from "./pattern-words.ts";

type Params = Readonly<Record<string, unknown>>;
type Wording = (params: Params, schema: Params) => string;

const idCharacters = 36;
const idExample = "0198c0de-0000-7000-8000-000000000000";

const kinds: Readonly<Record<string, string>> = {
  string: "text",
  integer: "a whole number",
  number: "a number",
  boolean: "true or false",
  object: "an object with fields",
  array: "a list",
  null: "null",
};

const wordings: Readonly<Record<string, Wording>> = {
  type: ({ type }) => `must be ${describeTypes([type].flat())}`,
  const: ({ allowedValue }) => `must be ${JSON.stringify(allowedValue)}`,
  enum: ({ allowedValues }) => `must be one of ${(allowedValues as readonly unknown[]).map(String).join(", ")}`,
  minLength: (params, schema) => describeLength(params, schema),
  maxLength: (params, schema) => describeLength(params, schema),
  minimum: (_, schema) => describeRange(schema),
  maximum: (_, schema) => describeRange(schema),
  minItems: ({ limit }) => `must have at least ${counted(limit, "entry", "entries")}`,
  maxItems: ({ limit }) => `must have at most ${counted(limit, "entry", "entries")}`,
  uniqueItems: () => "must not hold the same entry twice",
  minProperties: ({ limit }) => `must have at least ${counted(limit, "field", "fields")}`,
  maxProperties: ({ limit }) => `must have at most ${counted(limit, "field", "fields")}`,
  pattern: ({ pattern }) => describePattern(String(pattern)) ?? formless,
  not: () => "must not have that form here",
};

const formless = "does not have the form that is accepted here";

/**
 * The sentence without its subject, as in "must be text". The first error that the validator found says what is wrong.
 */
export function describeViolation(errors: readonly ErrorObject[]): string {
  const [first] = errors;
  if (first === undefined) return formless;
  const types = alternativeTypes(errors);
  if (types.length > 1) return `must be ${describeTypes(types)}`;
  const { params, parentSchema } = first;
  return wordings[first.keyword]?.(params, parentSchema ?? {}) ?? formless;
}

/** Where a value may have one of several types and has none of them, the sentence names all of them. */
function alternativeTypes(errors: readonly ErrorObject[]): unknown[] {
  const choice = errors.at(-1);
  if (choice?.keyword !== "anyOf" && choice?.keyword !== "oneOf") return [];
  const branches = errors.slice(0, -1);
  const isOfNoKind = branches.every(({ keyword, instancePath }) => {
    return keyword === "type" && instancePath === choice.instancePath;
  });
  return isOfNoKind ? branches.flatMap(({ params }) => params.type) : [];
}

function describeTypes(types: readonly unknown[]): string {
  return types.map((type) => kinds[String(type)] ?? String(type)).join(" or ");
}

function describeLength({ limit }: Params, { minLength, maxLength }: Params): string {
  if (minLength === idCharacters && maxLength === idCharacters) {
    return `must be an id of ${idCharacters} characters, such as ${idExample}`;
  }
  if (minLength === maxLength) return `must have exactly ${limit} characters`;
  if (minLength === undefined) return `must have at most ${counted(maxLength, "character", "characters")}`;
  if (maxLength === undefined) {
    return minLength === 1 ? "must not be empty" : `must have at least ${minLength} characters`;
  }
  return `must have ${minLength} to ${maxLength} characters`;
}

function describeRange({ minimum, maximum }: Params): string {
  if (minimum === undefined) return `must be at most ${maximum}`;
  return maximum === undefined ? `must be at least ${minimum}` : `must be from ${minimum} to ${maximum}`;
}

function counted(count: unknown, one: string, many: string): string {
  return `${String(count)} ${count === 1 ? one : many}`;
}
