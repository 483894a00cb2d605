// The frame around every command: which options all of them have, how success and failure are printed, and which exit
// code follows. A command's own file only says what it does.
import type { Command } from "commander";
import { failureOf } from "./exit-codes.ts";
import type { Shell } from "./shell.ts";

/** One command's file. `define` adds arguments, options and the action. */
export type CommandModule = { readonly define: (command: Command, shell: Shell) => void };

export type CommonOptions = { readonly json?: boolean; readonly mesh?: string };

/** What a command has to say: a value for programs, lines for people. */
export type Outcome = { readonly value: unknown; readonly text: string };

export function withJson(command: Command): Command {
  return command.option("--json", "print one JSON value on the last line");
}

export function withMesh(command: Command): Command {
  return withJson(command.option("--mesh <name>", "which mesh; optional where the home holds one"));
}

export function examples(command: Command, ...lines: readonly string[]): Command {
  return command.addHelpText("after", `\nExamples:\n${lines.map((line) => `  $ ${line}`).join("\n")}`);
}

/** Runs a command's work and ends the process with its documented exit code. */
export function run<Options extends CommonOptions>(
  shell: Shell,
  options: Options,
  work: () => Promise<Outcome | undefined>,
): Promise<void> {
  return work().then(
    (outcome) => {
      if (outcome !== undefined) shell.out(options.json === true ? JSON.stringify(outcome.value) : outcome.text);
    },
    (error: unknown) => {
      const { exitCode, body } = failureOf(error);
      if (options.json === true) shell.out(JSON.stringify(body));
      shell.err(`claudemesh: ${body.message}`);
      if (shell.env.CLAUDEMESH_DEBUG !== undefined && error instanceof Error) shell.err(error.stack ?? "");
      process.exitCode = exitCode;
    },
  );
}
