import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { typedCommand } from "./launcher.ts";

let root: string;
const at = (...names: string[]) => join(root, ...names);

/** An installation's launcher, with the link that npm makes to it. */
function install(launcher: string, link: string): void {
  for (const path of [launcher, link]) mkdirSync(dirname(at(path)), { recursive: true });
  writeFileSync(at(launcher), "");
  symlinkSync(at(launcher), at(link));
}

beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "claudemesh-typed-")));
  install("global/lib/node_modules/claudemesh/bin/claudemesh.js", "global/bin/claudemesh");
  install("clone/packages/cli/bin/claudemesh.js", "clone/node_modules/.bin/claudemesh");
  install("cache/_npx/ab12/node_modules/claudemesh/bin/claudemesh.js", "cache/_npx/ab12/node_modules/.bin/claudemesh");
  mkdirSync(at("clone/docs"));
  mkdirSync(at("elsewhere"));
});

afterAll(() => rmSync(root, { recursive: true }));

const clone = "clone/packages/cli/bin/claudemesh.js";
const global = "global/lib/node_modules/claudemesh/bin/claudemesh.js";

describe("what a user types to start this installation again", () => {
  it.each([
    { where: "a global installation", launcher: global, path: ["global/bin"], cwd: "elsewhere", typed: "claudemesh" },
    {
      where: "a clone, from npm start",
      launcher: clone,
      path: ["clone/node_modules/.bin"],
      cwd: "clone",
      typed: "npx claudemesh",
    },
    { where: "a clone, from a folder in it", launcher: clone, path: [], cwd: "clone/docs", typed: "npx claudemesh" },
    {
      where: "a clone beside a global one",
      launcher: clone,
      path: ["global/bin"],
      cwd: "clone",
      typed: "npx claudemesh",
    },
    {
      where: "what npx fetched",
      launcher: "cache/_npx/ab12/node_modules/claudemesh/bin/claudemesh.js",
      path: ["cache/_npx/ab12/node_modules/.bin"],
      cwd: "elsewhere",
      typed: "npx claudemesh",
    },
  ])("is right for $where", ({ launcher, path, cwd, typed }) => {
    const folders = path.map((each) => at(each)).join(delimiter);
    expect(typedCommand(folders, at(cwd), at(launcher))).toBe(typed);
  });

  it("names the launcher itself where neither PATH nor npx leads to it", () => {
    expect(typedCommand(at("global/bin"), at("elsewhere"), at(clone))).toBe(at(clone));
    expect(typedCommand(undefined, "/", "/a b/claude's.js")).toBe("'/a b/claude'\\''s.js'");
  });
});
