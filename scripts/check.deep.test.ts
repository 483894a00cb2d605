// What `npm run check` must refuse, planted in a small workspace that is otherwise clean. The faults themselves are
// listed in scripts/checks/planted-faults.ts; each must be named by the check that is there for it.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { plantedFaults } from "./checks/planted-faults.ts";
import { createPlantedWorkspace, type PlantedWorkspace } from "./checks/planted-workspace.ts";

interface Verdict {
  readonly exitCode: number | null;
  readonly output: string;
}

function check(root: string, ...only: string[]): Verdict {
  const args = [join(import.meta.dirname, "check.ts"), "--root", root, ...only.flatMap((name) => ["--only", name])];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  return { exitCode: status, output: `${stdout}${stderr}` };
}

let workspace: PlantedWorkspace;

beforeAll(() => {
  workspace = createPlantedWorkspace();
});

afterAll(() => workspace.remove());

it("passes a clean workspace and counts what each check examined", () => {
  const { exitCode, output } = check(workspace.root);
  expect(output).toMatch(/All checks passed/);
  expect(output.match(/^ok .* [1-9]\d* [a-z ]+ examined/gm)).toHaveLength(Object.keys(plantedFaults).length);
  expect(exitCode).toBe(0);
});

describe.each(Object.entries(plantedFaults))("%s refuses", (name, faults) => {
  let verdict: Verdict;

  beforeAll(() => {
    const restore = faults.flatMap(({ files }) => Object.entries(files).map((file) => workspace.plant(...file)));
    verdict = check(workspace.root, name);
    for (const undo of restore) undo();
  });

  it.each(faults)("$fault", ({ says }) => expect(verdict.output).toMatch(says));

  it("with exit code 1 and its name at the end", () => {
    expect(verdict.exitCode).toBe(1);
    expect(verdict.output.trimEnd()).toMatch(new RegExp(`Refused by: ${name}\\.$`));
  });
});

it("refuses a test that two projects collect", () => {
  const config = readFileSync(join(workspace.root, "vitest.config.ts"), "utf8");
  const both = config.replaceAll('"tests/**/*.test.ts"', '"packages/**/*.test.ts"');
  const undo = workspace.plant("vitest.config.ts", both);
  const { exitCode, output } = check(workspace.root, "collected-tests");
  undo();
  expect(output).toMatch(/ids\.test\.ts: collected more than once \((?:unit, system|system, unit)\)/);
  expect(exitCode).toBe(1);
});

describe("refuses a check that examined nothing", () => {
  it.each([
    { name: "types", path: "tsconfig.json", from: /"include": \[[^\]]*\]/, to: '"include": []' },
    { name: "style", path: "biome.json", from: /"includes": \["\*\*"[^\]]*\]/, to: '"includes": []' },
    { name: "imports", path: ".dependency-cruiser.mjs", from: /parser: "swc"/, to: 'exclude: { path: "." }' },
    {
      name: "dead-code",
      path: "knip.jsonc",
      from: /"workspaces": \{/,
      to: '"ignoreWorkspaces": ["**"], "workspaces": {',
    },
    { name: "collected-tests", path: "vitest.config.ts", from: /\.test\.ts"/g, to: '.none.ts"' },
    { name: "locked-packages", path: "package-lock.json", from: /[\s\S]+/, to: '{"packages": {}}' },
  ])("$name", ({ name, path, from, to }) => {
    const config = readFileSync(join(workspace.root, path), "utf8");
    expect(config).toMatch(from);
    const undo = workspace.plant(path, config.replace(from, to));
    const { exitCode, output } = check(workspace.root, name);
    undo();
    expect(output).toMatch(new RegExp(`FAILED ${name} +0 `));
    expect(output).toMatch(/it examined nothing/);
    expect(exitCode).toBe(1);
  });

  it.each(["words", "decisions"])("%s", (name) => {
    const empty = mkdtempSync(join(tmpdir(), "claudemesh-check-"));
    const { exitCode, output } = check(empty, name);
    rmSync(empty, { recursive: true });
    expect(output).toMatch(/it examined nothing/);
    expect(exitCode).toBe(1);
  });
});

it("answers wrong usage with the list of checks", () => {
  const { exitCode, output } = check(workspace.root, "speling");
  expect(output).toMatch(/no check named speling/);
  expect(exitCode).toBe(2);
});
