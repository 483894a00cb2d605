// `npm run build`: makes build/<package>/ ready to publish from each package's source, since Node strips no types
// inside node_modules. JavaScript and declarations, migrations, vectors and bin go in; tests stay out. A program, which
// is run and not imported, is bundled with all that it needs.
// Developing and testing need none of this.
import { cpSync, existsSync, globSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { describeFailure, runTool } from "./checks/run-tool.ts";
import { listFiles } from "./checks/source-tree.ts";
import { type BundledPackage, bundledAssetPath, bundleProgram } from "./packaging/bundle.ts";
import { findStrayReference, finishCode, finishDeclaration } from "./packaging/emitted-code.ts";
import { collectLicenses } from "./packaging/licenses.ts";
import {
  builtPath,
  isProgram,
  isTestCode,
  listTargets,
  type Manifest,
  publishManifest,
  withoutDependencies,
} from "./packaging/manifest.ts";

function listPackages(root: string): BundledPackage[] {
  return readdirSync(join(root, "packages"))
    .map((name) => ({ name, folder: join(root, "packages", name) }))
    .filter(({ folder }) => existsSync(join(folder, "package.json")))
    .map((each) => ({ ...each, manifest: readManifest(each.folder) }))
    .filter(({ manifest }) => manifest.private !== true);
}

function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
}

/** Compiles all packages at once into `emitted`, one folder per package. */
async function compile(root: string, emitted: string, packages: readonly BundledPackage[]): Promise<void> {
  const project = join(emitted, "tsconfig.json");
  const sources = packages.flatMap(({ folder }) =>
    listFiles(folder)
      .filter((path) => /^(?:src|vectors)\/.*(?<!\.d)\.ts$/.test(path) && !isTestCode(path))
      .map((path) => join(folder, path)),
  );
  const compilerOptions = {
    noEmit: false,
    declaration: true,
    rewriteRelativeImportExtensions: true,
    rootDir: join(root, "packages"),
    outDir: emitted,
    typeRoots: [join(root, "node_modules", "@types")],
  };
  mkdirSync(emitted, { recursive: true });
  writeFileSync(
    project,
    JSON.stringify({ extends: join(root, "tsconfig.json"), compilerOptions, files: sources, include: [] }),
  );
  const output = await runTool(root, "tsc", ["-p", project, "--pretty", "false"]);
  if (output.exitCode !== 0) throw new Error(describeFailure("tsc", output));
}

/** The text of an emitted file as it is published. */
function finish(path: string, text: string): string {
  const finished = path.endsWith(".d.ts") ? finishDeclaration(text) : finishCode(text);
  refuseStrayReference(path, finished);
  return finished;
}

function refuseStrayReference(path: string, code: string): void {
  const stray = findStrayReference(code);
  if (stray === undefined) return;
  throw new Error(`${path} refers to ${stray} at run time; write new URL("${stray}", import.meta.url)`);
}

/** Writes the code of a package, file by file. */
function writeModules(source: BundledPackage, emitted: string, target: string): Manifest {
  // A package may hold no code and only ask for others.
  for (const path of existsSync(emitted) ? listFiles(emitted) : []) {
    const builtFile = join(target, builtPath(path));
    mkdirSync(dirname(builtFile), { recursive: true });
    writeFileSync(builtFile, finish(`${source.name}/${path}`, readFileSync(join(emitted, path), "utf8")));
  }
  return source.manifest;
}

/** Writes the code of a program and of what it imports, with the files that this code reads and all licences. */
async function writeProgram(
  program: BundledPackage,
  packages: readonly BundledPackage[],
  target: string,
): Promise<Manifest> {
  const dist = join(target, "dist");
  const { chunks, packages: bundled, dependencies } = await bundleProgram(program, packages, dist);
  for (const [module, { code }] of chunks.flatMap(({ modules }) => Object.entries(modules))) {
    if (code !== null && !module.includes("/node_modules/")) refuseStrayReference(module, code);
  }
  for (const owner of bundled) {
    for (const path of listFiles(owner.folder)) {
      if (/^src\/.*(?<!\.ts)$/.test(path)) cpSync(join(owner.folder, path), join(dist, bundledAssetPath(owner, path)));
    }
  }
  writeFileSync(join(target, "THIRD-PARTY-LICENSES.txt"), collectLicenses(dependencies));
  return withoutDependencies(program.manifest);
}

function finishPackage(source: BundledPackage, manifest: Manifest, target: string, root: string): number {
  const kept = isProgram(manifest) ? /^bin\// : /^(?:src|vectors|bin)\//;
  for (const path of listFiles(source.folder)) {
    if (kept.test(path) && !path.endsWith(".ts")) cpSync(join(source.folder, path), join(target, builtPath(path)));
  }
  for (const document of ["README.md", "LICENSE"]) {
    const found = [source.folder, root].map((folder) => join(folder, document)).find((path) => existsSync(path));
    if (found !== undefined) cpSync(found, join(target, document));
  }
  writeFileSync(join(target, "package.json"), `${JSON.stringify(publishManifest(manifest), undefined, 2)}\n`);
  refuseMissingTargets(target);
  return listFiles(target).length;
}

/** A package whose exports or bin lead nowhere installs well and fails at its user's. */
function refuseMissingTargets(target: string): void {
  for (const path of listTargets(readManifest(target))) {
    if (globSync(path.replaceAll("*", "**/*"), { cwd: target }).length === 0) {
      throw new Error(`${join(target, "package.json")} names ${path}, which was not built`);
    }
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { root: { type: "string" }, out: { type: "string" } } });
  const root = resolve(values.root ?? dirname(import.meta.dirname));
  const out = resolve(values.out ?? join(root, "build"));
  const packages = listPackages(root);
  if (packages.length === 0) throw new Error(`${join(root, "packages")} holds nothing to build`);
  const emitted = join(out, ".emitted");
  rmSync(emitted, { recursive: true, force: true });
  await compile(root, emitted, packages);
  for (const each of packages) {
    const target = join(out, each.name);
    rmSync(target, { recursive: true, force: true });
    const manifest = isProgram(each.manifest)
      ? await writeProgram(each, packages, target)
      : writeModules(each, join(emitted, each.name), target);
    const count = finishPackage(each, manifest, target, root);
    console.log(`${each.manifest.name} ${each.manifest.version}: ${count} files in ${target}`);
  }
  rmSync(emitted, { recursive: true });
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
