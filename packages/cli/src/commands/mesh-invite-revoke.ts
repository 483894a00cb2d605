// `claudemesh mesh invite revoke`: the invite lets nobody in any more. Only an owner may.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { type Confirmable, confirm, withYes } from "../confirm.ts";
import { asMember } from "../member.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withYes(withMesh(command))
    .argument("<invite-id>", "from `claudemesh mesh invite list`")
    .action((inviteId: string, options: CommonOptions & Confirmable) =>
      run(shell, options, async () => {
        await confirm(shell, options, `The invite ${inviteId} will let nobody in any more.`);
        const input = { invite_id: inviteId };
        const value = await asMember(shell, pathsFor(shell, options), (call) => call("invite.revoke", input));
        return { value, text: `${inviteId} is revoked.` };
      }),
    );
  examples(command, "claudemesh mesh invite revoke 0198c0de-0000-7000-8000-000000000000");
}
