// A copy of the workspace in which faults are planted and the ordinary tests run. Outside packages are shared with the
// original; the workspace's own are linked to the copy, or its tests would run the code that is not broken.
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Edit, KnownBad } from "./faults.ts";

const notCopied = new Set(["node_modules", ".git"]);

type TestRun = {
  readonly passed: number;
  /** Names of tests that ran and failed. */
  readonly failed: readonly string[];
  /** Files that could not even be loaded. */
  readonly broken: readonly string[];
  readonly output: string;
};

export type BadCopy = {
  /** Runs `tests` against the workspace with these edits made, then takes them back. */
  readonly run: (edits: readonly Edit[], tests: TestChoice, bail: boolean) => TestRun;
  readonly remove: () => void;
};

export type TestChoice = { readonly relatedTo: readonly string[]; readonly processTests: readonly string[] };

export function choiceFor(faults: readonly KnownBad[]): TestChoice {
  const relatedTo = new Set(faults.flatMap(({ edits }) => edits.map(({ file }) => file)));
  const processTests = new Set(faults.flatMap(({ processTests }) => processTests ?? []));
  return { relatedTo: [...relatedTo], processTests: [...processTests] };
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
    run: (edits, tests, bail) => {
      const undo = edits.map((edit) => plant(copy, edit)).reverse();
      try {
        return runTests(copy, tests, bail);
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

function runTests(copy: string, tests: TestChoice, bail: boolean): TestRun {
  const report = join(copy, "report.json");
  rmSync(report, { force: true });
  const common = ["--run", "--reporter=json", `--outputFile=${report}`, ...(bail ? ["--bail=1"] : [])];
  const files = tests.relatedTo.map((file) => join(copy, file));
  const vitest = join(copy, "node_modules/vitest/vitest.mjs");
  const start = (args: readonly string[]) =>
    spawnSync(process.execPath, [vitest, ...args, ...common], { cwd: copy, encoding: "utf8" });
  const runs = [start(["related", ...files, "--project", "unit"])];
  const results = readReport(report);
  if (tests.processTests.length > 0 && !(bail && failedIn(results).length > 0)) {
    runs.push(start([...tests.processTests, "--project", "system"]));
    results.push(...readReport(report));
  }
  return {
    passed: results.flatMap((file) => file.assertionResults).filter(({ status }) => status === "passed").length,
    failed: failedIn(results),
    broken: results.filter((file) => file.status === "failed" && failedIn([file]).length === 0).map(({ name }) => name),
    output: runs.map(({ stdout, stderr }) => `${stdout}${stderr}`).join("\n"),
  };
}

function readReport(path: string): ReportedFile[] {
  return (JSON.parse(readFileSync(path, "utf8")) as { testResults: ReportedFile[] }).testResults;
}

function failedIn(files: readonly ReportedFile[]): string[] {
  const tests = files.flatMap((file) => file.assertionResults);
  return tests.filter(({ status }) => status === "failed").map(({ fullName }) => fullName);
}
