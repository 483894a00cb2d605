// Real processes of the product, started as a user starts them: through node_modules/.bin with whatever Node is on
// PATH. Killing one kills the product itself.
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export const claudemeshBin = fileURLToPath(new URL("../../node_modules/.bin/claudemesh", import.meta.url));

/** A PATH without this workspace's own Node, so that the launcher has to find the pinned one. */
const userPath = (process.env.PATH ?? "")
  .split(":")
  .filter((folder) => !folder.includes("node_modules"))
  .join(":");

export type CliResult = { readonly code: number; readonly stdout: string; readonly stderr: string };

export type ProcessOptions = {
  readonly home: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly stdin?: string;
  /** What runs the product instead of its own launcher: the words before its arguments. */
  readonly wrapper?: readonly string[];
};

function start(args: readonly string[], options: ProcessOptions): ChildProcess {
  const { CLAUDEMESH_FAILPOINTS: _failpoints, ...inherited } = process.env;
  const [program = claudemeshBin, ...first] = options.wrapper ?? [];
  return spawn(program, [...first, ...args], {
    cwd: options.cwd ?? options.home,
    env: { ...inherited, PATH: userPath, CLAUDEMESH_HOME: options.home, ...options.env },
    stdio: ["pipe", "pipe", "pipe"],
  });
}

/** Runs one command to its end. */
export async function runCli(args: readonly string[], options: ProcessOptions): Promise<CliResult> {
  const child = start(args, options);
  // A command may end without having read what it is given.
  child.stdin?.on("error", () => undefined).end(options.stdin ?? "");
  let stdout = "";
  let stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const code = await new Promise<number>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (status) => resolve(status ?? -1));
  });
  return { code, stdout, stderr };
}

/** The JSON value on the last line of a command that must succeed. */
export async function runJson<T>(args: readonly string[], options: ProcessOptions): Promise<T> {
  const result = await runCli([...args, "--json"], options);
  if (result.code !== 0) throw new Error(`claudemesh ${args.join(" ")} exited ${result.code}: ${result.stderr}`);
  return JSON.parse(result.stdout.trimEnd().split("\n").at(-1) ?? "") as T;
}

export class LongRunning<Ready> {
  readonly ready: Promise<Ready>;
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  readonly #child: ChildProcess;
  #stderr = "";

  constructor(args: readonly string[], options: ProcessOptions) {
    this.#child = start([...args, "--json"], options);
    this.#child.stdin?.end();
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-65_536);
    });
    this.exited = new Promise((resolve) => {
      this.#child.once("close", (code, signal) => resolve({ code, signal }));
    });
    this.ready = this.#firstReadyLine();
    // A test that kills a process on purpose before it is ready does not wait for its ready line.
    this.ready.catch(() => undefined);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** For signals that end nothing: SIGSTOP, SIGCONT. */
  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    this.#child.kill(signal);
    await this.exited;
  }

  async #firstReadyLine(): Promise<Ready> {
    if (this.#child.stdout === null) throw new Error("the process has no standard output");
    for await (const line of createInterface({ input: this.#child.stdout })) {
      const value = JSON.parse(line) as { event?: string };
      if (value.event === "ready") {
        this.#child.stdout.resume();
        return value as Ready;
      }
    }
    throw new Error(`the process ended before it was ready: ${this.#stderr}`);
  }
}
