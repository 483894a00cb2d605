// `claudemesh mesh token revoke`: the token stops working at once.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { type Confirmable, confirm, withYes } from "../confirm.ts";
import { asMember } from "../member.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withYes(withMesh(command))
    .argument("<token-id>", "from `claudemesh mesh token list`")
    .action((tokenId: string, options: CommonOptions & Confirmable) =>
      run(shell, options, async () => {
        await confirm(shell, options, `The token ${tokenId} will be good for nothing any more.`);
        const input = { token_id: tokenId };
        const value = await asMember(shell, pathsFor(shell, options), (call) => call("token.revoke", input));
        return { value, text: `${tokenId} is revoked.` };
      }),
    );
  examples(command, "claudemesh mesh token revoke 0198c0de-0000-7000-8000-000000000000");
}
