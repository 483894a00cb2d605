// The locked-packages check: what `npm ci` installs is fixed by hash, runs nothing of its own while it is installed, and
// brings no Node that lacks a security release. docs/releases.md says how the lock file is changed.
// Why: docs/decisions/0147.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Check, CheckReport } from "./check-report.ts";

interface LockedPackage {
  readonly name?: string;
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly link?: boolean;
  readonly hasInstallScript?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

type Packages = Readonly<Record<string, LockedPackage>>;

/** The last release of Node 24 that its changelog calls a security release. */
const oldestNode = "24.18.1";

function nameOf(path: string, locked: LockedPackage): string {
  return locked.name ?? path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
}

function isOlder(version: string, than: string): boolean {
  return version.localeCompare(than, "en", { numeric: true }) < 0;
}

function judge(name: string, locked: LockedPackage, scripts: Readonly<Record<string, unknown>>): string[] {
  const problems: string[] = [];
  const { version = "without a version", integrity = "", resolved, hasInstallScript = false } = locked;
  if (!/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity)) {
    problems.push("has no integrity, so that nobody can tell it from another; choose a version that the registry has");
  }
  if (resolved !== undefined && /^\w+:/.test(resolved)) {
    problems.push(`names the address ${resolved}; .npmrc keeps addresses out of the lock file`);
  }
  if (hasInstallScript && !(name in scripts)) {
    problems.push("runs a script when it is installed; do without it, or decide in allowScripts of package.json");
  }
  if (/^node-(?:bin-)?(?:linux|darwin)-/.test(name) && isOlder(version, oldestNode)) {
    problems.push(`is a Node without the security releases up to ${oldestNode}`);
  }
  return problems.map((problem) => `${name} ${version} ${problem}`);
}

/** What a package asks for and the file lacks, such as builds for other platforms: `npm ci` refuses the whole file there. */
function findMissing(packages: Packages): string[] {
  return Object.entries(packages).flatMap(([path, { dependencies, devDependencies, optionalDependencies }]) =>
    Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies })
      .filter((name) => !isLocked(packages, path, name))
      .map(
        (name) => `${name} is asked for by ${path || "the workspace"} and missing from the lock file; run npm install`,
      ),
  );
}

/** Looked for as Node looks for it: beside the package and in every folder above. */
function isLocked(packages: Packages, from: string, name: string): boolean {
  const parts = from === "" ? [] : from.split("/");
  return Array.from({ length: parts.length + 1 }, (_, above) => parts.slice(0, parts.length - above)).some((folder) =>
    Object.hasOwn(packages, [...folder, "node_modules", name].join("/")),
  );
}

async function run(root: string): Promise<CheckReport> {
  const lockfile = join(root, "package-lock.json");
  if (!existsSync(lockfile)) return { examined: 0, unit: "packages", problems: ["there is no package-lock.json"] };
  const { packages } = JSON.parse(readFileSync(lockfile, "utf8")) as { packages: Packages };
  const { allowScripts = {} } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    allowScripts?: Record<string, unknown>;
  };
  const installed = Object.entries(packages)
    .filter(([path, { link }]) => path.includes("node_modules/") && link !== true)
    .map(([path, locked]) => [nameOf(path, locked), locked] as const);
  const problems = installed.flatMap(([name, locked]) => judge(name, locked, allowScripts));
  problems.push(...findMissing(packages));
  for (const name of Object.keys(allowScripts)) {
    if (!installed.some(([other, { hasInstallScript }]) => other === name && hasInstallScript === true)) {
      problems.push(`${name} is in allowScripts of package.json and has no script to decide about`);
    }
  }
  return { examined: installed.length, unit: "packages", problems };
}

export const lockedPackagesCheck: Check = {
  name: "locked-packages",
  proves:
    "every package that is asked for is locked, has a hash and no address, its scripts are decided on, and Node is no old one",
  run,
};
