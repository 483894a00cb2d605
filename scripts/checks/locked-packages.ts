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
}

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
  if (!/^sha512-/.test(integrity)) {
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

async function run(root: string): Promise<CheckReport> {
  const lockfile = join(root, "package-lock.json");
  if (!existsSync(lockfile)) return { examined: 0, unit: "packages", problems: ["there is no package-lock.json"] };
  const { packages } = JSON.parse(readFileSync(lockfile, "utf8")) as { packages: Record<string, LockedPackage> };
  const { allowScripts = {} } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    allowScripts?: Record<string, unknown>;
  };
  const installed = Object.entries(packages)
    .filter(([path, { link }]) => path.includes("node_modules/") && link !== true)
    .map(([path, locked]) => [nameOf(path, locked), locked] as const);
  const problems = installed.flatMap(([name, locked]) => judge(name, locked, allowScripts));
  for (const name of Object.keys(allowScripts)) {
    if (!installed.some(([other, { hasInstallScript }]) => other === name && hasInstallScript === true)) {
      problems.push(`${name} is in allowScripts of package.json and has no script to decide about`);
    }
  }
  return { examined: installed.length, unit: "packages", problems };
}

export const lockedPackagesCheck: Check = {
  name: "locked-packages",
  proves: "every locked package has a hash and no address, its scripts are decided on, and Node is no old one",
  run,
};
