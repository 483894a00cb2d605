// Makes a program's published code out of few files: its own and those of the workspace packages it imports, which
// Node would otherwise find and link one by one at every start. Dependencies stay outside.
import { readFileSync } from "node:fs";
import { dirname, join, posix, relative, resolve } from "node:path";
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
}

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
    external: (id) => !/^[./]|^@claudemesh\//.test(id),
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
      sourcemap: true,
      sourcemapExcludeSources: true,
      // The same map wherever it is built.
      sourcemapPathTransform: (source, map) => relative(root, resolve(dirname(map), source)),
    });
    const chunks = output.filter((each) => each.type === "chunk");
    const modules = chunks.flatMap(({ moduleIds }) => moduleIds);
    return { chunks, packages: packages.filter((each) => modules.some((module) => ownerOf(module) === each)) };
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
      return readFileSync(module, "utf8").replace(fileUrl, (_, path: string) => {
        const place = seenFromChunk(program, owner, posix.join(here, path));
        return `new URL("${place}", import.meta.url)`;
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
