// A secret of one line in a file that only its owner can read: made once, by whichever of several starts comes first.
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
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { syncFolder } from "@claudemesh/storage/private-file";

/** The secret that stands in the file, which is made where it is missing, and is on disk by its name when this returns. */
export function ensureSecretFile(path: string, mint: () => string, flushFolder = syncFolder): string {
  if (!existsSync(path)) {
    createSecretFile(path, mint());
    // A key that a power cut takes away again would be followed by another one, which no home believes.
    flushFolder(dirname(path));
  }
  if ((statSync(path).mode & 0o077) !== 0) {
    throw new Error(`${path} can be read by others; run: chmod 600 ${path}, and replace it if it may have leaked.`);
  }
  return readFileSync(path, "utf8").trim();
}

// The file appears whole: brokers that start at once in one folder share it, and none may find it empty.
function createSecretFile(path: string, secret: string): void {
  const draft = `${path}.${randomBytes(6).toString("hex")}`;
  try {
    const file = openSync(draft, "wx", 0o600);
    try {
      writeFileSync(file, `${secret}\n`);
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
