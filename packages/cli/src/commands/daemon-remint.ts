// `claudemesh daemon remint`: new keys for this home, which make a new member of the mesh. The daemon must not be
// running.
import type { Remint } from "@claudemesh/daemon/offline";
import { decodeInvite } from "@claudemesh/protocol/wire/invite";
import type { Command } from "commander";
import { examples, run, withMesh } from "../command.ts";
import { type Confirmable, confirm, withYes } from "../confirm.ts";
import { readInviteText } from "../secret-input.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Options = Confirmable & { mesh?: string; json?: boolean; invite?: string; inviteFile?: string; name?: string };

export function define(command: Command, shell: Shell): void {
  withYes(withMesh(command))
    .option(
      "--invite <invite>",
      "- for standard input, or the line that an owner gave you: new keys are a new member (or CLAUDEMESH_INVITE)",
    )
    .option("--invite-file <path>", "a file that holds the invite")
    .option("--name <member>", "its name in the mesh (default: the name of the old one)")
    .action((options: Options) =>
      run(shell, options, async () => {
        await confirm(
          shell,
          options,
          "This home will have new keys, and be a new member: what was sealed for the old ones is not readable any more.",
        );
        const { remintKeys } = await import("@claudemesh/daemon/offline");
        const { name } = options;
        const text = readInviteText(shell, { given: options.invite, file: options.inviteFile });
        const order = { invite: decodeInvite(text), ...(name === undefined ? {} : { name }) };
        const value = await remintKeys(pathsFor(shell, options), order);
        return { value, text: describe(value) };
      }),
    );
  examples(
    command,
    "claudemesh daemon remint --invite - --name laptop-2 < invite.txt",
    "claudemesh daemon remint --invite-file invite.txt",
  );
}

function describe(reminted: Remint): string {
  const { mesh, name, role, old_pubkey, new_pubkey, old_keys, rows_retired } = reminted;
  const retired = `${rows_retired} dead rows cannot be requeued any more: they were sealed with the old keys, or only those could ask whether they arrived.`;
  return [
    `${name} is a new member of ${mesh} (${role}), and this host is its own.`,
    `New key  ${new_pubkey}`,
    `Old key  ${old_pubkey}, kept in ${old_keys}`,
    "What was sent to the old key and has not arrived does not arrive here. Topics have to be subscribed to again.",
    ...(rows_retired === 0 ? [] : [retired]),
    "The old key is still a member, with the role that it has. Once nobody uses it, and unless it is the only owner:",
    `  claudemesh mesh revoke ${old_pubkey} --mesh ${mesh}  (by an owner)`,
    `Start the daemon:  claudemesh daemon up --mesh ${mesh}`,
  ].join("\n");
}
