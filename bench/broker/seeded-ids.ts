// Client ids of rows that are written in bulk, as a function of their number, here and in SQL: one kind grows with the
// number, the other is scattered over all ids alike. Both have the length of a ULID.
import { clientIdCharacters, type IdOrder } from "../load/client-ids.ts";

/** Knuth's multiplier: a permutation of 32 bits that leaves no two neighbours together. */
const scatter = 2_654_435_761n;
const scatterDigits = 8;
const numberDigits = clientIdCharacters - scatterDigits;

export function seededId(order: IdOrder, n: number): string {
  if (order === "time_ordered") return String(n).padStart(clientIdCharacters, "0");
  const head = (BigInt(n) * scatter) % 2n ** 32n;
  return head.toString(16).padStart(scatterDigits, "0") + n.toString(16).padStart(numberDigits, "0");
}

/** Rows written in bulk, by their numbers: so many, each `step` behind the one before. */
export type SeededRange = { readonly from: number; readonly count: number; readonly step?: number };

export function drawSeededId(order: IdOrder, { from, count, step = 1 }: SeededRange): string {
  return seededId(order, from + Math.floor(Math.random() * count) * step);
}

/** The same in SQLite, of the column `i`. */
export function sqliteSeededId(order: IdOrder): string {
  if (order === "time_ordered") return `printf('%0${clientIdCharacters}d', i)`;
  return `printf('%0${scatterDigits}x%0${numberDigits}x', (i * ${scatter}) % 4294967296, i)`;
}

/** The same in PostgreSQL. */
export function postgresSeededId(order: IdOrder): string {
  if (order === "time_ordered") return `lpad(i::text, ${clientIdCharacters}, '0')`;
  const hex = (value: string, digits: number) => `lpad(to_hex(${value}), ${digits}, '0')`;
  return `${hex(`(i::bigint * ${scatter}) % 4294967296`, scatterDigits)} || ${hex("i::bigint", numberDigits)}`;
}
