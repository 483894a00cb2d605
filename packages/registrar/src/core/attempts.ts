// Retries by attempt: the first hundred attempts of a key are kept by name, later ones together under no name. Counts
// only; nothing is decided by them.
import type { RecordedAttempt } from "./records.ts";

export const attemptsByName = 100;

/** The row that a retry counts in: its place among the key's rows, and what it is called there. */
export function placeOfAttempt(
  rows: readonly { readonly seq: number; readonly attemptId: string }[],
  attemptId: string,
): { readonly seq: number; readonly attemptId: string; readonly isNew: boolean } {
  const known = rows.find((row) => row.seq < attemptsByName && row.attemptId === attemptId);
  if (known !== undefined) return { ...known, isNew: false };
  const named = rows.filter((row) => row.seq < attemptsByName).length;
  if (named < attemptsByName) return { seq: named, attemptId, isNew: true };
  return { seq: attemptsByName, attemptId: "", isNew: !rows.some((row) => row.seq === attemptsByName) };
}

/** `recorded`: different attempts, the one that won included. `retries`: requests that came after it. */
export function countAttempts(
  winner: string | undefined,
  attempts: readonly RecordedAttempt[],
): { readonly recorded: number; readonly retries: number } {
  if (winner === undefined) return { recorded: 0, retries: 0 };
  const named = new Set([winner, ...attempts.flatMap(({ attemptId }) => attemptId ?? [])]);
  return { recorded: named.size, retries: attempts.reduce((total, { tries }) => total + tries, 0) };
}
