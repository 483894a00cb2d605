// What `npm run build` puts into a package that is to be published, and what it refuses to.
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, globSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createPlantedWorkspace, type PlantedWorkspace } from "./checks/planted-workspace.ts";
import { findStrayReference, finishCode, finishDeclaration } from "./packaging/emitted-code.ts";
import { publishManifest } from "./packaging/manifest.ts";

let workspace: PlantedWorkspace;

function build(): { status: number | null; output: string } {
  const args = [join(import.meta.dirname, "build.ts"), "--root", workspace.root];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  return { status, output: `${stdout}${stderr}` };
}

const built = (path: string) => join(workspace.root, "build", path);
const read = (path: string) => readFileSync(built(path), "utf8");

beforeAll(() => {
  workspace = createPlantedWorkspace();
  workspace.plant("packages/daemon/src/stores/migrations/0001-rows.sql", "CREATE TABLE rows (id);\n");
  workspace.plant("packages/daemon/src/stores/rows.suite.ts", 'export { it } from "vitest";\n');
  workspace.plant("packages/daemon/src/testing/wait.ts", 'export { expect } from "vitest";\n');
  workspace.plant("packages/daemon/bin/daemon.js", "#!/bin/sh\n");
  workspace.plant("packages/protocol/vectors/ids.json", "[1]\n");
  workspace.plant("packages/broker/src/serve.ts", 'export type { Id } from "./shape.ts";\n\nexport const serve = 1;\n');
  workspace.plant("packages/broker/src/shape.ts", "export type Id = number;\n");
  workspace.plant("LICENSE", "MIT\n");
  plantProgram();
});

/** It reads a migration of one package, and its own version. */
function plantProgram(): void {
  const manifest = {
    name: "claudemesh",
    version: "0.1.0",
    type: "module",
    bin: { mesh: "bin/mesh.js" },
    engines: { node: ">=20" },
    dependencies: { "@claudemesh/daemon": "0.1.0", shouting: "1.0.0" },
  };
  workspace.plant("packages/cli/package.json", JSON.stringify(manifest));
  workspace.plant("packages/cli/bin/mesh.js", 'import { main } from "../dist/main.js";\nconsole.log(await main());\n');
  workspace.plant(
    "packages/cli/src/main.ts",
    `import { readFileSync } from "node:fs";
import { createRequire } from ${'"node:module"'};
import { shout } from ${'"shouting"'};
export async function main(): Promise<string> {
  const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as { version: string };
  const [{ start }, { readRows }] = await Promise.all([import("@claudemesh/daemon/start"), import("@claudemesh/daemon/rows")]);
  const { calm } = createRequire(import.meta.url)("shouting") as { calm: string };
  return \`\${shout(version)} \${calm} \${start()} \${readRows()}\`;
}
`,
  );
  plantDependency("MIT of shouting\n");
  workspace.plant(
    "packages/daemon/src/stores/read-rows.ts",
    `import { readFileSync } from "node:fs";
export const readRows = () => readFileSync(new URL("./migrations/0001-rows.sql", import.meta.url), "utf8");
`,
  );
  const daemon = JSON.parse(readFileSync(join(workspace.root, "packages/daemon/package.json"), "utf8"));
  const exports = { ...daemon.exports, "./rows": "./src/stores/read-rows.ts" };
  workspace.plant("packages/daemon/package.json", JSON.stringify({ ...daemon, exports }));
}

/** A dependency of the program, as npm installs it. */
function plantDependency(license: string | undefined): void {
  const files = {
    "package.json": JSON.stringify({ name: "shouting", version: "1.0.0", main: "shouting.js" }),
    "shouting.js": 'exports.shout = (text) => text + "!";\nexports.calm = "calm";\n',
    "shouting.d.ts": "export function shout(text: string): string;\n",
    ...(license === undefined ? {} : { LICENSE: license }),
  };
  rmSync(join(workspace.root, "node_modules/shouting"), { recursive: true, force: true });
  for (const [name, text] of Object.entries(files)) workspace.plant(`node_modules/shouting/${name}`, text);
}

afterAll(() => workspace.remove());

describe("npm run build", () => {
  it("builds every package, without its tests", () => {
    expect(build()).toMatchObject({ status: 0 });
    expect(read("daemon/dist/start.js")).toMatch(/from "\.\/stores\/rows\.js"/);
    expect(read("daemon/dist/start.d.ts")).toMatch(/start\(\): number/);
    expect(read("broker/dist/serve.d.ts")).toMatch(/from "\.\/shape\.js"/);
    for (const absent of [
      "protocol/dist/ids.test.js",
      "daemon/dist/stores/rows.suite.js",
      "daemon/dist/testing",
      "daemon/src",
      ".emitted",
    ]) {
      expect(existsSync(built(absent)), absent).toBe(false);
    }
  });

  it("carries migrations, vectors, bin and licence along", () => {
    expect(read("daemon/dist/stores/migrations/0001-rows.sql")).toMatch(/CREATE TABLE/);
    expect(read("protocol/vectors/ids.json")).toBe("[1]\n");
    expect(statSync(built("daemon/bin/daemon.js")).isFile()).toBe(true);
    expect(read("daemon/LICENSE")).toBe("MIT\n");
  });

  it("runs from the built files alone", () => {
    const program = `import(${JSON.stringify(built("protocol/dist/ids.js"))}).then((ids) => console.log(ids.makeId(4)));`;
    expect(spawnSync(process.execPath, ["-e", program], { encoding: "utf8" }).stdout).toBe("8\n");
  });

  it("makes a program that carries the code and the licences of all that it needs", () => {
    const alone = join(workspace.root, "alone");
    cpSync(built("cli"), alone, { recursive: true });
    const { stdout, stderr } = spawnSync(process.execPath, [join(alone, "bin/mesh.js")], { encoding: "utf8" });
    expect(stderr).toBe("");
    expect(stdout.trim()).toBe("0.1.0! calm 4 CREATE TABLE rows (id);");
    const manifest = JSON.parse(read("cli/package.json"));
    expect(manifest).toMatchObject({ engines: { node: ">=20" } });
    expect(manifest).not.toHaveProperty("dependencies");
    expect(read("cli/THIRD-PARTY-LICENSES.txt")).toBe("shouting 1.0.0\n\nMIT of shouting\n");
    expect(globSync("**/*.{ts,map}", { cwd: alone })).toEqual([]);
  });

  it("refuses to carry the code of a dependency that says nothing of its licence", () => {
    plantDependency(undefined);
    const { status, output } = build();
    plantDependency("MIT of shouting\n");
    expect(output).toMatch(/node_modules\/shouting does not say under what licence it is/);
    expect(status).toBe(1);
  });

  it("forgets files whose source is gone", () => {
    const undo = workspace.plant("packages/broker/src/passing.ts", "export const passing = 1;\n");
    build();
    expect(existsSync(built("broker/dist/passing.js"))).toBe(true);
    undo();
    build();
    expect(existsSync(built("broker/dist/passing.js"))).toBe(false);
  });

  it.each([
    ["a type error", "packages/broker/src/wrong.ts", 'export const port: number = "80";\n', /error TS2322/],
    [
      "a run-time path",
      "packages/broker/src/path.ts",
      'export const worker = "./work.ts";\n',
      /refers to \.\/work\.ts/,
    ],
    [
      "a program that names a file which it does not carry",
      "packages/daemon/src/stores/read-rows.ts",
      'export const readRows = () => new URL("../../bin/daemon.js", import.meta.url).href;\n',
      /names its file bin\/daemon\.js/,
    ],
  ])("refuses %s", (_, path, content, says) => {
    const undo = workspace.plant(path, content);
    const { status, output } = build();
    undo();
    expect(output).toMatch(says);
    expect(status).toBe(1);
  });
});

describe("a published manifest", () => {
  it("points at built files, keeps patterns, and drops what only the workspace needs", () => {
    const source = {
      name: "@claudemesh/x",
      version: "1.0.0",
      bin: { x: "bin/x.js" },
      scripts: { test: "vitest" },
      devDependencies: { vitest: "*" },
      dependencies: { pg: "8" },
      exports: {
        "./ids": "./src/ids.ts",
        "./wire/*": "./src/wire/*.ts",
        "./vectors/*": "./vectors/*",
        "./rows-suite": "./src/stores/rows.suite.ts",
      },
    };
    expect(publishManifest(source)).toEqual({
      name: "@claudemesh/x",
      version: "1.0.0",
      engines: { node: ">=24" },
      bin: { x: "bin/x.js" },
      dependencies: { pg: "8" },
      exports: {
        "./ids": { types: "./dist/ids.d.ts", default: "./dist/ids.js" },
        "./wire/*": { types: "./dist/wire/*.d.ts", default: "./dist/wire/*.js" },
        "./vectors/*": "./vectors/*",
      },
    });
  });
});

describe("emitted code", () => {
  it("follows relative TypeScript files to their new names", () => {
    expect(finishDeclaration('export { a } from "./a.ts";')).toBe('export { a } from "./a.js";');
    expect(finishDeclaration(`type T = import(${'"../a/b.ts"'}).T;`)).toBe(`type T = import(${'"../a/b.js"'}).T;`);
    expect(finishCode('new Worker(new URL("./w.ts", import.meta.url))')).toBe(
      'new Worker(new URL("./w.js", import.meta.url))',
    );
  });

  it("leaves packages and declarations alone and finds what still leads nowhere", () => {
    const text = 'import "x.ts"; import "./types.d.ts";';
    expect(finishDeclaration(text)).toBe(text);
    expect(findStrayReference(text)).toBeUndefined();
    expect(findStrayReference('spawn(node, ["./main.ts"])')).toBe("./main.ts");
  });
});
