// What stands in a column of a table.
import type { Tone } from "./colours.ts";

/** `more` is shown behind the text where the whole table has room for it. */
export type Cell = string | { readonly text: string; readonly more?: string; readonly tone?: Tone | undefined };

/** The text of a cell where no table is. */
export function cellText(cell: Cell): string {
  return typeof cell === "string" ? cell : cell.text;
}
