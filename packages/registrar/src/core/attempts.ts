// Retries by attempt: the first hundred attempts of a key are kept by name, later ones together under no name. These are
// counts only; no decision depends on them.
import type { RecordedAttempt, Retry } from "./records.ts";

export const attemptsByName = 100;

/** The row that a retry counts in: its number among the key's rows, and the name that it has there. */
export function rowOfAttempt(
  rows: readonly { readonly seq: number; readonly attemptId: string }[],
  attemptId: string,
): { readonly seq: number; readonly attemptId: string; readonly isNew: boolean } {
  const existing = rows.find((row) => row.seq < attemptsByName && row.attemptId === attemptId);
  if (existing !== undefined) return { ...existing, isNew: false };
  const named = rows.filter((row) => row.seq < attemptsByName).length;
  if (named < attemptsByName) return { seq: named, attemptId, isNew: true };
  return { seq: attemptsByName, attemptId: "", isNew: !rows.some((row) => row.seq === attemptsByName) };
}

/** A row of the ledger. */
export type AttemptRow = {
  readonly meshId: string;
  readonly logicalRequestKey: string;
  readonly seq: number;
  readonly attemptId: string;
};

/** Many retries at once: what to add to which row, each row once. `rows` are those of all their keys. */
export function assignRows(rows: readonly AttemptRow[], retries: readonly Retry[]): (Retry & { seq: number })[] {
  const keyOf = ({ meshId, logicalRequestKey }: { meshId: string; logicalRequestKey: string }) =>
    JSON.stringify([meshId, logicalRequestKey]);
  const byKey = new Map<string, { seq: number; attemptId: string }[]>();
  for (const row of rows) {
    const ofKey = byKey.get(keyOf(row));
    if (ofKey === undefined) byKey.set(keyOf(row), [row]);
    else ofKey.push(row);
  }
  const assigned = new Map<string, Retry & { seq: number }>();
  for (const retry of retries) {
    const key = keyOf(retry);
    const ofKey = byKey.get(key) ?? [];
    byKey.set(key, ofKey);
    const { seq, attemptId, isNew } = rowOfAttempt(ofKey, retry.attemptId);
    if (isNew) ofKey.push({ seq, attemptId });
    const before = assigned.get(`${seq} ${key}`);
    const tries = retry.tries + (before?.tries ?? 0);
    const atMs = Math.max(retry.atMs, before?.atMs ?? 0);
    assigned.set(`${seq} ${key}`, { ...(before ?? retry), seq, attemptId, tries, atMs });
  }
  return [...assigned.values()];
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
