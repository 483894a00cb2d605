// `claudemesh mesh invite list`: the mesh's invites, never the secrets. Only an owner may.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh, withTimes } from "../command.ts";
import { asMember, readAll } from "../member.ts";
import { readNames } from "../member-names.ts";
import { formatTable, stateCell } from "../output/table.ts";
import { timeCell } from "../output/times.ts";
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
