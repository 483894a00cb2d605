// `claudemesh mesh join`: this home becomes a member, with keys of its own.

import { decodeInvite } from "@claudemesh/protocol/wire/invite";
import type { Command } from "commander";
import { examples, run, withJson } from "../command.ts";
import { allowsPlainHttp, joinMembership, plainHttpHelp } from "../membership.ts";
import { readInviteText } from "../secret-input.ts";
import type { Shell } from "../shell.ts";
import { keepCertificates } from "../trusted-certificates.ts";

type Options = { inviteFile?: string; name?: string; ca?: string; plainHttp?: boolean; json?: boolean };

export function define(command: Command, shell: Shell): void {
  withJson(command)
    .argument(
      "[invite]",
      "- for standard input, or the line itself, which every user of this host can see (or CLAUDEMESH_INVITE)",
    )
    .option("--invite-file <path>", "a file that holds the invite")
    .option("--name <member>", "your name in the mesh (default: the invite's, or your user name)")
    .option("--ca <path>", "certificates in PEM that this home trusts from now on (or CLAUDEMESH_CA)")
    .option("--plain-http", plainHttpHelp)
    .action((given: string | undefined, options: Options) =>
      run(shell, options, async () => {
        const invite = decodeInvite(readInviteText(shell, { given, file: options.inviteFile }));
        if (options.ca !== undefined) keepCertificates(shell.home, options.ca);
        const plainHttp = allowsPlainHttp(shell, options);
        const joined = await joinMembership(shell.home, invite, options.name, { plainHttp });
        const { mesh, member_pubkey } = joined;
        return {
          value: { mesh, member_pubkey, name: joined.name },
          text: `${joined.name} is a member of ${mesh} now.\nStart the daemon:  claudemesh daemon up --mesh ${mesh}`,
        };
      }),
    );
  examples(
    command,
    "claudemesh mesh join - --name worker-1 < invite.txt",
    "claudemesh mesh join --invite-file invite.txt",
    "claudemesh mesh join cmi1.eyJi… --name worker-1",
  );
}
