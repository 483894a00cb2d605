// `claudemesh daemon status`: what the daemon says of itself.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { withDaemon } from "../daemon-access.ts";
import { expectBody } from "../exit-codes.ts";
import { formatField, formatTable } from "../output/table.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const health = await withDaemon(shell, pathsFor(shell, options), async (daemon) =>
        expectBody(await daemon.health()),
      );
      const table = formatTable(["WHAT", "IS"], flatten(health), shell.columns);
      const isStranger = health.broker.reason === "not_our_broker";
      return { value: health, text: isStranger ? `${stranger}\n${table}` : table };
    }),
  );
  examples(command, "claudemesh daemon status", "claudemesh daemon status --json");
}

const stranger =
  "OFFLINE, NOT OUR BROKER: what answers at its address has not proven the key that this home trusts. Sends are kept.";

function flatten(value: object, prefix = ""): string[][] {
  return Object.entries(value).flatMap(([key, inner]) => {
    const name = prefix === "" ? key : `${prefix}.${key}`;
    if (typeof inner === "object" && inner !== null) return flatten(inner, name);
    return [[name, formatField(name, inner)]];
  });
}
