// `claudemesh mesh revoke`: ends a membership at once, for good. Only an owner may.

import { MeshError } from "@claudemesh/protocol/errors";
import { isPublicKey } from "@claudemesh/protocol/messages/names";
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { asMember, readAll } from "../member.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<member>", "public key, or a name that only one member has")
    .action((member: string, options: CommonOptions) =>
      run(shell, options, async () => {
        const value = await asMember(shell, pathsFor(shell, options), async (call) => {
          const members = await readAll<{ pubkey: string; name: string }>(call, "members.list");
          return call("member.revoke", { pubkey: isPublicKey(member) ? member : keyOf(members, member) });
        });
        return { value, text: `${member} is no longer a member.` };
      }),
    );
  examples(command, "claudemesh mesh revoke worker-1");
}

function keyOf(members: readonly { readonly pubkey: string; readonly name: string }[], name: string): string {
  const candidates = members.filter((member) => member.name === name).map((member) => member.pubkey);
  const [only, ...others] = candidates;
  if (only === undefined) throw new MeshError("not_found", `There is no member called ${name}.`);
  if (others.length > 0) throw new MeshError("destination_ambiguous", undefined, { candidates });
  return only;
}
