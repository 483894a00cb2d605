// The frame around every command: which options all of them have, how success and failure are printed, and which exit
// code follows. The files in commands/ only say what each command takes and does.
import type { Command } from "commander";
import { certificateFiles } from "./mesh/kept-certificates-path.ts";
import { paint } from "./output/colours.ts";
import { setDisplay } from "./output/display.ts";
import { jsonText, neutralise } from "./output/printable.ts";
import { meshInQuestion, type Shell } from "./shell.ts";

/** Adds a command's arguments, options and action. */
export type Define = (command: Command, shell: Shell, loadWhole: () => Promise<Command>) => void;

/** What a file of commands exports: each command by its words. */
export type Commands = Readonly<Record<string, Define>>;

export type CommonOptions = { readonly json?: boolean; readonly mesh?: string; readonly utc?: boolean };

/** What a command has to say: a value for programs, lines for people. */
export type Outcome = { readonly value: unknown; readonly text: string };

export function withJson(command: Command): Command {
  return command.option("--json", "print one JSON value on the last line");
}

export function withMesh(command: Command): Command {
  return withJson(
    command.option("--mesh <name>", "which mesh (default: CLAUDEMESH_MESH, that of `mesh use`, or the only one)"),
  );
}

/** For commands that print times. */
export function withTimes(command: Command): Command {
  return command.option("--utc", "times as ISO 8601 in UTC (default: local time)");
}

export function examples(command: Command, ...lines: readonly string[]): Command {
  return command.addHelpText("after", `\nExamples:\n${lines.map((line) => `  $ ${line}`).join("\n")}`);
}

/** Runs a command's work and ends the process with its documented exit code. */
export async function run<Options extends CommonOptions>(
  shell: Shell,
  options: Options,
  work: () => Promise<Outcome | undefined>,
): Promise<void> {
  setDisplay({ utc: options.utc === true, colours: shell.colours });
  try {
    const certificates = certificateFiles(shell.env, shell.home);
    if (certificates.length > 0) (await import("./mesh/trusted-certificates.ts")).trustCertificates(certificates);
    const outcome = await work();
    if (outcome === undefined) return;
    shell.out(options.json === true ? jsonText(outcome.value) : paint(neutralise(outcome.text)));
  } catch (error) {
    // Loaded only now: most runs succeed, and what knows all kinds of failure knows half the product.
    const [{ failureOf }, { hint }] = await Promise.all([import("./failure.ts"), import("./hints.ts")]);
    const { exitCode, body } = failureOf(error, meshInQuestion(shell));
    if (options.json === true) shell.out(jsonText(body));
    shell.err(`claudemesh: ${hint(shell, body.message)}`);
    if (shell.env.CLAUDEMESH_DEBUG !== undefined && error instanceof Error) shell.err(error.stack ?? "");
    process.exitCode = exitCode;
  }
}
