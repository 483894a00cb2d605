// What a search asks for: the words of its text, nothing else. There is no query language that could be misspelt.

/** Words as the index knows them have a letter or a digit; what has none would match nothing. */
const hasWord = /[\p{L}\p{N}]/u;

export function readSearchTerms(text: string): string[] {
  // Control characters separate words like spaces do: a query is handed to the index as text that ends at a NUL.
  return text.split(/[\s\p{Cc}]+/u).filter((term) => hasWord.test(term));
}
