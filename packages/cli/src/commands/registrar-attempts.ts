// `claudemesh registrar attempts`: the attempt that won, and who came back after it.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh, withTimes } from "../command.ts";
import { readNames } from "../member-names.ts";
import { formatTable } from "../output/table.ts";
import { timeCell } from "../output/times.ts";
import { registrarOf } from "../registrar-access.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Attempt = {
  readonly attempt_id: string | null;
  readonly member_pubkey: string;
  readonly won: boolean;
  readonly tries: number;
  readonly first_at: number;
  readonly last_at: number;
};

export function define(command: Command, shell: Shell): void {
  withTimes(withMesh(command))
    .argument("<key>", "the request's key")
    .action((key: string, options: CommonOptions) =>
      run(shell, options, async () => {
        const value = await registrarOf(shell, options).attempts(key);
        const nameOf = await readNames(shell, pathsFor(shell, options), options);
        const rows = (value.items as readonly Attempt[]).map((attempt) => [
          attempt.attempt_id ?? "(further ones)",
          attempt.won ? "won" : "retry",
          String(attempt.tries),
          timeCell(attempt.first_at),
          timeCell(attempt.last_at),
          nameOf(attempt.member_pubkey),
        ]);
        const header = ["ATTEMPT", "", "TRIES", "FIRST", "LAST", "MEMBER"];
        return { value, text: formatTable(header, rows, shell.columns) };
      }),
    );
  examples(command, "claudemesh registrar attempts release-42");
}
