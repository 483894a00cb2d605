// `claudemesh mesh …`, what is asked of the broker: making a mesh, what is set for all of it, its members, and tokens
// for HTTP calls.

import { isMeshSettingKey, meshSettingKeys, meshSettingSpecs } from "@claudemesh/protocol/messages/mesh-settings";
import { type Command, InvalidArgumentError } from "commander";
import { type Commands, type CommonOptions, examples, run, withJson, withMesh, withTimes } from "../command.ts";
import { hint } from "../hints.ts";
import { allowsPlainHttp, memberOrKey, plainHttpHelp, publicKey } from "../input/arguments.ts";
import { type Confirmable, confirm, withYes } from "../input/confirm.ts";
import { adminTokenHelp, readAdminToken } from "../input/secret-input.ts";
import { asMember, findMemberKey, readAll } from "../mesh/member.ts";
import { shortKey } from "../output/members.ts";
import { formatTable, stateCell } from "../output/table.ts";
import { timeCell } from "../output/times.ts";
import { pathsFor, type Shell } from "../shell.ts";

export const commands = {
  "mesh create": defineCreate,
  "mesh settings": defineSettings,
  "mesh set": defineSet,
  "mesh members": defineMembers,
  "mesh token": defineToken,
  "mesh token list": defineTokenList,
  "mesh token revoke": defineTokenRevoke,
  "mesh role": defineRole,
  "mesh revoke": defineRevoke,
} satisfies Commands;

type CreateOptions = {
  broker: string[];
  name?: string;
  adminTokenFile?: string;
  brokerKey?: string;
  ca?: string;
  plainHttp?: boolean;
  json?: boolean;
};

/** A new mesh on a broker, owned by this home. */
function defineCreate(command: Command, shell: Shell): void {
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
    .action((mesh: string, options: CreateOptions) => run(shell, options, () => createAndInvite(shell, mesh, options)));
  examples(
    command,
    "claudemesh mesh create acme --broker ws://127.0.0.1:7600 --admin-token-file broker.db.admin-token",
  );
}

async function createAndInvite(shell: Shell, mesh: string, options: CreateOptions) {
  const [broker = "", ...brokers] = options.broker;
  const { createMembership, defaultMemberName } = await import("../mesh/membership.ts");
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
      "Let another member in (once): hand over this invite in private,",
      `  ${invite}`,
      "to be joined by, on standard input:  claudemesh mesh join - --name <name>",
      `Start your daemon:  claudemesh daemon up --mesh ${mesh}`,
    ].join("\n"),
  };
}

type Setting = {
  readonly key: string;
  readonly value: string | number;
  readonly default: string | number;
  readonly maximum: number | null;
  readonly meaning: string;
};

/** What holds for the whole mesh, and what an owner may make of it. */
function defineSettings(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const value = (await asMember(shell, pathsFor(shell, options), (call) => call("mesh.settings", {}))) as {
        items: Setting[];
      };
      const rows = value.items.map((item) => [
        item.key,
        String(item.value),
        String(item.default),
        item.maximum === null ? "-" : String(item.maximum),
        item.meaning,
      ]);
      const table = formatTable(["KEY", "VALUE", "DEFAULT", "UP TO", "WHAT IT MEANS"], rows, shell.columns);
      return {
        value,
        text: `${table}\n${hint(shell, "An owner changes one with: claudemesh mesh set <key> <value>")}`,
      };
    }),
  );
  examples(command, "claudemesh mesh settings", "claudemesh mesh settings --json");
}

/** Changes one setting of the mesh, for every broker and every member. Only an owner may. */
function defineSet(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<key>", `${meshSettingKeys.join(", ")}`, parseSettingKey)
    .argument("<value>", "what it is from now on; `default` sets it back")
    .action((key: string, text: string, options: CommonOptions) =>
      run(shell, options, async () => {
        const input = { key, value: readSettingValue(text) };
        const set = (await asMember(shell, pathsFor(shell, options), (call) => call("mesh.set", input))) as {
          value: string | number;
        };
        return { value: set, text: `${key} is ${set.value} now. It holds on every broker within a second.` };
      }),
    );
  const meanings = meshSettingKeys.map((key) => `  ${key.padEnd(14)} ${meshSettingSpecs[key].meaning}`);
  command.addHelpText("after", `\nKeys:\n${meanings.join("\n")}`);
  examples(
    command,
    "claudemesh mesh set dm_policy any",
    "claudemesh mesh set max_topics 500",
    "claudemesh mesh set max_topics default",
  );
}

function parseSettingKey(text: string): string {
  if (isMeshSettingKey(text)) return text;
  throw new InvalidArgumentError(`There are ${meshSettingKeys.join(", ")}.`);
}

/** Digits are a number; what a key takes is the broker's to say, which may know of another maximum. */
function readSettingValue(text: string): string | number | null {
  if (text === "default") return null;
  return /^[0-9]{1,15}$/.test(text) ? Number(text) : text;
}

type Member = { readonly pubkey: string; readonly name: string; readonly role: string; readonly joined_at: number };

type MembersOptions = CommonOptions & { readonly keys?: boolean };

/** Who belongs to the mesh, connected or not. */
function defineMembers(command: Command, shell: Shell): void {
  withMesh(command)
    .option("--keys", "whole public keys, for dm:<public key> and `mesh revoke`")
    .action((options: MembersOptions) =>
      run(shell, options, async () => {
        const items = await asMember(shell, pathsFor(shell, options), (call) => readAll<Member>(call, "members.list"));
        const rows = items.map((member) => [
          member.name,
          member.role,
          options.keys === true ? member.pubkey : shortKey(member.pubkey),
        ]);
        const table = formatTable(
          ["NAME", "ROLE", options.keys === true ? "PUBLIC KEY" : "KEY BEGINS WITH"],
          rows,
          shell.columns,
        );
        const shared = sharedNames(items);
        return {
          value: { items },
          text: shared.length === 0 ? table : `${table}\n${hint(shell, explainShared(shared))}`,
        };
      }),
    );
  examples(command, "claudemesh mesh members", "claudemesh mesh members --keys");
}

/** Names that several members have, where upper and lower case do not count: only a mesh from before has them. */
function sharedNames(members: readonly Member[]): string[] {
  const counts = new Map<string, number>();
  for (const { name } of members) counts.set(name.toLowerCase(), (counts.get(name.toLowerCase()) ?? 0) + 1);
  return [...counts].flatMap(([name, count]) => (count > 1 ? [name] : []));
}

function explainShared(names: readonly string[]): string {
  return (
    `Several members are called ${names.join(", ")}: write to them as dm:<public key> (\`claudemesh mesh members --keys\`). ` +
    "To end that, revoke one with `claudemesh mesh revoke <public key>` and invite it under another name."
  );
}

type TokenOptions = { mesh?: string; json?: boolean; label?: string };

/** A bearer token for direct HTTP calls as this member. */
function defineToken(command: Command, shell: Shell): void {
  withMesh(command)
    .option("--label <text>", "a word to recognise it by in the list")
    .action((options: TokenOptions) =>
      run(shell, options, async () => {
        const input = options.label === undefined ? {} : { label: options.label };
        const value = (await asMember(shell, pathsFor(shell, options), (call) => call("token.create", input))) as {
          token: string;
          token_id: string;
        };
        const next = `It is not shown again. Revoke it with: claudemesh mesh token revoke ${value.token_id}`;
        return { value, text: `${value.token}\n${hint(shell, next)}` };
      }),
    );
  examples(command, "claudemesh mesh token --label ci", "claudemesh mesh token list");
}

type Token = {
  readonly token_id: string;
  readonly label: string;
  readonly created_at: number;
  readonly revoked_at: number | null;
};

/** This member's tokens; never the secrets. */
function defineTokenList(command: Command, shell: Shell): void {
  withTimes(withMesh(command)).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const items = await asMember(shell, pathsFor(shell, options), (call) => readAll<Token>(call, "token.list"));
      const rows = items.map((token) => [
        token.token_id,
        timeCell(token.created_at),
        stateCell(token.revoked_at === null ? "live" : "revoked"),
        token.label,
      ]);
      return { value: { items }, text: formatTable(["TOKEN ID", "CREATED", "STATE", "LABEL"], rows, shell.columns) };
    }),
  );
  examples(command, "claudemesh mesh token list");
}

/** The token stops working at once. */
function defineTokenRevoke(command: Command, shell: Shell): void {
  withYes(withMesh(command))
    .argument("<token-id>", "from `claudemesh mesh token list`")
    .action((tokenId: string, options: CommonOptions & Confirmable) =>
      run(shell, options, async () => {
        await confirm(shell, options, `The token ${tokenId} will be good for nothing any more.`);
        const input = { token_id: tokenId };
        const value = await asMember(shell, pathsFor(shell, options), (call) => call("token.revoke", input));
        return { value, text: `${tokenId} is revoked.` };
      }),
    );
  examples(command, "claudemesh mesh token revoke 0198c0de-0000-7000-8000-000000000000");
}

/** Makes a member an owner, or an owner a plain member. Only an owner may. */
function defineRole(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<member>", "public key, or a name that only one member has", memberOrKey)
    .argument("<role>", "owner or member", parseRole)
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

function parseRole(text: string): string {
  if (text === "owner" || text === "member") return text;
  throw new InvalidArgumentError("A role is owner or member.");
}

/** Ends a membership at once, for good. Only an owner may. */
function defineRevoke(command: Command, shell: Shell): void {
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
