// A verifier that is a program of the operator's: the registration as one JSON object on its standard input; exit status
// 0 passes, any other fails. One that cannot be run, is killed or does not end in time has said nothing.
// Why: docs/decisions/0013.
import { spawn } from "node:child_process";
import process from "node:process";
import type { Verifier, VerifierVerdict } from "./verify-registration.ts";

const timeoutMsDefault = 10_000;
const concurrentMax = 4;
const reasonCharacters = 512;

export function createExecVerifier(path: string, timeoutMs: number = timeoutMsDefault): Verifier {
  const waiting: (() => void)[] = [];
  let running = 0;
  const takeTurn = async () => {
    if (running >= concurrentMax) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
  };
  const passTurn = () => {
    const next = waiting.shift();
    if (next === undefined) running -= 1;
    else next();
  };
  return {
    name: `exec:${path}`,
    verify: async (row) => {
      await takeTurn();
      try {
        return await runProgram(path, JSON.stringify(row), timeoutMs);
      } finally {
        passTurn();
      }
    },
  };
}

/** What the program gets of the broker's environment: where programs, files and words are, and no secret. */
const passedOn = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"];

function environmentOf(own: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(passedOn.flatMap((name) => (own[name] === undefined ? [] : [[name, own[name]]])));
}

function runProgram(path: string, input: string, timeoutMs: number): Promise<VerifierVerdict> {
  return new Promise((resolve) => {
    const child = spawn(path, [], {
      stdio: ["pipe", "ignore", "pipe"],
      timeout: timeoutMs,
      killSignal: "SIGKILL",
      env: environmentOf(process.env),
    });
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(0, reasonCharacters);
    });
    child.once("error", (error) => resolve({ type: "inconclusive", reason: error.message }));
    // A program that does not read its input is judged by how it ends.
    child.stdin.on("error", () => undefined);
    child.stdin.end(`${input}\n`);
    // At its own end, not that of its output: a child that it left behind may keep that open.
    child.once("exit", (code, signal) => {
      child.stderr.destroy();
      if (code === 0) resolve({ type: "passed" });
      else if (code === null) resolve({ type: "inconclusive", reason: `it was ended by ${signal ?? "a signal"}` });
      else resolve({ type: "failed", reason: said.replaceAll("\0", "").trim() || `exit status ${code}` });
    });
  });
}
