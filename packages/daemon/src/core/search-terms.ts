// What somebody typed into a search, as an expression of the full-text index. Every word is quoted, so that no text is
// an error and none is an operator; a word that ends in * stands for all words that begin so.

/** Undefined: nothing to look for. */
export function toSearchExpression(text: string): string | undefined {
  const words = text.split(/[\s\0]+/u).filter((word) => word.replaceAll("*", "") !== "");
  if (words.length === 0) return undefined;
  return words.map(quote).join(" ");
}

function quote(word: string): string {
  const isPrefix = word.endsWith("*");
  // Step by step: an expression for the stars at the end starts again at every star before it.
  let end = word.length;
  while (word[end - 1] === "*") end -= 1;
  const quoted = `"${word.slice(0, end).replaceAll('"', '""')}"`;
  return isPrefix ? `${quoted}*` : quoted;
}
