// `claudemesh mesh token`: a bearer token for direct HTTP calls as this member.
import type { Command } from "commander";
import { examples, run, withMesh } from "../command.ts";
import { hint } from "../hints.ts";
import { asMember } from "../member.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Options = { mesh?: string; json?: boolean; label?: string };

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .option("--label <text>", "a word to recognise it by in the list")
    .action((options: Options) =>
      run(shell, options, async () => {
        const input = options.label === undefined ? {} : { label: options.label };
        const value = (await asMember(shell, pathsFor(shell, options), (call) => call("token.create", input))) as {
          token: string;
          token_id: string;
        };
        const next = `It is not shown again. Revoke it with: claudemesh mesh token revoke ${value.token_id}`;
        return { value, text: `${value.token}\n${hint(shell, next)}` };
      }),
    );
  examples(command, "claudemesh mesh token --label ci", "claudemesh mesh token list");
}
