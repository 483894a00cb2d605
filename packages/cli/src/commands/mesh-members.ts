// `claudemesh mesh members`: who belongs to the mesh, connected or not.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { hint } from "../hints.ts";
import { asMember, readAll } from "../member.ts";
import { shortKey } from "../output/members.ts";
import { formatTable } from "../output/table.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Member = { readonly pubkey: string; readonly name: string; readonly role: string; readonly joined_at: number };

type Options = CommonOptions & { readonly keys?: boolean };

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .option("--keys", "whole public keys, for dm:<public key> and `mesh revoke`")
    .action((options: Options) =>
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
