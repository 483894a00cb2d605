// How far a named reader of the inbox has come, as ids in the order of arrival. Storing it is up to
// stores/sqlite/inbox-readers.ts.

export type ReaderProgress = {
  /** Messages before this id arrived before the reader began, and are never given to it unasked. */
  readonly startsAt: string;
  /** The reader has acknowledged everything up to this id. */
  readonly position: string;
  /** Everything up to this id was offered to the reader, in answers that may have been lost on their way. */
  readonly offered: string;
};

/** Less than the id of every row. */
export const beforeAll = "00000000000000000000000000";

const later = (a: string, b: string) => (a > b ? a : b);

/** The position never goes back, and never passes what was offered: nothing else can have been received. */
export function acknowledge(progress: ReaderProgress, upTo: string | undefined): ReaderProgress {
  if (upTo === undefined) return progress;
  const reached = upTo < progress.offered ? upTo : progress.offered;
  return { ...progress, position: later(progress.position, reached) };
}

export function offer(progress: ReaderProgress, upTo: string): ReaderProgress {
  return { ...progress, offered: later(progress.offered, upTo) };
}
