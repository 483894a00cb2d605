// `claudemesh registrar approvals`: approvals and what became of them; never a nonce.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { asMember, readAll } from "../member.ts";
import { formatTable, formatTime } from "../output/table.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Approval = Readonly<Record<"approval_id" | "state" | "purpose" | "operation" | "target" | "run_id", string>> & {
  readonly not_after: number;
};

export function define(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const items = await asMember(shell, pathsFor(shell, options), (call) =>
        readAll<Approval>(call, "registrar.approvals"),
      );
      const rows = items.map((item) => [
        item.approval_id,
        item.state,
        item.purpose,
        item.operation,
        item.target,
        item.run_id,
        formatTime(item.not_after),
      ]);
      const header = ["APPROVAL", "STATE", "PURPOSE", "OPERATION", "TARGET", "RUN", "GOOD UNTIL"];
      return { value: { items }, text: formatTable(header, rows, shell.columns) };
    }),
  );
  examples(command, "claudemesh registrar approvals", "claudemesh registrar approvals --json");
}
