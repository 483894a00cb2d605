// `claudemesh mesh revoke`: ends a membership at once, for good. Only an owner may.
import type { Command } from "commander";
import { memberOrKey } from "../argument-forms.ts";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { type Confirmable, confirm, withYes } from "../confirm.ts";
import { asMember, findMemberKey } from "../member.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withYes(withMesh(command))
    .argument("<member>", "public key, or a name that only one member has", memberOrKey)
    .action((member: string, options: CommonOptions & Confirmable) =>
      run(shell, options, async () => {
        const paths = pathsFor(shell, options);
        await confirm(shell, options, `${member} will be no member of ${paths.mesh} any more.`);
        const value = await asMember(shell, paths, async (call) =>
          call("member.revoke", { pubkey: await findMemberKey(call, member) }),
        );
        return { value, text: `${member} is no longer a member.` };
      }),
    );
  examples(command, "claudemesh mesh revoke worker-1");
}
