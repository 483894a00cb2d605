// Reads a package's migrations from its folder of NNNN-name.sql files, beside the code in source and in a build.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { assertMigrationList, type Migration } from "./migrations.ts";

export type { Migration } from "./migrations.ts";

const filePattern = /^([0-9]{4})-([a-z0-9]+(?:-[a-z0-9]+)*)\.sql$/;

/** `folder` is `new URL("./migrations/", import.meta.url)`. A file that is not a migration is a mistake, and refused. */
export function loadMigrations(packageName: string, folder: URL): Migration[] {
  const base = folder.href.endsWith("/") ? folder : new URL(`${folder.href}/`);
  const migrations = readdirSync(base)
    .sort()
    .map((file) => loadMigration(packageName, base, file));
  assert(migrations.length > 0, `${base.href} holds no migration`);
  assertMigrationList(migrations);
  return migrations;
}

function loadMigration(packageName: string, base: URL, file: string): Migration {
  const match = filePattern.exec(file);
  assert(match !== null, `${file} in ${base.href} is not named NNNN-name.sql`);
  const [, number = "", name = ""] = match;
  return { package: packageName, number: Number(number), name, sql: readFileSync(new URL(file, base), "utf8") };
}
