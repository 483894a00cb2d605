// The token that lets its holder create meshes: made once, kept in a file that only its owner can read.
import { randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { mintSecret } from "@claudemesh/members/credentials";

export function ensureAdminToken(path: string): string {
  if (!existsSync(path)) createToken(path);
  if ((statSync(path).mode & 0o077) !== 0) {
    throw new Error(`${path} can be read by others; run: chmod 600 ${path}, and replace it if it may have leaked.`);
  }
  const token = readFileSync(path, "utf8").trim();
  if (token === "") throw new Error(`${path} is empty; remove it and start again to make a new admin token.`);
  return token;
}

// The file appears whole: brokers that start at once in one folder share it, and none may find it empty.
function createToken(path: string): void {
  const draft = `${path}.${randomBytes(6).toString("hex")}`;
  try {
    const file = openSync(draft, "wx", 0o600);
    try {
      writeSync(file, `${mintSecret("cma")}\n`);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}
