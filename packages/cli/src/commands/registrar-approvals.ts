// `claudemesh registrar approvals`: approvals and what became of them; never a nonce.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh, withTimes } from "../command.ts";
import { asMember, readAll } from "../member.ts";
import { formatTable, stateCell } from "../output/table.ts";
import { timeCell } from "../output/times.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Approval = Readonly<Record<"approval_id" | "state" | "purpose" | "operation" | "target" | "run_id", string>> & {
  readonly not_after: number;
};

export function define(command: Command, shell: Shell): void {
  withTimes(withMesh(command)).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const items = await asMember(shell, pathsFor(shell, options), (call) =>
        readAll<Approval>(call, "registrar.approvals"),
      );
      const rows = items.map((item) => [
        item.approval_id,
        stateCell(item.state),
        item.purpose,
        item.operation,
        item.target,
        item.run_id,
        timeCell(item.not_after),
      ]);
      const header = ["APPROVAL", "STATE", "PURPOSE", "OPERATION", "TARGET", "RUN", "GOOD UNTIL"];
      return { value: { items }, text: formatTable(header, rows, shell.columns) };
    }),
  );
  examples(command, "claudemesh registrar approvals", "claudemesh registrar approvals --json");
}
