// The token that lets its holder create meshes: made once, kept in a file that only its owner can read.
import { closeSync, fsyncSync, openSync, readFileSync, statSync, writeSync } from "node:fs";
import { mintSecret } from "@claudemesh/members/credentials";

export function adminTokenPath(storePath: string): string {
  return `${storePath}.admin-token`;
}

export function ensureAdminToken(path: string): string {
  try {
    const file = openSync(path, "wx", 0o600);
    try {
      const token = mintSecret("cma");
      writeSync(file, `${token}\n`);
      fsyncSync(file);
      return token;
    } finally {
      closeSync(file);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  if ((statSync(path).mode & 0o077) !== 0) {
    throw new Error(`${path} can be read by others; run: chmod 600 ${path}, and replace it if it may have leaked.`);
  }
  const token = readFileSync(path, "utf8").trim();
  if (token === "") throw new Error(`${path} is empty; remove it and start again to make a new admin token.`);
  return token;
}
