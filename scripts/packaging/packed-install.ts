// Builds and packs every package and installs the tarballs in an empty folder, the way a user would get them from a
// registry. Other dependencies come from the registry or npm's cache. What is then tried there is the caller's.
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import type { Manifest } from "./manifest.ts";

export interface PackedInstall {
  /** The folder with `node_modules`, and a start script like the workspace's. */
  readonly folder: string;
  readonly manifests: readonly Manifest[];
  /** Where the tarball of a package is. */
  readonly tarballOf: (name: string) => string;
  /** The environment of a user's shell: whatever Node was on PATH before npm scripts put theirs in front. */
  readonly env: NodeJS.ProcessEnv;
}

/** What npm says of the settings of the machine that it runs on, whatever it installs. */
export const machineWarning = /^npm warn Unknown .* config .*\n/gm;

/** The package that npm leaves out where the installed Node will do. */
export const bringsNode = "@claudemesh/node";

/** Far more than it takes. Where a registry cannot be reached, npm waits for minutes before it tries again. */
const commandTimeoutMs = 200_000;

/**
 * Without `npm_config_globalconfig`: npm derives it from the Node it runs on, and beside the pinned one there is none, so
 * that a process which inherits it no longer knows the machine's registry and certificates.
 */
export function userEnvironment(): NodeJS.ProcessEnv {
  const dropped =
    /^(?:npm_(?!config_(?:registry|cache|userconfig|offline|cafile)$).*|NODE(?!_EXTRA_CA_CERTS$)(?:_.*)?|INIT_CWD|VITEST.*)$/i;
  const entries = Object.entries(process.env).filter(([name]) => !dropped.test(name));
  const path = (process.env.PATH ?? "")
    .split(delimiter)
    .filter((each) => !/node_modules\/\.bin\/?$|node-gyp-bin/.test(each));
  return { ...Object.fromEntries(entries), PATH: path.join(delimiter) };
}

function run(command: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv): string {
  const bound = { timeout: commandTimeoutMs, killSignal: "SIGKILL" } as const;
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, env, encoding: "utf8", ...bound });
  if (status === 0) return stdout;
  const end = (error as NodeJS.ErrnoException | undefined)?.code ?? status;
  throw new Error(`${command} ${args.join(" ")} ended with ${end}:\n${stdout}\n${stderr}`);
}

/** `folder` must exist and be empty. */
export function packAndInstall(root: string, folder: string): PackedInstall {
  const env = userEnvironment();
  const built = join(folder, "built");
  const tarballs = join(folder, "tarballs");
  const installed = join(folder, "installed");
  for (const each of [tarballs, installed]) mkdirSync(each);
  run(process.execPath, [join(import.meta.dirname, "..", "build.ts"), "--root", root, "--out", built], folder, env);
  const manifests = readdirSync(built).map((name) => {
    return JSON.parse(readFileSync(join(built, name, "package.json"), "utf8")) as Manifest;
  });
  const packages = readdirSync(built).map((name) => join(built, name));
  run("npm", ["pack", "--pack-destination", tarballs, ...packages], folder, env);
  const version = manifests[0]?.version;
  const tarballOf = (name: string) => join(tarballs, `${name.replace("@", "").replace("/", "-")}-${version}.tgz`);
  const { [bringsNode]: optional, ...dependencies } = Object.fromEntries(
    manifests.map(({ name }) => [name, `file:${tarballOf(name)}`]),
  );
  const manifest = {
    private: true,
    scripts: { start: "claudemesh up" },
    dependencies,
    optionalDependencies: { [bringsNode]: optional },
  };
  writeFileSync(join(installed, "package.json"), JSON.stringify(manifest));
  run("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund"], installed, env);
  return { folder: installed, manifests, tarballOf, env };
}
