// daemon.log: JSON lines in a file of bounded size, readable by its owner alone. When it is full it becomes
// daemon.log.1, and the oldest one goes. A disk that refuses a line must not stop the daemon, so it is counted instead.
import { closeSync, constants, fchmodSync, fstatSync, openSync, renameSync, writeSync } from "node:fs";

export type LogFileOptions = {
  readonly path: string;
  readonly maxBytes?: number;
  /** Older files beside the current one. */
  readonly keep?: number;
};

export type LogFile = {
  readonly write: (line: string) => void;
  readonly close: () => void;
};

const defaultMaxBytes = 10 * 1_048_576;
const defaultKeep = 2;

export function openLogFile({ path, maxBytes = defaultMaxBytes, keep = defaultKeep }: LogFileOptions): LogFile {
  let file = openPrivateAppend(path);
  let bytes = fstatSync(file).size;
  let lost = 0;
  let closed = false;

  // Nothing is given up before there is a file to write to: the number of a closed one soon stands for another file, such as a
  // database, and a line written to it, or a second close, would harm that.
  const rotate = () => {
    const next = `${path}.next`;
    const fresh = openPrivateAppend(next);
    try {
      for (let number = keep; number > 0; number--) {
        const from = number === 1 ? path : `${path}.${number - 1}`;
        renameIfPresent(from, `${path}.${number}`);
      }
      renameSync(next, path);
    } catch (error) {
      closeSync(fresh);
      throw error;
    }
    closeSync(file);
    file = fresh;
    bytes = fstatSync(file).size;
  };
  const append = (line: string) => {
    if (bytes > 0 && bytes + line.length > maxBytes) rotate();
    bytes += writeSync(file, line);
  };
  return {
    write: (line) => {
      if (closed) return;
      try {
        if (lost > 0) {
          append(`${JSON.stringify({ level: 40, event: "log_lines_lost", lines: lost })}\n`);
          lost = 0;
        }
        append(line);
      } catch (error) {
        if (!(error instanceof Error && "code" in error)) throw error;
        lost++;
      }
    },
    close: () => {
      if (closed) return;
      closed = true;
      closeSync(file);
    },
  };
}

function openPrivateAppend(path: string): number {
  const file = openSync(
    path,
    constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW,
    0o600,
  );
  fchmodSync(file, 0o600);
  return file;
}

function renameIfPresent(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!(error instanceof Error && (error as NodeJS.ErrnoException).code === "ENOENT")) throw error;
  }
}
