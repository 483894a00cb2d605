// `claudemesh registrar list`: every registration of the mesh, in order.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh, withTimes } from "../command.ts";
import { asMember, readAll } from "../member.ts";
import { formatTable, stateCell } from "../output/table.ts";
import { timeCell } from "../output/times.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Listed = {
  readonly state: string;
  readonly registration: Readonly<Record<"logical_request_key" | "operation" | "target" | "run_id", string>> & {
    readonly artifact_hash: string;
    readonly registered_at: number;
  };
};

export function define(command: Command, shell: Shell): void {
  withTimes(withMesh(command)).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const items = await asMember(shell, pathsFor(shell, options), (call) =>
        readAll<Listed>(call, "registrar.registrations"),
      );
      const rows = items.map(({ state, registration }) => [
        timeCell(registration.registered_at),
        stateCell(state),
        registration.logical_request_key,
        registration.operation,
        registration.target,
        registration.run_id,
        registration.artifact_hash.slice(0, 12),
      ]);
      const header = ["REGISTERED", "STATE", "KEY", "OPERATION", "TARGET", "RUN", "ARTIFACT"];
      return { value: { items }, text: formatTable(header, rows, shell.columns) };
    }),
  );
  examples(command, "claudemesh registrar list", "claudemesh registrar list --json");
}
