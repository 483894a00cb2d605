// A disk of its own that is small enough to be filled: a file system in memory, mounted for as long as this process
// lives, however that ends. Only root may mount.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";

// As for private servers: the pipe closes with us, and then the mount goes.
const keeper =
  'mount -t tmpfs -o "size=$2,mode=1777" tmpfs "$1" || exit 1; echo mounted; cat >/dev/null; umount -l "$1"';

const fillerSizes = [1_048_576, 65_536, 4_096] as const;

export class SmallDisk {
  readonly folder: string;
  readonly unmount: () => Promise<void>;
  readonly #filler: string;

  private constructor(folder: string, unmount: () => Promise<void>) {
    this.folder = folder;
    this.unmount = unmount;
    this.#filler = join(folder, "filler");
  }

  /** Undefined where this process may not mount. */
  static async mount(folder: string, sizeBytes: number): Promise<SmallDisk | undefined> {
    mkdirSync(folder);
    const child = spawn("/bin/sh", ["-c", keeper, "sh", folder, String(sizeBytes)], {
      stdio: ["pipe", "pipe", "ignore"],
    });
    const ended = once(child, "exit");
    const mounted = await Promise.race([once(child.stdout, "data").then(() => true), ended.then(() => false)]);
    if (!mounted) return undefined;
    return new SmallDisk(folder, async () => {
      child.stdin.end();
      await ended;
    });
  }

  /** Until nothing more can be written: ENOSPC for every process. */
  fill(): void {
    const file = openSync(this.#filler, "a");
    try {
      for (const size of fillerSizes) writeUntilFull(file, Buffer.alloc(size));
    } finally {
      closeSync(file);
    }
  }

  free(): void {
    rmSync(this.#filler, { force: true });
  }
}

function writeUntilFull(file: number, bytes: Buffer): void {
  try {
    while (writeSync(file, bytes) === bytes.length);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
  }
}
