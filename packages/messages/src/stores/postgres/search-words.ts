// Text as the search index of PostgreSQL knows it: words without case and accents, each marked with its mesh, because
// one index serves all meshes. It is built here, so that what is found does not depend on a server's dictionaries.

/** Up to 500 characters, of four bytes at most: with its mark a word fits the server's 2,046. A longer one is several. */
const wordPattern = /[\p{L}\p{N}]{1,500}/gu;
/** The server does not distinguish positions above this one. */
const positionMax = 16_383;
/** Of one word, the server keeps so many. */
const positionsPerWord = 255;

/**
 * Accents go before and after the text is decomposed: putting a long run of them in order costs the square of its length.
 * Other marks part words as blanks do, and go for the same reason.
 */
function wordsOf(text: string): string[] {
  const folded = text
    .replaceAll(/\p{Mn}/gu, "")
    .replaceAll(/[^\p{L}\p{N}]+/gu, " ")
    .normalize("NFD")
    .replaceAll(/\p{Mn}/gu, "")
    .toLowerCase();
  return folded.match(wordPattern) ?? [];
}

/** The end of a mesh's id distinguishes meshes; its beginning is a time. */
function markOf(meshId: string): string {
  return meshId.slice(-8);
}

/** Marks a text of which the server does not keep all positions. It cannot be taken for a word, since no word is empty. */
const positionsUnknown = "";

/** The text of a tsvector. */
export function toVector(meshId: string, text: string): string {
  const mark = markOf(meshId);
  const words = wordsOf(text);
  const lexemes = words.map((word, index) => `'${mark}:${word}':${Math.min(index + 1, positionMax)}`);
  if (!areAllPositionsKept(words)) lexemes.push(`'${mark}:${positionsUnknown}'`);
  return lexemes.join(" ");
}

function areAllPositionsKept(words: readonly string[]): boolean {
  if (words.length <= positionsPerWord) return true;
  if (words.length >= positionMax) return false;
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return Math.max(...counts.values()) <= positionsPerWord;
}

/**
 * The text of a tsquery: every term must be there, and one of several words in their order, or with all of them where
 * the server cannot tell the order.
 */
export function toQuery(meshId: string, terms: readonly string[]): string {
  const mark = markOf(meshId);
  const quote = (word: string) => `'${mark}:${word}'`;
  return terms
    .map((term) => wordsOf(term).map(quote))
    .filter((words) => words.length > 0)
    .map((words) =>
      words.length === 1
        ? words.join()
        : `((${words.join(" <-> ")}) | (${[...words, quote(positionsUnknown)].join(" & ")}))`,
    )
    .join(" & ");
}
