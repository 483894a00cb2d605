// `claudemesh completion`: a script that teaches a shell our commands. Made from the commands themselves, all of them.

import { Argument, type Command } from "commander";
import { type Commands, examples, run, withJson } from "../command.ts";
import { bashCompletion } from "../completion/bash-completion.ts";
import { type CompletedCommand, readCommands } from "../completion/completion-model.ts";
import { fishCompletion } from "../completion/fish-completion.ts";
import { zshCompletion } from "../completion/zsh-completion.ts";
import type { Shell } from "../shell.ts";

export const commands = {
  completion: defineCompletion,
} satisfies Commands;

const writers = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } as const satisfies Record<
  string,
  (commands: readonly CompletedCommand[]) => string
>;

/** A script that teaches a shell our commands. Made from the commands themselves, all of them. */
function defineCompletion(command: Command, shell: Shell, loadWhole: () => Promise<Command>): void {
  withJson(command)
    .addArgument(new Argument("<shell>", "which shell").choices(Object.keys(writers)))
    .action((name: keyof typeof writers, options: { json?: boolean }) =>
      run(shell, options, async () => {
        const script = writers[name](readCommands(await loadWhole()));
        return { value: { shell: name, script }, text: script.trimEnd() };
      }),
    );
  examples(
    command,
    "source <(claudemesh completion bash)",
    "claudemesh completion zsh > ~/.zfunc/_claudemesh",
    "claudemesh completion fish > ~/.config/fish/completions/claudemesh.fish",
  );
}
