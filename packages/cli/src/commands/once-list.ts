// `claudemesh once list`: the keys of `once` in a mesh, or only those of which nobody knows whether their effect happened.
import type { OnceItem } from "@claudemesh/client/daemon";
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh, withTimes } from "../command.ts";
import { hint } from "../hints.ts";
import { readNames } from "../member-names.ts";
import { readMeshList } from "../mesh-lists.ts";
import type { NameOf } from "../output/members.ts";
import { formatTable, stateCell } from "../output/table.ts";
import { timeCell } from "../output/times.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Options = CommonOptions & { readonly uncertain?: boolean };

export function define(command: Command, shell: Shell): void {
  withTimes(withMesh(command))
    .option("--uncertain", "only keys whose lease ended and of which nothing was recorded")
    .action((options: Options) => run(shell, options, () => list(shell, options)));
  examples(command, "claudemesh once list", "claudemesh once list --uncertain --json");
}

async function list(shell: Shell, options: Options) {
  const paths = pathsFor(shell, options);
  const state = options.uncertain === true ? ({ state: "uncertain" } as const) : {};
  const items = await readMeshList<OnceItem>(shell, paths, {
    fromDaemon: (daemon, query) => daemon.onceKeys({ ...query, ...state }),
    operation: "once.list",
    input: state,
  });
  return {
    value: { items },
    text: describe(items, options.uncertain === true, shell, await readNames(shell, paths, options)),
  };
}

function describe(items: readonly OnceItem[], onlyUncertain: boolean, shell: Shell, nameOf: NameOf): string {
  if (items.length === 0) return onlyUncertain ? "No key is uncertain." : "There are no keys.";
  const rows = items.map((item) => [
    item.key,
    stateCell(item.state),
    String(item.epoch),
    timeCell(item.claimed_at),
    timeCell(item.settled_at ?? item.lease_until),
    nameOf(item.holder_pubkey),
  ]);
  const table = formatTable(
    ["KEY", "STATE", "EPOCH", "CLAIMED", "SETTLED, OR LEASE UNTIL", "HOLDER"],
    rows,
    shell.columns,
  );
  const uncertain = items.find(({ state }) => state === "uncertain");
  if (uncertain === undefined) return table;
  const { key, epoch } = uncertain;
  const next = hint(shell, `claudemesh once ${key} --resolve done --epoch ${epoch}, or --resolve not-done`);
  return `${table}\nLook whether its effect happened, then say so: ${next}`;
}
