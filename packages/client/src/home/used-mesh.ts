// The mesh that a home's commands use where none is named: `claudemesh mesh use` writes it, in config.toml of the home
// itself, which is not the config.toml of a mesh.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isName } from "@claudemesh/protocol/messages/names";
import { parse as parseToml, TomlError, type TomlTable } from "smol-toml";
import { hasCode, LocalFileError, replacePrivateFile } from "./private-files.ts";
import { setTomlSection } from "./toml-section.ts";

export function homeConfigPath(home: string): string {
  return join(home, "config.toml");
}

/** Undefined where none was chosen. */
export function readUsedMesh(home: string): string | undefined {
  const path = homeConfigPath(home);
  const { home: section } = parse(readText(path), path);
  const mesh = typeof section === "object" ? (section as TomlTable).mesh : undefined;
  if (mesh === undefined || mesh === "") return undefined;
  if (typeof mesh === "string" && isName(mesh)) return mesh;
  throw new LocalFileError("unreadable", path, `${path} says a [home] mesh that is no mesh's name; correct it there.`);
}

/** With undefined the choice is removed. Everything else in the file stays; the home must exist. */
export function writeUsedMesh(home: string, mesh: string | undefined): void {
  const path = homeConfigPath(home);
  const text = readText(path);
  parse(text, path);
  replacePrivateFile(path, setTomlSection(text, "home", { mesh: mesh ?? "" }));
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (hasCode(error, "ENOENT") || hasCode(error, "ENOTDIR")) return "";
    throw error;
  }
}

function parse(text: string, path: string): TomlTable {
  try {
    return parseToml(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const where = `line ${error.line}, column ${error.column}`;
    throw new LocalFileError("unreadable", path, `${path} is not valid TOML at ${where}; correct it there.`, error);
  }
}
