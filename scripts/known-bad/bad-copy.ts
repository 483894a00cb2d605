// A copy of the workspace in which faults are planted and the ordinary tests run. Outside packages are shared with the
// original; the workspace's own are linked to the copy, or its tests would run the code that is not broken.
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Edit, KnownBad } from "./fault.ts";

const notCopied = new Set(["node_modules", ".git"]);

type TestRun = {
  readonly passed: number;
  /** Names of tests that ran and failed. */
  readonly failed: readonly string[];
  /** Names of tests that did not run: a service that they need was away, or a test before them failed. */
  readonly skipped: ReadonlySet<string>;
  /** Files that could not even be loaded. */
  readonly broken: readonly string[];
  readonly output: string;
};

export type BadCopy = {
  /** Makes these edits, runs every test that is related to `files`, and takes the edits back. */
  readonly run: (edits: readonly Edit[], files: readonly string[], bail: boolean) => TestRun;
  readonly remove: () => void;
};

/** The files whose tests must refuse these faults. */
export function filesOf(faults: readonly KnownBad[]): readonly string[] {
  const files = faults.flatMap(({ edits, loadedBy = [] }) => [...edits.map(({ file }) => file), ...loadedBy]);
  return [...new Set(files)];
}

/** The text with the edit made. A text that the edit does not fit is refused: the fault would not be there. */
export function editText(text: string, { file, find, replace }: Edit): string {
  const parts = text.split(find);
  if (parts.length !== 2) throw new Error(`${file}: the text to replace occurs ${parts.length - 1} times, not once`);
  return parts.join(replace);
}

export function createBadCopy(root: string): BadCopy {
  const copy = mkdtempSync(join(tmpdir(), "known-bad-"));
  for (const name of readdirSync(root).filter((entry) => !notCopied.has(entry))) {
    cpSync(join(root, name), join(copy, name), { recursive: true, verbatimSymlinks: true });
  }
  linkModules(root, copy);
  return {
    run: (edits, files, bail) => {
      const undo = edits.map((edit) => plant(copy, edit)).reverse();
      try {
        return runTests(copy, files, bail);
      } finally {
        for (const restore of undo) restore();
      }
    },
    remove: () => rmSync(copy, { recursive: true, force: true }),
  };
}

function linkModules(root: string, copy: string): void {
  const from = join(root, "node_modules");
  const to = join(copy, "node_modules");
  mkdirSync(join(to, "@claudemesh"), { recursive: true });
  for (const name of readdirSync(from)) {
    if (name !== "@claudemesh" && name !== "claudemesh") symlinkSync(join(from, name), join(to, name));
  }
  for (const name of readdirSync(join(copy, "packages"))) {
    symlinkSync(join(copy, "packages", name), join(to, "@claudemesh", name));
  }
}

function plant(copy: string, edit: Edit): () => void {
  const path = join(copy, edit.file);
  const before = readFileSync(path, "utf8");
  writeFileSync(path, editText(before, edit));
  return () => writeFileSync(path, before);
}

type ReportedFile = {
  readonly name: string;
  readonly status: string;
  readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
};

function runTests(copy: string, files: readonly string[], bail: boolean): TestRun {
  const report = join(copy, "report.json");
  rmSync(report, { force: true });
  const related = ["related", ...files.map((file) => join(copy, file)), "--project", "unit"];
  const options = ["--run", "--reporter=json", `--outputFile=${report}`, ...(bail ? ["--bail=1"] : [])];
  const vitest = join(copy, "node_modules/vitest/vitest.mjs");
  const { stdout, stderr } = spawnSync(process.execPath, [vitest, ...related, ...options], {
    cwd: copy,
    encoding: "utf8",
    maxBuffer: 2 ** 28,
  });
  const results = readReport(report);
  return {
    passed: results.flatMap((file) => file.assertionResults).filter(({ status }) => status === "passed").length,
    failed: failedIn(results),
    skipped: new Set(namesOf(results, ["skipped", "pending", "todo"])),
    broken: results.filter((file) => file.status === "failed" && failedIn([file]).length === 0).map(({ name }) => name),
    output: `${stdout}${stderr}`,
  };
}

function readReport(path: string): ReportedFile[] {
  return (JSON.parse(readFileSync(path, "utf8")) as { testResults: ReportedFile[] }).testResults;
}

const failedIn = (files: readonly ReportedFile[]) => namesOf(files, ["failed"]);

function namesOf(files: readonly ReportedFile[], statuses: readonly string[]): string[] {
  const tests = files.flatMap((file) => file.assertionResults);
  return tests.filter(({ status }) => statuses.includes(status)).map(({ fullName }) => fullName);
}
