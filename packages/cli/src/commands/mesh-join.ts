// `claudemesh mesh join`: this home becomes a member, with keys of its own.

import { decodeInvite } from "@claudemesh/protocol/wire/invite";
import type { Command } from "commander";
import { examples, run, withJson } from "../command.ts";
import { defaultMemberName, joinMembership } from "../membership.ts";
import type { Shell } from "../shell.ts";
import { keepCertificates } from "../trusted-certificates.ts";

type Options = { name?: string; ca?: string; json?: boolean };

export function define(command: Command, shell: Shell): void {
  withJson(command)
    .argument("<invite>", "the line that an owner gave you")
    .option("--name <member>", "your name in the mesh (default: your user name)")
    .option("--ca <path>", "certificates in PEM that this home trusts from now on (or CLAUDEMESH_CA)")
    .action((text: string, options: Options) =>
      run(shell, options, async () => {
        if (options.ca !== undefined) keepCertificates(shell.home, options.ca);
        const joined = await joinMembership(shell.home, decodeInvite(text), options.name ?? defaultMemberName());
        const { mesh, member_pubkey, name } = joined;
        return {
          value: { mesh, member_pubkey, name },
          text: `${name} is a member of ${mesh} now.\nStart the daemon:  claudemesh daemon up --mesh ${mesh}`,
        };
      }),
    );
  examples(command, "claudemesh mesh join cmi1.eyJi… --name worker-1");
}
