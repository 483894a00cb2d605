// Text that came from other people, made safe for a terminal, and how many columns a text takes there. Nothing here
// adds an escape sequence: the only ones that are printed are the colours of colours.ts, added behind all of this.

// Control characters, and the marks that reorder or break lines: any of them could move a terminal's cursor, change its
// state, or make one thing look like another.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced
const unsafe = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/** Line feeds stay: a caller that prints several lines means them. */
export function neutralise(text: string): string {
  return text.replace(unsafe, (character) => (character === "\t" ? " " : "�"));
}

/**
 * JSON for a program, which a terminal may show as well: what would be unsafe there is written as an escape, so that the
 * value is the same and the text is harmless.
 */
export function jsonText(value: unknown, indent?: number): string {
  return escapeUnsafe(JSON.stringify(value, undefined, indent));
}

/** The same for text that is JSON already. */
export function escapeUnsafe(json: string): string {
  return json.replace(unsafe, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** As `neutralise`, for text that must stay on one line. */
export function neutraliseLine(text: string): string {
  return neutralise(text).replaceAll("\n", "⏎");
}

const plain = /^[ -~]*$/;
const wide =
  /\p{Emoji_Presentation}|\u{fe0f}|[\u{1100}-\u{115f}\u{2e80}-\u{303e}\u{3041}-\u{a4cf}\u{a960}-\u{a97f}\u{ac00}-\u{d7a3}\u{f900}-\u{faff}\u{fe30}-\u{fe6f}\u{ff00}-\u{ff60}\u{ffe0}-\u{ffe6}\u{20000}-\u{3fffd}]/u;
const widthless = /^[\p{Mn}\p{Me}\p{Cf}]+$/u;

/** Columns that a neutralised text takes, as terminals count them: two for East Asian characters and emoji. */
export function columnsOf(text: string): number {
  if (plain.test(text)) return text.length;
  let columns = 0;
  for (const { segment } of new Intl.Segmenter().segment(text)) columns += segmentColumns(segment);
  return columns;
}

function segmentColumns(segment: string): number {
  if (wide.test(segment)) return 2;
  return widthless.test(segment) ? 0 : 1;
}

export function padColumns(text: string, columns: number): string {
  return text + " ".repeat(Math.max(columns - columnsOf(text), 0));
}

/** The text where it fits, else as much of it as leaves room for the ellipsis that says so. */
export function cutToColumns(text: string, columns: number): string {
  if (columnsOf(text) <= columns) return text;
  let kept = "";
  let taken = 0;
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    taken += segmentColumns(segment);
    if (taken > columns - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}
