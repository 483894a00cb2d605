// The product as it is published: built JavaScript beside the dependencies of this workspace, with a launcher and a
// compile cache of its own. Nothing is fetched.
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");

export type BuiltProduct = { readonly launcher: string; readonly cacheHome: string };

export function buildProduct(folder: string): BuiltProduct {
  const built = join(folder, "built");
  const args = [join(root, "scripts/build.ts"), "--root", root, "--out", built];
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`the build failed:\n${stderr}`);
  const modules = join(folder, "node_modules");
  mkdirSync(join(modules, "@claudemesh"), { recursive: true });
  for (const name of readdirSync(join(root, "node_modules"))) {
    if (name !== "@claudemesh") symlinkSync(join(root, "node_modules", name), join(modules, name));
  }
  for (const name of readdirSync(built)) symlinkSync(join(built, name), join(modules, "@claudemesh", name));
  return { launcher: join(built, "cli/bin/claudemesh.js"), cacheHome: join(folder, "cache") };
}
