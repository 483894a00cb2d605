// The licences of the code that a bundle carries: they ask to be handed on with it.
// Why: docs/decisions/0146.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** One text for these folders of installed packages. Throws where one says nothing of its licence. */
export function collectLicenses(folders: readonly string[]): string {
  return folders.map((folder) => describeLicense(folder)).join(`\n${"-".repeat(80)}\n\n`);
}

function describeLicense(folder: string): string {
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Readonly<Record<string, unknown>>;
  const { name, version, license } = manifest;
  const file = readdirSync(folder).find((each) => /^(?:licen[cs]e|copying)(?:[-.](?:md|txt|mit))?$/i.test(each));
  if (file === undefined && typeof license !== "string")
    throw new Error(`${folder} does not say under what licence it is`);
  const text = file === undefined ? `Licence: ${license as string}` : readFileSync(join(folder, file), "utf8").trim();
  return `${name} ${version}\n\n${text}\n`;
}
