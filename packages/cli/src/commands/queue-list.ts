// `claudemesh queue list`: what waits in the queues of a mesh, and since when.
import type { QueueItem } from "@claudemesh/client/daemon";
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh, withTimes } from "../command.ts";
import { hint } from "../hints.ts";
import { readMeshList, showCount } from "../mesh-lists.ts";
import { formatTable } from "../output/table.ts";
import { timeCell } from "../output/times.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withTimes(withMesh(command)).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const items = await readMeshList<QueueItem>(shell, pathsFor(shell, options), {
        fromDaemon: (daemon, query) => daemon.queues(query),
        operation: "queue.list",
      });
      return { value: { items }, text: describe(items, shell) };
    }),
  );
  examples(command, "claudemesh queue list", "claudemesh queue list --mesh acme --json");
}

function describe(items: readonly QueueItem[], shell: Shell): string {
  if (items.length === 0) return hint(shell, "There are no queues. Make one with: claudemesh queue create <queue>");
  const rows = items.map((item) => [
    item.id,
    showCount(item.depth),
    showCount(item.leased),
    showCount(item.parked),
    timeCell(item.oldest_at),
    String(item.max_deliveries),
  ]);
  const table = formatTable(
    ["QUEUE", "WAITING", "LEASED", "PARKED", "OLDEST WAITS SINCE", "DELIVERIES"],
    rows,
    shell.columns,
  );
  const parked = items.filter((item) => item.parked > 0);
  return [table, ...parked.map(({ id }) => hint(shell, `Look at what is parked: claudemesh queue parked ${id}`))].join(
    "\n",
  );
}
