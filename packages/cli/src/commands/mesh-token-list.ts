// `claudemesh mesh token list`: this member's tokens; never the secrets.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh, withTimes } from "../command.ts";
import { asMember, readAll } from "../member.ts";
import { formatTable, stateCell } from "../output/table.ts";
import { timeCell } from "../output/times.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Token = {
  readonly token_id: string;
  readonly label: string;
  readonly created_at: number;
  readonly revoked_at: number | null;
};

export function define(command: Command, shell: Shell): void {
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
