// Says in words what a schema's pattern asks for, because the regular expression itself tells the sender of a request
// nothing.

const words: readonly (readonly [RegExp, (...counts: readonly (string | undefined)[]) => string])[] = [
  [/^\^\[0-9a-f\]\{(\d+)\}\$$/, (count) => `must be ${count} lower-case hex digits`],
  [/^\^\[\^\\u0000\]\*\$$/, () => "must not hold the character U+0000"],
  [
    /^\^\[A-Za-z\]\S*:/,
    () => 'must be an id such as "task:1": a scheme, a colon and the rest, without control characters',
  ],
  [
    /^\^\[!-~\]\{(\d+),(\d+)\}\$$/,
    (least, most) => `must be ${least}–${most} printable ASCII characters without spaces`,
  ],
  [/\[!-~\]\{1,(\d+)\}\$$/, (count) => `must be 1–${count} printable ASCII characters without spaces`],
  [/^\^\[!-~\]/, () => "must be printable ASCII characters without spaces"],
  [/^\^\(\[A-Za-z0-9\]/, () => "must be the name of a branch, or empty for the default one"],
];

/** Undefined where there is no better description than the pattern itself. */
export function describePattern(pattern: string): string | undefined {
  for (const [shape, describe] of words) {
    const match = shape.exec(pattern);
    if (match !== null) return describe(match[1], match[2]);
  }
  return undefined;
}
