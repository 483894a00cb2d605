// Whether the disk under a database has room. Writing a row of it does not show that: the row may fit into pages and into
// a log that are there already, while a new row would not. The file system is asked and nothing is written, because callers
// without a token may cause this question.
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { StorageError } from "../storage-error.ts";
import { toFileError } from "./sqlite-error.ts";

/** Rejects with `disk_full` unless so many bytes are free where the database is. */
export async function proveRoom(databasePath: string, bytes: number): Promise<void> {
  const folder = dirname(databasePath);
  const { bavail, bsize } = await statfs(folder).catch((error: unknown) => {
    throw toFileError(error, folder);
  });
  if (bavail * bsize < bytes) throw new StorageError("disk_full", `${folder}: less than ${bytes} bytes are free`);
}
