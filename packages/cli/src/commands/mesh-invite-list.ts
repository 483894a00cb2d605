// `claudemesh mesh invite list`: the mesh's invites, never the secrets. Only an owner may.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { asMember, readAll } from "../member.ts";
import { formatTable, formatTime } from "../output/table.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Invite = {
  readonly invite_id: string;
  readonly state: string;
  readonly name: string | null;
  readonly created_at: number;
  readonly expires_at: number;
  readonly used_by: string | null;
};

export function define(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const items = await asMember(shell, pathsFor(shell, options), (call) => readAll<Invite>(call, "invite.list"));
      const rows = items.map((invite) => [
        invite.invite_id,
        invite.state,
        invite.name ?? "-",
        formatTime(invite.created_at),
        formatTime(invite.expires_at),
        invite.used_by ?? "-",
      ]);
      const head = ["INVITE ID", "STATE", "NAME", "CREATED", "EXPIRES", "USED BY"];
      return { value: { items }, text: formatTable(head, rows, shell.columns) };
    }),
  );
  examples(command, "claudemesh mesh invite list");
}
