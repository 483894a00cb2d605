// Reading a log that another process writes and rotates: its last lines, across the files that it was rotated into, and
// the lines that come from then on. Only whole lines are given.
import { closeSync, fstatSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { StringDecoder } from "node:string_decoder";

const chunkBytes = 65_536;

export type FollowedLog = {
  /** Lines that have come since the last call, from the old file first where the log was rotated. */
  readonly next: () => string[];
  readonly close: () => void;
};

/**
 * The last `count` whole lines, oldest first, and everything after them to follow. Undefined where there is no log. Older
 * files are `<path>.1`, `<path>.2` and so on.
 */
export function openLog(path: string, count: number): { lines: string[]; follow: FollowedLog } | undefined {
  const file = openIfPresent(path);
  if (file === undefined) return undefined;
  const follow = followFrom(path, file);
  let lines = follow.next();
  for (let number = 1; lines.length < count; number++) {
    const older = readIfPresent(`${path}.${number}`);
    if (older === undefined) break;
    lines = [...wholeLines(older), ...lines];
  }
  return { lines: lines.slice(Math.max(lines.length - count, 0)), follow };
}

function followFrom(path: string, first: number): FollowedLog {
  let file = first;
  let tail = new LineTail();
  const drain = () => tail.take(readOn(file));
  return {
    next: () => {
      const lines = drain();
      // Under its name stands another file now: what this one still got comes first, then the new one from its start.
      while (!isSameFile(path, file)) {
        const fresh = openIfPresent(path);
        if (fresh === undefined) break;
        lines.push(...drain());
        closeSync(file);
        file = fresh;
        tail = new LineTail();
        lines.push(...drain());
      }
      return lines;
    },
    close: () => closeSync(file),
  };
}

/** Bytes into whole lines; what is no whole line yet waits for its end. */
class LineTail {
  readonly #decoder = new StringDecoder("utf8");
  #rest = "";

  take(chunks: readonly Buffer[]): string[] {
    for (const chunk of chunks) this.#rest += this.#decoder.write(chunk);
    const lines = this.#rest.split("\n");
    this.#rest = lines.pop() ?? "";
    return lines;
  }
}

/** From where the last read ended to the present end. */
function readOn(file: number): Buffer[] {
  const chunks: Buffer[] = [];
  for (;;) {
    const chunk = Buffer.allocUnsafe(chunkBytes);
    const bytes = readSync(file, chunk, 0, chunkBytes, null);
    if (bytes === 0) return chunks;
    chunks.push(chunk.subarray(0, bytes));
  }
}

function isSameFile(path: string, file: number): boolean {
  const there = statSync(path, { throwIfNoEntry: false });
  if (there === undefined) return false;
  const { dev, ino } = fstatSync(file);
  return there.dev === dev && there.ino === ino;
}

function wholeLines(text: string): string[] {
  const lines = text.split("\n");
  lines.pop();
  return lines;
}

function openIfPresent(path: string): number | undefined {
  return unlessMissing(() => openSync(path, "r"));
}

function readIfPresent(path: string): string | undefined {
  return unlessMissing(() => readFileSync(path, "utf8"));
}

function unlessMissing<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
