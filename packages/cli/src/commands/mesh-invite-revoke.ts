// `claudemesh mesh invite revoke`: the invite lets nobody in any more. Only an owner may.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { asMember } from "../member.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<invite-id>", "from `claudemesh mesh invite list`")
    .action((inviteId: string, options: CommonOptions) =>
      run(shell, options, async () => {
        const input = { invite_id: inviteId };
        const value = await asMember(shell, pathsFor(shell, options), (call) => call("invite.revoke", input));
        return { value, text: `${inviteId} is revoked.` };
      }),
    );
  examples(command, "claudemesh mesh invite revoke 0198c0de-0000-7000-8000-000000000000");
}
