// Makes a program's published code out of few files: its own, those of the workspace packages it imports and those of its
// dependencies, which Node would otherwise find and link one by one at every start. So what is installed is what was tried.
// Why: docs/decisions/0046, docs/decisions/0146.
import { readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join, posix, relative } from "node:path";
import { type OutputChunk, type Plugin, rolldown } from "rolldown";
import { builtPath, type Manifest } from "./manifest.ts";

export interface BundledPackage {
  readonly folder: string;
  readonly name: string;
  readonly manifest: Manifest;
}

export interface Bundle {
  readonly chunks: readonly OutputChunk[];
  /** Whose code is in it. */
  readonly packages: readonly BundledPackage[];
  /** The folders of the dependencies whose code is in it, sorted. */
  readonly dependencies: readonly string[];
}

/** Faster parts in C++ that dependencies look for and do without; none of them is installed. */
const absent = new Set(["bufferutil", "utf-8-validate", "pg-native"]);

const dependencyFolder = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//;

/** What a module loads only when it needs it, and at once; the bundler follows `require`. */
const lateLoad = /createRequire\(import\.meta\.url\)\((["'][^"']+["'])\)/g;

const fileUrl = /new URL\(\s*["'](\.{1,2}\/[^"']*)["']\s*,\s*import\.meta\.url\s*,?\s*\)/g;

/** Writes the chunks of `program`, whose entry is `src/main.ts`, into `target`. All of them lie beside one another. */
export async function bundleProgram(
  program: BundledPackage,
  packages: readonly BundledPackage[],
  target: string,
): Promise<Bundle> {
  const ownerOf = (module: string) => packages.find(({ folder }) => module.startsWith(join(folder, "src/")));
  const root = dirname(dirname(program.folder));
  const bundle = await rolldown({
    cwd: root,
    input: { main: join(program.folder, "src", "main.ts") },
    platform: "node",
    external: (id) => isBuiltin(id) || absent.has(id),
    plugins: [followFiles(program, ownerOf)],
    onLog: (level, log) => {
      if (level === "warn") throw new Error(log.message);
    },
  });
  try {
    const { output } = await bundle.write({
      dir: target,
      format: "esm",
      entryFileNames: "[name].js",
      chunkFileNames: "[name]-[hash].js",
    });
    const chunks = output.filter((each) => each.type === "chunk");
    const modules = chunks.flatMap(({ moduleIds }) => moduleIds);
    return {
      chunks,
      packages: packages.filter((each) => modules.some((module) => ownerOf(module) === each)),
      dependencies: [...new Set(modules.flatMap((module) => dependencyFolder.exec(module)?.[1] ?? []))].sort(),
    };
  } finally {
    await bundle.close();
  }
}

/** Where a bundled package's files that are no code are, seen from the chunks. */
export function bundledAssetPath(owner: Pick<BundledPackage, "name">, path: string): string {
  return `${owner.name}/${path.replace(/^src\//, "")}`;
}

/** A module that names a file beside itself goes on finding it from the chunk that its code is in. */
function followFiles(program: BundledPackage, ownerOf: (module: string) => BundledPackage | undefined): Plugin {
  return {
    name: "follow-files",
    load: (module) => {
      const owner = ownerOf(module);
      if (owner === undefined) return undefined;
      const here = dirname(relative(owner.folder, module));
      const code = readFileSync(module, "utf8").replace(lateLoad, "require($1)");
      return code.replace(fileUrl, (_, path: string) => {
        const target = seenFromChunk(program, owner, posix.join(here, path));
        return `new URL("${target}", import.meta.url)`;
      });
    },
  };
}

function seenFromChunk(program: BundledPackage, owner: BundledPackage, path: string): string {
  if (path.startsWith("src/")) return `./${bundledAssetPath(owner, path)}`;
  const sameVersion = owner.manifest.version === program.manifest.version;
  // All packages are released together, so that the program's version is theirs.
  if (owner === program || (path === "package.json" && sameVersion)) return `../${builtPath(path)}`;
  throw new Error(
    `${owner.manifest.name} names its file ${path}, which is not in the program ${program.manifest.name}`,
  );
}
