// `claudemesh mesh create`: a new mesh on a broker, owned by this home.
import type { Command } from "commander";
import { adminTokenHelp, readAdminToken } from "../admin-token.ts";
import { publicKey } from "../argument-forms.ts";
import { examples, run, withJson } from "../command.ts";
import { asMember } from "../member.ts";
import { allowsPlainHttp, createMembership, defaultMemberName, plainHttpHelp } from "../membership.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Options = {
  broker: string[];
  name?: string;
  adminTokenFile?: string;
  brokerKey?: string;
  ca?: string;
  plainHttp?: boolean;
  json?: boolean;
};

export function define(command: Command, shell: Shell): void {
  withJson(command)
    .argument("<name>", "name of the mesh")
    .requiredOption(
      "--broker <url>",
      "where the broker is, for example ws://127.0.0.1:7600; again for others of the same store",
      (url: string, before: string[] = []) => [...before, url],
    )
    .option("--name <member>", "your name in the mesh (default: your user name)")
    .option("--admin-token-file <path>", adminTokenHelp)
    .option(
      "--broker-key <hex>",
      "the key that it must prove to hold (default: whatever it holds is trusted)",
      publicKey,
    )
    .option("--ca <path>", "certificates in PEM that this home trusts from now on (or CLAUDEMESH_CA)")
    .option("--plain-http", plainHttpHelp)
    .action((mesh: string, options: Options) => run(shell, options, () => createAndInvite(shell, mesh, options)));
  examples(
    command,
    "claudemesh mesh create acme --broker ws://127.0.0.1:7600 --admin-token-file broker.db.admin-token",
  );
}

async function createAndInvite(shell: Shell, mesh: string, options: Options) {
  const [broker = "", ...brokers] = options.broker;
  const membership = await createMembership({
    home: shell.home,
    mesh,
    broker,
    brokers,
    adminToken: readAdminToken(shell, options.adminTokenFile, "Creating a mesh"),
    name: options.name ?? defaultMemberName(),
    ca: options.ca,
    brokerKey: options.brokerKey,
    plainHttp: allowsPlainHttp(shell, options),
  });
  const { invite } = (await asMember(shell, pathsFor(shell, { mesh }), (call) => call("invite.create", {}))) as {
    invite: string;
  };
  const { mesh_id, member_pubkey, name } = membership;
  return {
    value: { mesh, mesh_id, member_pubkey, invite },
    text: [
      `Mesh ${mesh} is there, and ${name} owns it. Its broker has the key ${membership.broker_key}.`,
      "Let somebody in (once): hand over this invite in private,",
      `  ${invite}`,
      "to be joined by, on standard input:  claudemesh mesh join - --name <name>",
      `Start your daemon:  claudemesh daemon up --mesh ${mesh}`,
    ].join("\n"),
  };
}
