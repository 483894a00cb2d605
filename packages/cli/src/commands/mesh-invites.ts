// `claudemesh mesh invite …` and `claudemesh mesh join`: how a new member gets in.

import { decodeInvite } from "@claudemesh/protocol/wire/invite";
import { type Command, InvalidArgumentError } from "commander";
import { type Commands, type CommonOptions, examples, run, withJson, withMesh, withTimes } from "../command.ts";
import { hint } from "../hints.ts";
import { allowsPlainHttp, plainHttpHelp } from "../input/arguments.ts";
import { type Confirmable, confirm, withYes } from "../input/confirm.ts";
import { readInviteText } from "../input/secret-input.ts";
import { asMember, readAll, readNames } from "../mesh/member.ts";
import { formatTable, stateCell } from "../output/table.ts";
import { formatTime, timeCell } from "../output/times.ts";
import { pathsFor, type Shell } from "../shell.ts";

export const commands = {
  "mesh invite": defineInvite,
  "mesh invite list": defineInviteList,
  "mesh invite revoke": defineInviteRevoke,
  "mesh join": defineJoin,
} satisfies Commands;

type InviteOptions = { mesh?: string; json?: boolean; validFor?: number; name?: string };

/** One invite for one new key. */
function defineInvite(command: Command, shell: Shell): void {
  withTimes(withMesh(command))
    .option("--valid-for <time>", "how long, as 30m, 12h or 7d (default: 7d)", parseExpiry)
    .option("--name <member>", "the name that whoever joins by it gets (default: the joiner chooses)")
    .action((options: InviteOptions) => run(shell, options, () => createInvite(shell, options)));
  examples(
    command,
    "claudemesh mesh invite",
    "claudemesh mesh invite --name worker-1",
    "claudemesh mesh invite --valid-for 1h --json",
    "claudemesh mesh invite list",
  );
}

async function createInvite(shell: Shell, options: InviteOptions) {
  const input = {
    ...(options.validFor !== undefined && { expires_in_s: options.validFor }),
    ...(options.name !== undefined && { name: options.name }),
  };
  const value = (await asMember(shell, pathsFor(shell, options), (call) => call("invite.create", input))) as {
    invite: string;
    invite_id: string;
    expires_at: number;
  };
  const named = options.name === undefined ? "" : `, called ${options.name},`;
  const text = [
    value.invite,
    `It leads to ${decodeInvite(value.invite).broker}.`,
    `Good for one member${named} until ${formatTime(value.expires_at)}. It is not shown again.`,
    "It lets its holder in: hand it over in private, and join with it on standard input: claudemesh mesh join -",
    hint(shell, `Revoke it with: claudemesh mesh invite revoke ${value.invite_id}`),
  ];
  return { value, text: text.join("\n") };
}

const secondsPerUnit: Readonly<Record<string, number>> = { m: 60, h: 3_600, d: 86_400 };

function parseExpiry(text: string): number {
  const match = /^([1-9][0-9]{0,5})([mhd])$/.exec(text);
  const seconds = Number(match?.[1]) * (secondsPerUnit[match?.[2] ?? ""] ?? Number.NaN);
  if (!(seconds <= 2_592_000)) throw new InvalidArgumentError("It takes a time such as 30m, 12h or 7d, at most 30d.");
  return seconds;
}

type Invite = {
  readonly invite_id: string;
  readonly state: string;
  readonly name: string | null;
  readonly created_at: number;
  readonly expires_at: number;
  readonly used_by: string | null;
};

/** The mesh's invites, never the secrets. Only an owner may. */
function defineInviteList(command: Command, shell: Shell): void {
  withTimes(withMesh(command)).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const paths = pathsFor(shell, options);
      const items = await asMember(shell, paths, (call) => readAll<Invite>(call, "invite.list"));
      const nameOf = await readNames(shell, paths, options);
      const rows = items.map((invite) => [
        invite.invite_id,
        stateCell(invite.state),
        invite.name ?? "-",
        timeCell(invite.created_at),
        timeCell(invite.expires_at),
        invite.used_by === null ? "-" : nameOf(invite.used_by),
      ]);
      const head = ["INVITE ID", "STATE", "NAME", "CREATED", "EXPIRES", "USED BY"];
      return { value: { items }, text: formatTable(head, rows, shell.columns) };
    }),
  );
  examples(command, "claudemesh mesh invite list");
}

/** The invite lets no member in any more. Only an owner may. */
function defineInviteRevoke(command: Command, shell: Shell): void {
  withYes(withMesh(command))
    .argument("<invite-id>", "from `claudemesh mesh invite list`")
    .action((inviteId: string, options: CommonOptions & Confirmable) =>
      run(shell, options, async () => {
        await confirm(shell, options, `The invite ${inviteId} will let no member in any more.`);
        const input = { invite_id: inviteId };
        const value = await asMember(shell, pathsFor(shell, options), (call) => call("invite.revoke", input));
        return { value, text: `${inviteId} is revoked.` };
      }),
    );
  examples(command, "claudemesh mesh invite revoke 0198c0de-0000-7000-8000-000000000000");
}

type JoinOptions = { inviteFile?: string; name?: string; ca?: string; plainHttp?: boolean; json?: boolean };

/** This home becomes a member, with keys of its own. */
function defineJoin(command: Command, shell: Shell): void {
  withJson(command)
    .argument(
      "[invite]",
      "- for standard input, or the line itself, which every user of this host can see (or CLAUDEMESH_INVITE)",
    )
    .option("--invite-file <path>", "a file that holds the invite")
    .option("--name <member>", "your name in the mesh (default: the invite's, or your user name)")
    .option("--ca <path>", "certificates in PEM that this home trusts from now on (or CLAUDEMESH_CA)")
    .option("--plain-http", plainHttpHelp)
    .action((given: string | undefined, options: JoinOptions) =>
      run(shell, options, async () => {
        const invite = decodeInvite(readInviteText(shell, { given, file: options.inviteFile }));
        if (options.ca !== undefined) {
          const { keepCertificates } = await import("../mesh/trusted-certificates.ts");
          keepCertificates(shell.home, options.ca);
        }
        const plainHttp = allowsPlainHttp(shell, options);
        const { joinMembership } = await import("../mesh/membership.ts");
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
