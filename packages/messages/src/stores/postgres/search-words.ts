// Text as the search index of PostgreSQL knows it: words without case and accents, each marked with its mesh, because
// one index serves all meshes. Built here, so that no server's dictionary has a say in what is found.

/** Longer ones are no words that anybody looks for, and the server has a limit of its own. */
const wordCharacters = 200;
/** Of one text; a longer one is found by its beginning. */
const wordsPerText = 10_000;
/** Positions above it are all one to the server. */
const positionMax = 16_383;

function wordsOf(text: string): string[] {
  const folded = text
    .normalize("NFD")
    .replaceAll(/\p{Mn}/gu, "")
    .toLowerCase();
  return folded.match(/[\p{L}\p{N}]+/gu) ?? [];
}

/** Unlike the beginning of a mesh's id, which is a time, its end tells meshes apart. */
function markOf(meshId: string): string {
  return meshId.slice(-8);
}

/** The text of a tsvector. */
export function toVector(meshId: string, text: string): string {
  const mark = markOf(meshId);
  return wordsOf(text)
    .slice(0, wordsPerText)
    .map((word, index) => ({ word, position: Math.min(index + 1, positionMax) }))
    .filter(({ word }) => word.length <= wordCharacters)
    .map(({ word, position }) => `'${mark}:${word}':${position}`)
    .join(" ");
}

/** The text of a tsquery: every term must be there, and one of several words in their order. */
export function toQuery(meshId: string, terms: readonly string[]): string {
  const mark = markOf(meshId);
  return terms
    .map(wordsOf)
    .filter((words) => words.length > 0)
    .map((words) => `(${words.map((word) => `'${mark}:${word}'`).join(" <-> ")})`)
    .join(" & ");
}
