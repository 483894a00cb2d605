// Turns the package.json of a source package, which points at TypeScript, into the one that is published, which points
// at what was built. Pure; scripts/build.ts reads and writes the files.
// Why: docs/decisions/0145.
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly private?: boolean;
  readonly exports?: ExportTarget;
  readonly bin?: string | Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

type ExportTarget = string | null | { readonly [key: string]: ExportTarget };

/** Fields that only mean something inside this workspace. */
const unpublishedFields = new Set(["private", "scripts", "devDependencies", "exports"]);

/** What a published package says unless its own manifest does. In the workspace the Node that npm runs on may be older. */
const engines = { node: ">=24" };

/** Tests, the suites that several backends run and what tests share: they need the workspace and are not published. */
export function isTestCode(path: string): boolean {
  return /\.test\.[mc]?ts$/.test(path) || /(?:^|\/)src\/(?:.*\/)?(?:[^/]+\.suite\.ts$|(?:suites|testing)\/)/.test(path);
}

/** Where a file of the source package is in the built one: `src/` becomes `dist/`, TypeScript becomes JavaScript. */
export function builtPath(path: string): string {
  return path.replace(/^(\.\/)?src\//, "$1dist/").replace(/(?<!\.d)\.ts$/, ".js");
}

function publishTarget(target: ExportTarget): ExportTarget | undefined {
  if (target === null) return null;
  if (typeof target === "string") {
    if (isTestCode(target)) return undefined;
    if (!target.endsWith(".ts")) return builtPath(target);
    return { types: builtPath(target).replace(/\.js$/, ".d.ts"), default: builtPath(target) };
  }
  const published = Object.entries(target).flatMap(([key, value]) => {
    const each = publishTarget(value);
    return each === undefined ? [] : [[key, each] as const];
  });
  return Object.fromEntries(published);
}

export function publishManifest(source: Manifest): Manifest {
  const kept = Object.entries(source).filter(([field]) => !unpublishedFields.has(field));
  const exports = source.exports === undefined ? undefined : publishTarget(source.exports);
  const published = { engines, ...(Object.fromEntries(kept) as Manifest) };
  return exports === undefined ? published : { ...published, exports };
}

/** Something to run that cannot be imported. */
export function isProgram({ bin, exports }: Manifest): boolean {
  return bin !== undefined && exports === undefined;
}

/** The manifest of a program that carries the code of all that it needs, and so asks npm for none of it. */
export function withoutDependencies(program: Manifest): Manifest {
  return Object.fromEntries(Object.entries(program).filter(([field]) => field !== "dependencies")) as Manifest;
}

/** Every path that `exports` and `bin` name, patterns included. */
export function listTargets(manifest: Manifest): string[] {
  const collect = (target: ExportTarget | undefined): string[] => {
    if (target === undefined || target === null) return [];
    return typeof target === "string" ? [target] : Object.values(target).flatMap((each) => collect(each));
  };
  return [...collect(manifest.exports), ...collect(manifest.bin)];
}
