// `claudemesh space ls`: the spaces of a mesh.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh, withTimes } from "../command.ts";
import { hint } from "../hints.ts";
import { asMember } from "../member.ts";
import { formatTable } from "../output/table.ts";
import { timeCell } from "../output/times.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { readPages } from "../space/space-pages.ts";

type SpaceItem = {
  readonly name: string;
  readonly seq: number;
  readonly signedWrites: string;
  readonly createdAt: number;
};

export function define(command: Command, shell: Shell): void {
  withTimes(withMesh(command)).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const items = await asMember(shell, pathsFor(shell, options), (call) =>
        readPages<SpaceItem>(call, "space.list", {}),
      );
      const rows = items.map(({ name, seq, signedWrites, createdAt }) => [
        name,
        String(seq),
        signedWrites,
        timeCell(createdAt),
      ]);
      const table = formatTable(["SPACE", "SEQ", "SIGNED WRITES", "CREATED"], rows, shell.columns);
      return {
        value: { items },
        text: items.length === 0 ? hint(shell, "No space yet: claudemesh space create <name>") : table,
      };
    }),
  );
  examples(command, "claudemesh space ls", "claudemesh space ls --json");
}
