// `claudemesh mesh members`: who belongs to the mesh, connected or not.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { asMember, readAll } from "../member.ts";
import { formatTable } from "../output/table.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Member = { readonly pubkey: string; readonly name: string; readonly role: string; readonly joined_at: number };

export function define(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const items = await asMember(shell, pathsFor(shell, options), (call) => readAll<Member>(call, "members.list"));
      const rows = items.map((member) => [member.name, member.role, member.pubkey]);
      return { value: { items }, text: formatTable(["NAME", "ROLE", "PUBLIC KEY"], rows, shell.columns) };
    }),
  );
  examples(command, "claudemesh mesh members");
}
