// Starting storage-process.ts from a test, reading its lines, and temporary folders for what it works on.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

const script = fileURLToPath(new URL("./storage-process.ts", import.meta.url));

export interface StorageProcess {
  child: ChildProcess;
  /** Complete lines so far. */
  lines: string[];
  /** Resolves when the line is printed, and fails if the process ends first. */
  printed(line: string): Promise<void>;
  /** Resolves, after all output is read, with the code or the signal. */
  ended: Promise<number | string>;
}

/** A folder that is gone after the test. */
export function makeTemporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "claudemesh-storage-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** `wrap` puts another program before Node: a shell with limits, or a tracer. */
export function startStorageProcess(role: string, path: string, wrap: string[] = []): StorageProcess {
  const [command = "", ...commandArguments] = [...wrap, process.execPath, "--expose-gc", script, role, path];
  const child = spawn(command, commandArguments, { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  const lines: string[] = [];
  const reader = createInterface({ input: child.stdout });
  reader.on("line", (line) => lines.push(line));
  const ended = Promise.all([once(child, "exit"), once(reader, "close")]).then(
    ([[code, signal]]) => (code ?? signal) as number | string,
  );
  return { child, lines, printed: (line) => waitForLine(lines, reader, ended, line), ended };
}

async function waitForLine(
  lines: string[],
  reader: NodeJS.EventEmitter,
  ended: Promise<number | string>,
  line: string,
): Promise<void> {
  while (!lines.includes(line)) {
    const outcome = await Promise.race([once(reader, "line").then(() => "line"), ended]);
    if (outcome !== "line" && !lines.includes(line)) throw new Error(`ended with ${outcome} and never printed ${line}`);
  }
}
