// `claudemesh mesh revoke`: ends a membership at once, for good. Only an owner may.
import type { Command } from "commander";
import { memberOrKey } from "../argument-forms.ts";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { asMember, findMemberKey } from "../member.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<member>", "public key, or a name that only one member has", memberOrKey)
    .action((member: string, options: CommonOptions) =>
      run(shell, options, async () => {
        const value = await asMember(shell, pathsFor(shell, options), async (call) =>
          call("member.revoke", { pubkey: await findMemberKey(call, member) }),
        );
        return { value, text: `${member} is no longer a member.` };
      }),
    );
  examples(command, "claudemesh mesh revoke worker-1");
}
