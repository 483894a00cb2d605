// Runs a command as an effect of `once`: its output goes on to the terminal, a bounded part of it and the exit code are
// the result. A command that could not be started has done nothing, and says so.
import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { constants as osConstants } from "node:os";
import { delimiter, join } from "node:path";
import { OnceLeaseLost, OnceNotDone } from "@claudemesh/client/once";
import { OutputCapture, outputFields } from "./captured-output.ts";

export type CommandResult = {
  /** 128 and the signal's number where a signal ended it, as shells count. */
  readonly exit_code: number;
  readonly [field: string]: string | number;
};

export type CommandSurroundings = {
  /** Where the command's output goes while it runs; undefined: nowhere. */
  readonly stdout: NodeJS.WritableStream | undefined;
  readonly stderr: NodeJS.WritableStream | undefined;
  readonly warn: (text: string) => void;
};

export async function runCommand(
  argv: readonly string[],
  signal: AbortSignal,
  surroundings: CommandSurroundings,
): Promise<CommandResult> {
  const [program = "", ...args] = argv;
  const child = spawn(program, args, { stdio: ["inherit", "pipe", "pipe"] });
  const captured = { stdout: new OutputCapture(), stderr: new OutputCapture() };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].on("data", (chunk: Buffer) => captured[name].push(chunk));
    const to = surroundings[name];
    if (to !== undefined) child[name].pipe(to, { end: false });
  }
  const forward = (name: NodeJS.Signals) => child.kill(name);
  const stopForwarding = forwardSignals(forward);
  signal.addEventListener("abort", () => onLeaseLost(signal.reason, forward, surroundings.warn), { once: true });
  try {
    const { code, killedBy } = await new Promise<{ code: number | null; killedBy: NodeJS.Signals | null }>(
      (resolve, reject) => {
        child.once("error", (error) => {
          // Without a process there was nothing to run; any later error is about a process that did run.
          if (child.pid === undefined) reject(new OnceNotDone(`${program} could not be started: ${error.message}`));
        });
        child.once("close", (code, killedBy) => resolve({ code, killedBy }));
      },
    );
    return {
      exit_code: code ?? 128 + (killedBy === null ? 0 : (osConstants.signals[killedBy] ?? 0)),
      ...(killedBy === null ? {} : { signal: killedBy }),
      ...outputFields("stdout", captured.stdout.finish()),
      ...outputFields("stderr", captured.stderr.finish()),
    };
  } finally {
    stopForwarding();
  }
}

/** Ctrl-C reaches the command by itself; a signal to us alone is passed on. We stay, to record how it ended. */
function forwardSignals(forward: (signal: NodeJS.Signals) => void): () => void {
  const onInterrupt = () => {
    if (!process.stdin.isTTY) forward("SIGINT");
  };
  process.on("SIGINT", onInterrupt);
  process.on("SIGTERM", forward);
  process.on("SIGHUP", forward);
  return () => {
    process.off("SIGINT", onInterrupt);
    process.off("SIGTERM", forward);
    process.off("SIGHUP", forward);
  };
}

/**
 * After a lease that only ran out, no other host runs the command unless a member resolves the key as not done, so that it
 * is better to let it end and record that. Where a member has resolved it already, another host may be running it.
 */
function onLeaseLost(reason: unknown, kill: (signal: NodeJS.Signals) => void, warn: (text: string) => void): void {
  if (!(reason instanceof OnceLeaseLost)) return;
  if (reason.why === "settled") {
    warn(`${reason.message} The command is stopped.`);
    kill("SIGTERM");
  } else {
    warn(
      `${reason.message} The command goes on, and what comes of it is recorded if no member resolves the key before.`,
    );
  }
}

/** Whether there is such a program, as the system would look for it. */
export function canBeFound(program: string, path: string | undefined): boolean {
  const candidates = program.includes("/")
    ? [program]
    : (path ?? "").split(delimiter).map((folder) => join(folder, program));
  return candidates.some((candidate) => {
    try {
      accessSync(candidate, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
