// What one check of `npm run check` is and what it answers. Running and printing them is scripts/check.ts.

/** `examined` counts what the check really looked at, in `unit`s; a report that examined nothing counts as failed. */
export interface CheckReport {
  readonly examined: number;
  readonly unit: string;
  /** One readable line (or paragraph) each; empty means clean. */
  readonly problems: readonly string[];
}

export interface Check {
  readonly name: string;
  /** What a clean run proves, for the list that `--help` prints. */
  readonly proves: string;
  run(root: string): Promise<CheckReport>;
}
