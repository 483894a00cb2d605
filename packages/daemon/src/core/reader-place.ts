// How far a program has come that asks the inbox for what it has not been given yet, as places in the order of arrival.
// Where a place is kept is the inbox readers' business.

export type ReaderPlace = {
  /** What is older was there before the reader, and is never given to it by itself. */
  readonly startsAt: string;
  readonly position: string;
  /** Up to here it was offered, and perhaps lost on the way. */
  readonly offered: string;
};

/** Less than the id of every row. */
export const beforeAll = "00000000000000000000000000";

const later = (a: string, b: string) => (a > b ? a : b);

/** Nothing that was not offered can have been received, so the position never passes what was, and never goes back. */
export function acknowledge(place: ReaderPlace, upTo: string | undefined): ReaderPlace {
  if (upTo === undefined) return place;
  const reached = upTo < place.offered ? upTo : place.offered;
  return { ...place, position: later(place.position, reached) };
}

export function offer(place: ReaderPlace, upTo: string): ReaderPlace {
  return { ...place, offered: later(place.offered, upTo) };
}
