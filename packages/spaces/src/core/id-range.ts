// Which ids begin with a prefix, as a range in the order of bytes. Pure.

/** The first text after all those that begin with the prefix. Undefined where no text comes after them. */
export function endOfPrefix(prefix: string): string | undefined {
  const points = [...prefix].map((character) => character.codePointAt(0) ?? 0);
  for (;;) {
    const last = points.pop();
    if (last === undefined) return undefined;
    if (last < 0x10ffff) return String.fromCodePoint(...points, nextPoint(last));
  }
}

/** No text holds half of a surrogate pair. */
function nextPoint(point: number): number {
  return point + 1 === 0xd800 ? 0xe000 : point + 1;
}
