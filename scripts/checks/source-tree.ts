// The files that belong to the repository, found by walking the folder, so that a check can compare what its tool
// examined with what is really there. No git here: a planted copy of the tree is checked the same way.
import { readdirSync } from "node:fs";
import { basename, join } from "node:path";

const ignoredFolders = new Set(["node_modules", ".git", "build", "coverage"]);
const ignoredPaths = new Set(["bench/out"]);

/** Paths of all files below `root`, relative to it, with forward slashes, sorted. */
export function listFiles(root: string): string[] {
  const found: string[] = [];
  const walk = (folder: string) => {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) {
        if (!ignoredFolders.has(entry.name) && !ignoredPaths.has(path)) walk(path);
      } else if (entry.isFile()) {
        found.push(path);
      }
    }
  };
  walk("");
  return found.sort();
}

export function isTypeScript(path: string): boolean {
  return /\.[mc]?tsx?$/.test(path);
}

export function isJavaScript(path: string): boolean {
  return /\.[mc]?jsx?$/.test(path);
}

export function isText(path: string): boolean {
  return /(?:^|\/)[^./]+$|\.(?:[mc]?[jt]sx?|jsonc?|md|sql|sh|toml|ya?ml|txt|css|html)$/.test(path) && !isLockfile(path);
}

function isLockfile(path: string): boolean {
  return basename(path) === "package-lock.json";
}
