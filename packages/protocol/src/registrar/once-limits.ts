// Bounds and forms of `once`: what a key and a claim id look like, how long a lease lasts, how large a result may be.

export const onceLimits = {
  keyCharacters: 128,
  claimIdCharacters: 128,
  leaseSecondsMin: 1,
  leaseSecondsMax: 43_200,
  leaseSecondsDefault: 60,
  /** Canonical bytes of a result. */
  resultBytes: 65_536,
  /** Arrays and objects inside one another, in inputs and in a result: both travel inside a request. */
  valueDepth: 60,
  /** Epochs of a key that one look shows, the newest first. */
  epochsShown: 100,
} as const;

/** Printable ASCII without spaces; a path that ends in `.` or `..` would name another resource. */
export const onceKeyPattern = `^(?!\\.{1,2}$)[!-~]{1,${onceLimits.keyCharacters}}$`;
export const onceClaimIdPattern = `^[!-~]{1,${onceLimits.claimIdCharacters}}$`;

const keyForm = new RegExp(onceKeyPattern);

export function isOnceKey(text: string): boolean {
  return keyForm.test(text);
}
