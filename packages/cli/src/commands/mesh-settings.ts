// `claudemesh mesh settings`: what holds for the whole mesh, and what an owner may make of it.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { hint } from "../hints.ts";
import { asMember } from "../member.ts";
import { formatTable } from "../output/table.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Setting = {
  readonly key: string;
  readonly value: string | number;
  readonly default: string | number;
  readonly maximum: number | null;
  readonly meaning: string;
};

export function define(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const value = (await asMember(shell, pathsFor(shell, options), (call) => call("mesh.settings", {}))) as {
        items: Setting[];
      };
      const rows = value.items.map((item) => [
        item.key,
        String(item.value),
        String(item.default),
        item.maximum === null ? "-" : String(item.maximum),
        item.meaning,
      ]);
      const table = formatTable(["KEY", "VALUE", "DEFAULT", "UP TO", "WHAT IT MEANS"], rows, shell.columns);
      return {
        value,
        text: `${table}\n${hint(shell, "An owner changes one with: claudemesh mesh set <key> <value>")}`,
      };
    }),
  );
  examples(command, "claudemesh mesh settings", "claudemesh mesh settings --json");
}
