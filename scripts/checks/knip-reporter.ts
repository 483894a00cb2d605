// How knip answers scripts/checks/dead-code.ts: one JSON value that also says how many files it analysed, which none
// of its own reporters tells.
import { relative } from "node:path";
import type { ReporterOptions } from "knip";

export interface KnipAnswer {
  readonly files: number;
  readonly issues: ReadonlyArray<{
    readonly type: string;
    readonly file: string;
    readonly line: number | undefined;
    readonly symbol: string;
  }>;
  /** Entries of a package's `exports` or `bin` that name no file. */
  readonly missingEntries: ReadonlyArray<{ readonly file: string; readonly entry: string }>;
}

// biome-ignore lint/style/noDefaultExport: knip calls the default export of a reporter
export default function reportToCheck({ issues, counters, configurationHints, cwd }: ReporterOptions): void {
  const found = Object.values(issues).flatMap((records) =>
    Object.values(records).flatMap((byName) => Object.values(byName)),
  );
  const answer: KnipAnswer = {
    files: counters.total,
    issues: found.map(({ type, filePath, line, symbol }) => ({ type, file: relative(cwd, filePath), line, symbol })),
    missingEntries: configurationHints
      .filter(({ type }) => type === "package-entry")
      .map(({ filePath, identifier }) => ({ file: relative(cwd, filePath ?? cwd), entry: String(identifier) })),
  };
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
