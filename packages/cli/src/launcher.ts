// Where this program's own launcher is, and what a user types to start it again: what starts a daemon in the background,
// or from a service, and what a text tells the user to run must be this very installation.
// Why: docs/decisions/0145.
import { realpathSync } from "node:fs";
import { delimiter, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export function launcherPath(): string {
  return fileURLToPath(new URL("../bin/claudemesh.js", import.meta.url));
}

/** npx keeps what it fetched in a cache of its own, which npm may empty at any time. */
export function isFetchedByNpx(launcher = launcherPath()): boolean {
  return /[/]_npx[/]/.test(launcher);
}

/**
 * How another terminal in the folder `cwd` starts this installation. `path` is this process's PATH; npm and npx put folders
 * of packages in front of it, which no other terminal has.
 */
export function typedCommand(path: string | undefined, cwd: string, launcher = launcherPath()): string {
  const isThis = (candidate: string) => resolveLink(candidate) === resolveLink(launcher);
  const lasting = (path ?? "").split(delimiter).filter((each) => each !== "" && !/node_modules\/\.bin\/?$/.test(each));
  if (lasting.some((each) => isThis(join(each, "claudemesh")))) return "claudemesh";
  if (
    isFetchedByNpx(launcher) ||
    foldersAbove(cwd).some((each) => isThis(join(each, "node_modules/.bin/claudemesh")))
  ) {
    return "npx claudemesh";
  }
  return /^[\w./-]+$/.test(launcher) ? launcher : `'${launcher.replaceAll("'", "'\\''")}'`;
}

function resolveLink(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function foldersAbove(folder: string): string[] {
  const here = resolve(folder);
  const above = dirname(here);
  return above === here ? [here] : [here, ...foldersAbove(above)];
}
