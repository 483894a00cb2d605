// What a known fault is: small edits of the source, and the harm that a user would see.

export type Edit = {
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
};

export type KnownBad = {
  readonly name: string;
  /** What a user would see happen. */
  readonly harm: string;
  readonly edits: readonly Edit[];
  /** What reads an edited file that no module imports; its tests are run. Others are found by their imports. */
  readonly loadedBy?: readonly string[];
};
