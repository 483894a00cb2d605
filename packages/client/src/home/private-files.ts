// Files that belong to one user alone: created with mode 0600 whatever the umask, durable once created, and refused
// when another user could have read or written them. The content of the files is not checked here; home.ts creates
// folders.
import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";

export type LocalFileProblem =
  | "missing"
  | "exists"
  /** Others may read it, another user owns it, or it is a link. */
  | "unsafe"
  | "unreadable";

/** A file on this machine has a problem. The message names the file and what to do about it. */
export class LocalFileError extends Error {
  override readonly name = "LocalFileError";
  readonly problem: LocalFileProblem;
  readonly path: string;

  constructor(problem: LocalFileProblem, path: string, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.problem = problem;
    this.path = path;
  }
}

/** Creates a file that must not exist yet. It appears under its name complete and durable, or not at all. */
export function createPrivateFile(path: string, text: string): void {
  const draft = writeDraft(path, text);
  try {
    // Unlike a rename, a link never replaces an existing file.
    linkSync(draft, path);
  } catch (error) {
    if (!hasCode(error, "EEXIST")) throw error;
    throw new LocalFileError("exists", path, `${path} exists already and is not overwritten.`, error);
  } finally {
    rmSync(draft, { force: true });
  }
  fsyncDir(dirname(path));
}

/** Replaces a file atomically: a reader finds the old text or the new one, complete. */
export function replacePrivateFile(path: string, text: string): void {
  const draft = writeDraft(path, text);
  try {
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
  fsyncDir(dirname(path));
}

/** The text of a file that only its owner, this user, can have read or written. */
export function readPrivateFile(path: string): string {
  const file = openPrivately(path, "file");
  try {
    const { mode } = checkOurs(file, path, "file");
    if ((mode & 0o077) !== 0) {
      const actualMode = (mode & 0o777).toString(8).padStart(4, "0");
      const message = `${path} has mode ${actualMode}, so others may have read it; if you trust it still: chmod 600 ${path}`;
      throw new LocalFileError("unsafe", path, message);
    }
    return readFileSync(file, "utf8");
  } finally {
    closeSync(file);
  }
}

function writeDraft(path: string, text: string): string {
  const draft = `${path}.${randomBytes(8).toString("hex")}.tmp`;
  const file = openSync(draft, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
  try {
    fchmodSync(file, 0o600);
    writeFileSync(file, text);
    fsyncSync(file);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  } finally {
    closeSync(file);
  }
  return draft;
}

type Kind = "file" | "folder";

/** Opens the file of this very name for reading, and never the target of a link. */
export function openPrivately(path: string, kind: Kind): number {
  // Without O_NONBLOCK, a pipe of this name would make us wait for its other end.
  const flags = kind === "folder" ? constants.O_DIRECTORY : constants.O_NONBLOCK;
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | flags);
  } catch (error) {
    if (hasCode(error, "ENOENT")) throw new LocalFileError("missing", path, `There is no ${path}.`, error);
    if (hasCode(error, "ELOOP") || hasCode(error, "ENOTDIR")) throw notA(kind, path, error);
    if (hasCode(error, "EACCES")) {
      throw new LocalFileError("unreadable", path, `${path} cannot be opened; check who owns it and its mode.`, error);
    }
    throw error;
  }
}

/** Throws unless the open file has the kind that is asked for and belongs to this user. */
export function checkOurs(descriptor: number, path: string, kind: Kind): Stats {
  const stat = fstatSync(descriptor);
  if (kind === "file" ? !stat.isFile() : !stat.isDirectory()) throw notA(kind, path);
  const uid = process.getuid?.();
  if (uid !== undefined && stat.uid !== uid) {
    const message = `${path} belongs to user ${stat.uid}, not to you (${uid}); use another CLAUDEMESH_HOME, or chown it.`;
    throw new LocalFileError("unsafe", path, message);
  }
  return stat;
}

function notA(kind: Kind, path: string, cause?: unknown): LocalFileError {
  const message = `${path} must be a ${kind} of its own, not a symbolic link or something else; move it away.`;
  return new LocalFileError("unsafe", path, message, cause);
}

/** Makes the names in a folder durable. */
export function fsyncDir(path: string): void {
  const dir = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fsyncSync(dir);
  } finally {
    closeSync(dir);
  }
}

export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === code;
}
