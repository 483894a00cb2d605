// `claudemesh topic list`.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { asMember, readAll } from "../member.ts";
import { formatTable } from "../output/table.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Topic = { readonly name: string; readonly post_policy: string; readonly subscribed: boolean };

export function define(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const items = await asMember(shell, pathsFor(shell, options), (call) => readAll<Topic>(call, "topic.list"));
      const rows = items.map((topic) => [topic.name, topic.post_policy, topic.subscribed ? "yes" : "no"]);
      return { value: { items }, text: formatTable(["TOPIC", "WHO MAY POST", "SUBSCRIBED"], rows, shell.columns) };
    }),
  );
  examples(command, "claudemesh topic list");
}
