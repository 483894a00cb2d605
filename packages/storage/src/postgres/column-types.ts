// How columns become JavaScript values where the driver's default would lose or disguise something: int8 is a number
// when it is exact and an error when it is not. Everything else is as the driver has it (numeric stays text).
import pg from "pg";
import { StorageError } from "../storage-error.ts";

const int8Oid = 20;
const int8ArrayOid = 1016;

type NestedText = string | null | NestedText[];
type NestedNumber = number | null | NestedNumber[];

export const getTypeParser: typeof pg.types.getTypeParser = (oid: number, format?: string) => {
  if (format === "binary") return pg.types.getTypeParser(oid, format);
  if (oid === int8Oid) return toSafeInteger;
  const parse = pg.types.getTypeParser(oid, "text");
  if (oid !== int8ArrayOid) return parse;
  return (text: string) => toSafeIntegers(parse(text) as NestedText);
};

function toSafeInteger(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value)) return value;
  throw new StorageError("unsafe_integer", `${text} does not fit a number exactly`);
}

function toSafeIntegers(value: NestedText): NestedNumber {
  if (value === null) return null;
  return Array.isArray(value) ? value.map(toSafeIntegers) : toSafeInteger(value);
}
