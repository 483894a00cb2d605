// What a shell has to know to complete our commands, read from commander's tree: no list of them is kept beside it.
import type { Argument, Command, Option } from "commander";

/** What may follow an option, or stand as an argument. */
export type Values =
  | { readonly kind: "any" }
  | { readonly kind: "files" }
  | { readonly kind: "meshes" }
  | { readonly kind: "words"; readonly words: readonly string[] };

export type CompletedOption = {
  /** With its two dashes. */
  readonly flag: string;
  readonly description: string;
  /** Undefined for an option that takes none. */
  readonly values: Values | undefined;
};

export type CompletedCommand = {
  /** Each word of the command with a space before it, so that the program itself is the empty text. */
  readonly path: string;
  readonly subcommands: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly CompletedOption[];
  readonly argumentWords: readonly string[];
};

export function readCommands(program: Command): CompletedCommand[] {
  return readCommand(program, "");
}

function readCommand(command: Command, path: string): CompletedCommand[] {
  const help = command.createHelp();
  const read: CompletedCommand = {
    path,
    subcommands: help
      .visibleCommands(command)
      .map((each) => ({ name: each.name(), description: each.summary() || each.description() })),
    options: help.visibleOptions(command).flatMap(readOption),
    argumentWords: command.registeredArguments.flatMap((argument: Argument) => argument.argChoices ?? []),
  };
  return [read, ...command.commands.flatMap((each) => readCommand(each, `${path} ${each.name()}`))];
}

function readOption(option: Option): CompletedOption[] {
  if (option.long === undefined || option.long === null) return [];
  return [{ flag: option.long, description: option.description, values: readValues(option) }];
}

function readValues(option: Option): Values | undefined {
  if (!option.required && !option.optional) return undefined;
  if (option.argChoices !== undefined) return { kind: "words", words: option.argChoices };
  if (option.long === "--mesh") return { kind: "meshes" };
  return option.flags.endsWith("<path>") ? { kind: "files" } : { kind: "any" };
}

/** A command with one of its options, as `<path> <flag>`: what the words before the cursor look like. */
export type OptionPath = { readonly words: string; readonly values: Values };

export function optionsWithValues(commands: readonly CompletedCommand[]): OptionPath[] {
  return commands.flatMap(({ path, options }) =>
    options.flatMap(({ flag, values }) => (values === undefined ? [] : [{ words: `${path} ${flag}`, values }])),
  );
}

/** Options that offer the same, together; those that take anything at all offer nothing. */
export function groupByReply(
  valued: readonly OptionPath[],
  reply: (values: Values) => string | undefined,
): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>();
  for (const { words, values } of valued) {
    const offered = reply(values);
    if (offered !== undefined) groups.set(offered, [...(groups.get(offered) ?? []), words]);
  }
  return groups;
}

/** Texts as the alternatives of a shell's `case`. */
export function alternatives(texts: readonly string[]): string {
  return texts.map(singleQuoted).join("|");
}

/** In single quotes, as bash and zsh read them. */
export function singleQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
