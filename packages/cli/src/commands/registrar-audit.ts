// `claudemesh registrar audit`: what was refused, to whom, and what was only counted.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh, withTimes } from "../command.ts";
import { asMember, readAll } from "../member.ts";
import { readNames } from "../member-names.ts";
import { formatTable } from "../output/table.ts";
import { timeCell } from "../output/times.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Entry = {
  readonly kind: "refusal" | "summary";
  readonly at: number;
  readonly member_pubkey: string;
  readonly code?: string;
  readonly conflict?: string;
  readonly logical_request_key?: string;
  readonly approval_id?: string;
  readonly suppressed?: number;
};

export function define(command: Command, shell: Shell): void {
  withTimes(withMesh(command)).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const paths = pathsFor(shell, options);
      const items = await asMember(shell, paths, (call) => readAll<Entry>(call, "registrar.audit"));
      const nameOf = await readNames(shell, paths, options);
      const rows = items.map((entry) => [
        timeCell(entry.at),
        entry.kind === "summary" ? `${entry.suppressed} more refusals` : (entry.code ?? ""),
        entry.conflict ?? "",
        entry.logical_request_key ?? "",
        entry.approval_id ?? "",
        nameOf(entry.member_pubkey),
      ]);
      const header = ["AT", "REFUSED", "CONFLICT", "KEY", "APPROVAL", "MEMBER"];
      return { value: { items }, text: formatTable(header, rows, shell.columns) };
    }),
  );
  examples(command, "claudemesh registrar audit", "claudemesh registrar audit --json");
}
