// Finds the command that was asked for, loads its file and no other, and runs it. What commands do is in commands/.

import { CommanderError } from "commander";
import { exitCodes } from "./exit-codes.ts";
import { jsonText } from "./output/printable.ts";
import { buildProgram, findEntry } from "./program.ts";
import { createShell } from "./shell.ts";

export async function main(argv: readonly string[]): Promise<void> {
  const shell = createShell(process);
  const wanted = findEntry(argv);
  const program = await buildProgram(shell, (entry) => entry === wanted);
  try {
    await program.parseAsync([...argv], { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return;
    process.exitCode = exitCodes.usage;
    if (argv.includes("--json")) {
      shell.out(jsonText({ error: "wrong_usage", message: usageProblem(error), retryable: false }));
    }
  }
}

/** Commander says what was wrong; when it only showed help, the words did not name a command. */
function usageProblem(error: CommanderError): string {
  if (error.code === "commander.help") return "These words are the beginning of a command; see --help for the rest.";
  return error.message.replace(/^error: /, "");
}
