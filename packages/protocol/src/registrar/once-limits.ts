// Limits and forms of `once`: the form of a key and of a claim id, the length of a lease, the size of a result.

export const onceLimits = {
  keyCharacters: 128,
  claimIdCharacters: 128,
  leaseSecondsMin: 1,
  leaseSecondsMax: 43_200,
  leaseSecondsDefault: 60,
  /** Canonical bytes of a result. */
  resultBytes: 65_536,
  /** How deeply inputs and a result may be nested: both are parts of a request. */
  valueDepth: 60,
  /** How many epochs of a key one answer shows, the newest first. */
  epochsShown: 100,
} as const;

/** Printable ASCII without spaces; a path that ends in `.` or `..` would name another resource. */
export const onceKeyPattern = `^(?!\\.{1,2}$)[!-~]{1,${onceLimits.keyCharacters}}$`;
export const onceClaimIdPattern = `^[!-~]{1,${onceLimits.claimIdCharacters}}$`;

const keyForm = new RegExp(onceKeyPattern);

export function isOnceKey(text: string): boolean {
  return keyForm.test(text);
}
