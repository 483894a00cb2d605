// `claudemesh topic list`: who hears the topics of a mesh, and how much was said.
import type { Topic } from "@claudemesh/client/daemon";
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh, withTimes } from "../command.ts";
import { readMeshList, showCount } from "../mesh-lists.ts";
import { formatTable } from "../output/table.ts";
import { timeCell } from "../output/times.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withTimes(withMesh(command)).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const items = await readMeshList<Topic>(shell, pathsFor(shell, options), {
        fromDaemon: (daemon, query) => daemon.topics({ ...query, counts: true }),
        operation: "topic.list",
        input: { counts: true },
      });
      const rows = items.map((topic) => [
        topic.name,
        topic.post_policy,
        topic.subscribed ? "yes" : "no",
        showCount(topic.subscribers ?? 0),
        String(topic.messages ?? 0),
        timeCell(topic.last_message_at),
      ]);
      const heads = ["TOPIC", "WHO MAY POST", "SUBSCRIBED", "SUBSCRIBERS", "MESSAGES", "LAST MESSAGE"];
      return { value: { items }, text: formatTable(heads, rows, shell.columns) };
    }),
  );
  examples(command, "claudemesh topic list", "claudemesh topic list --json");
}
