// `claudemesh mesh role`: makes a member an owner, or an owner a plain member. Only an owner may.
import { type Command, InvalidArgumentError } from "commander";
import { memberOrKey } from "../argument-forms.ts";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { asMember, findMemberKey } from "../member.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<member>", "public key, or a name that only one member has", memberOrKey)
    .argument("<role>", "owner or member", readRole)
    .action((member: string, role: string, options: CommonOptions) =>
      run(shell, options, async () => {
        const value = await asMember(shell, pathsFor(shell, options), async (call) =>
          call("member.role", { pubkey: await findMemberKey(call, member), role }),
        );
        return { value, text: `${member} is ${role === "owner" ? "an owner" : "a member, and no owner"}.` };
      }),
    );
  examples(command, "claudemesh mesh role alice owner", "claudemesh mesh role worker-1 member");
}

function readRole(text: string): string {
  if (text === "owner" || text === "member") return text;
  throw new InvalidArgumentError("A role is owner or member.");
}
