// What a search asks for: the words of its text, nothing else. There is no query language that could be misspelt.

/** The index knows words that have a letter or a digit; a term that has none would match nothing. */
const hasWord = /[\p{L}\p{N}]/u;

export function readSearchTerms(text: string): string[] {
  // Control characters separate words like spaces do: the index reads a query as text that ends at a NUL.
  return text.split(/[\s\p{Cc}]+/u).filter((term) => hasWord.test(term));
}
