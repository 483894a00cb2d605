// Whether the disk under a database has room. Writing a row of it does not show that: the row may fit into pages and into
// a log that are there already, while a new row would not.
import { randomFillSync } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { toFileError } from "./sqlite-error.ts";

const chunkBytes = 1_048_576;

/** Rejects with `disk_full` unless that many whole MiB can be written at `path`, where nothing is left. */
export async function proveRoom(path: string, mebibytes: number): Promise<void> {
  // Zeros would take no room on a file system that compresses.
  const chunk = randomFillSync(Buffer.allocUnsafe(chunkBytes));
  try {
    // A process that died here has left its file.
    await rm(path, { force: true });
    await writeFile(path, Array<Buffer>(mebibytes).fill(chunk), { flag: "wx", mode: 0o600 });
  } catch (error) {
    throw toFileError(error, path);
  } finally {
    await rm(path, { force: true });
  }
}
