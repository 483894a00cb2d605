// Text from outside as PostgreSQL can compare it with what is stored: it refuses some text where it should find nothing.

/** U+0000 is refused, and no stored value holds it: such text equals nothing, and null does so too. */
export function comparable(text: string): [string | null] {
  return [text.includes("\0") ? null : text];
}

/** The same for text that rows are listed after: nothing stored lies between the part before U+0000 and the whole. */
export function beforeNul(text: string): string {
  const [before = ""] = text.split("\0", 1);
  return before;
}

const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Anything else is refused where an id is expected, and equals none of ours. */
export function isUuid(text: string): boolean {
  return uuidPattern.test(text);
}
