// What a user gets who installs the published packages: every package is built, packed and installed in an empty
// folder with whatever Node is on PATH, and the README's tour runs there.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { listFiles } from "./checks/source-tree.ts";
import { installGlobally } from "./packaging/global-install.ts";
import { type PackedInstall, packAndInstall } from "./packaging/packed-install.ts";

const repository = join(import.meta.dirname, "..");
let folder: string;
let install: PackedInstall;

beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "claudemesh-pack-")));
  install = packAndInstall(repository, folder);
}, 300_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(command: string, args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd: install.folder,
    env: install.env,
    encoding: "utf8",
  });
  return { status, stdout, output: `${stdout}${stderr}` };
}

/** A real old Node, where this machine has one beside the pinned one. */
const oldNode = (process.env.PATH ?? "")
  .split(delimiter)
  .map((each) => join(each, "node"))
  .find(
    (node) =>
      existsSync(node) && Number.parseInt(spawnSync(node, ["-p", "process.versions.node"]).stdout.toString(), 10) < 24,
  );

/** What Node loads, where it is code: that has types beside it, and conditions may stand inside others. */
function codeOf(target: unknown): string | undefined {
  if (typeof target !== "object" || target === null) return undefined;
  const { default: code } = target as { readonly default?: unknown };
  return typeof code === "string" ? code : codeOf(code);
}

/** Every subpath of every package that leads to code; a pattern stands for each file it matches. */
function listSubpaths(): string[] {
  return install.manifests.flatMap(({ name, exports }) => {
    const files = listFiles(join(install.folder, "node_modules", name));
    return Object.entries(exports ?? {}).flatMap(([key, target]: [string, unknown]) => {
      const code = codeOf(target);
      const [before = "", after] = code?.slice(2).split("*") ?? [];
      if (code === undefined) return [];
      if (after === undefined) return [name + key.slice(1)];
      const matches = files.filter((path) => path.startsWith(before) && path.endsWith(after));
      return matches.map((path) => name + key.slice(1).replace("*", path.slice(before.length, -after.length)));
    });
  });
}

describe("the packed packages", () => {
  it("answer --version through the installed command", () => {
    const version = install.manifests.find(({ name }) => name === "claudemesh")?.version ?? "none";
    const { status, output } = run(join(install.folder, "node_modules", ".bin", "claudemesh"), ["--version"]);
    expect(output).toContain(version);
    expect(status).toBe(0);
  });

  it("bring the conformance kit with its vectors, on whatever Node is on PATH", () => {
    const kit = join(install.folder, "node_modules", ".bin", "claudemesh-conformance");
    expect(run(kit, ["broker", "--list"])).toMatchObject({
      status: 0,
      stdout: expect.stringContaining("1.5-duplicate"),
    });
    expect(run(kit, ["broker", "--url", "http://127.0.0.1:1"])).toMatchObject({ status: 2 });
    const read = 'import { readFileSync } from "node:fs"; import { createRequire } from "node:module";';
    const path = 'createRequire(import.meta.url).resolve("@claudemesh/protocol/vectors/fingerprints.json")';
    const { status, output } = run(process.execPath, [
      "--input-type=module",
      "-e",
      `${read} JSON.parse(readFileSync(${path}))`,
    ]);
    expect(status, output).toBe(0);
  });

  it("hold no TypeScript source and no test", () => {
    for (const { name } of install.manifests) {
      const files = listFiles(join(install.folder, "node_modules", name));
      expect(
        files.filter((path) => /(?<!\.d)\.ts$|\.test\./.test(path)),
        name,
      ).toEqual([]);
    }
  });

  it("can be imported by every subpath they export", () => {
    const subpaths = listSubpaths();
    expect(subpaths).not.toHaveLength(0);
    writeFileSync(
      join(install.folder, "import-all.mjs"),
      subpaths.map((path) => `await import("${path}");\n`).join(""),
    );
    expect(run(process.execPath, ["import-all.mjs"])).toMatchObject({ status: 0, output: "" });
  });

  it("can be type-checked against by every subpath they export", () => {
    const imports = listSubpaths().map(
      (path, n) => `import * as m${n} from "${path}";\nexport const n${n} = Object.keys(m${n});\n`,
    );
    writeFileSync(join(install.folder, "types.mts"), imports.join(""));
    const compilerOptions = {
      ...(JSON.parse(readFileSync(join(repository, "tsconfig.json"), "utf8")) as { compilerOptions: object })
        .compilerOptions,
      typeRoots: [join(repository, "node_modules", "@types")],
    };
    writeFileSync(join(install.folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["types.mts"] }));
    const { status, output } = run(join(repository, "node_modules", ".bin", "tsc"), ["-p", install.folder]);
    expect(output).toBe("");
    expect(status).toBe(0);
  });

  it("take the README's tour", () => {
    const { status, output } = run(process.execPath, [
      join(repository, "scripts", "readme-commands.mjs"),
      "run",
      "tour",
      "--timeout-s",
      "180",
      "--cwd",
      install.folder,
      "--bin",
      join(install.folder, "node_modules", ".bin", "claudemesh"),
    ]);
    expect(status, output).toBe(0);
  });
});

describe("the command, installed globally", () => {
  it("needs nothing but itself where the installed Node will do", async () => {
    const {
      output,
      folder: found,
      command,
      env,
    } = await installGlobally(install, process.execPath, join(folder, "new"));
    expect(output).toMatch(/^\s*added 1 package in \S+\s*$/);
    expect(listFiles(found).filter((path) => path.endsWith(".map"))).toEqual([]);
    expect(existsSync(join(found, "node_modules"))).toBe(false);
    expect(existsSync(join(found, "THIRD-PARTY-LICENSES.txt"))).toBe(true);
    const { status, stdout } = spawnSync(command, ["--version"], { env, encoding: "utf8" });
    expect({ status, stdout: stdout.trim() }).toEqual({ status: 0, stdout: "0.1.0" });
  });

  it.skipIf(oldNode === undefined)("brings a Node of its own where the installed one is too old", async () => {
    const { output, folder: found, command, env } = await installGlobally(install, oldNode ?? "", join(folder, "old"));
    expect(output).toMatch(/^\s*added 3 packages in \S+\s*$/);
    expect(listFiles(join(found, "node_modules", "@claudemesh", "node")).length).toBeGreaterThan(0);
    const { status, stdout } = spawnSync(command, ["doctor", "--json"], {
      env: { ...env, CLAUDEMESH_HOME: join(folder, "none") },
      encoding: "utf8",
    });
    expect(stdout).toMatch(/Node 24\./);
    expect(status).not.toBe(127);
  });
});
