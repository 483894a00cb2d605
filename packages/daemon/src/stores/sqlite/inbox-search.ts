// The full-text index over the readable bodies of the inbox. It changes in the same transaction as the row that it
// indexes, and answers with the numbers of rows.
import { textOf } from "@claudemesh/protocol/wire/history-item";
import type { Sqlite } from "@claudemesh/storage/sqlite";

/** Ciphertext and bytes that are no text have no words. */
export function indexBody(tx: Sqlite, seq: number, unreadable: boolean, body: Uint8Array): void {
  const text = unreadable ? undefined : textOf(body);
  if (text === undefined || text === "") return;
  tx.sql("INSERT INTO inbox_search (rowid, body) VALUES (?, ?)").run(seq, text);
}

/** Nothing happens where the message was never indexed. */
export function unindexBody(tx: Sqlite, seq: number): void {
  tx.sql("DELETE FROM inbox_search WHERE rowid = ?").run(seq);
}

/**
 * What a person typed into a search, as an expression of the full-text index. Every word is quoted, so that no text is an
 * error and no word an operator; a word that ends in * stands for all words that begin so. Undefined where there is no word.
 */
export function toSearchExpression(text: string): string | undefined {
  const words = text.split(/[\s\0]+/u).filter((word) => word.replaceAll("*", "") !== "");
  if (words.length === 0) return undefined;
  return words.map(quoteWord).join(" ");
}

function quoteWord(word: string): string {
  const isPrefix = word.endsWith("*");
  // Step by step: an expression for the stars at the end starts again at every star before it.
  let end = word.length;
  while (word[end - 1] === "*") end -= 1;
  const quoted = `"${word.slice(0, end).replaceAll('"', '""')}"`;
  return isPrefix ? `${quoted}*` : quoted;
}

/** Numbers of the messages that have all the words, in the order of arrival. */
export function findMatches(db: Sqlite, expression: string, afterSeq: number, limit: number): number[] {
  return db
    .sql<{ seq: number }>(
      "SELECT rowid AS seq FROM inbox_search WHERE inbox_search MATCH ? AND rowid > ? ORDER BY rowid LIMIT ?",
    )
    .all(expression, afterSeq, limit)
    .map(({ seq }) => seq);
}

const backfillKey = "search_backfill_from";
const rowsPerStep = 256;

/** Indexes what an older version left without an index. Small transactions, so that a crash goes on where it was. */
export function backfillSearch(db: Sqlite): void {
  while (db.transaction(() => backfillStep(db)));
}

function backfillStep(tx: Sqlite): boolean {
  const state = tx.sql<{ value: string }>("SELECT value FROM inbox_state WHERE key = ?").get(backfillKey);
  if (state === undefined) return false;
  const rows = tx
    .sql<{ seq: number; unreadable: number; body: Uint8Array }>(
      "SELECT seq, unreadable, body FROM inbox WHERE seq <= ? ORDER BY seq DESC LIMIT ?",
    )
    .all(Number(state.value), rowsPerStep);
  for (const { seq, unreadable, body } of rows) indexBody(tx, seq, unreadable === 1, body);
  const last = rows.at(-1);
  if (last === undefined) tx.sql("DELETE FROM inbox_state WHERE key = ?").run(backfillKey);
  else tx.sql("UPDATE inbox_state SET value = ? WHERE key = ?").run(String(last.seq - 1), backfillKey);
  return last !== undefined;
}
