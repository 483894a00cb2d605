// Runs one command-line tool of the workspace and collects what it printed. What the output means is the caller's.
import { spawn } from "node:child_process";
import { delimiter, join } from "node:path";

export interface ToolOutput {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `node_modules/.bin/<tool>` of `root` in `root`, on the pinned Node. */
export async function runTool(root: string, tool: string, args: readonly string[]): Promise<ToolOutput> {
  const bin = join(root, "node_modules", ".bin");
  const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH ?? ""}`, NO_COLOR: "1" };
  const child = spawn(join(bin, tool), args, { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] });
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => stdout.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => stderr.push(chunk));
  const { promise, resolve } = Promise.withResolvers<number>();
  child.on("error", (error) => {
    stderr.push(Buffer.from(`${error.message}; is everything installed?`));
    resolve(127);
  });
  child.on("close", (code) => resolve(code ?? 1));
  const exitCode = await promise;
  return { exitCode, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() };
}

/** The lines of a tool's own complaint when it failed without saying anything its check understands. */
export function describeFailure(tool: string, output: ToolOutput): string {
  const said = `${output.stdout}\n${output.stderr}`.trim();
  return `${tool} ended with exit code ${output.exitCode}${said === "" ? "" : `:\n${said.slice(-4_000)}`}`;
}
