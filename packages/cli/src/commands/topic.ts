// `claudemesh topic …`: topics of a mesh.

import type { Topic } from "@claudemesh/client/daemon";
import { type Command, Option } from "commander";
import { type Commands, type CommonOptions, examples, run, withMesh, withTimes } from "../command.ts";
import { hint } from "../hints.ts";
import { topicName } from "../input/arguments.ts";
import { asMember } from "../mesh/member.ts";
import { readMeshList, showCount } from "../mesh/mesh-lists.ts";
import { formatTable } from "../output/table.ts";
import { timeCell } from "../output/times.ts";
import { pathsFor, type Shell } from "../shell.ts";

export const commands = {
  "topic create": defineCreate,
  "topic list": defineList,
  "topic subscribe": defineSubscribe,
  "topic unsubscribe": defineUnsubscribe,
} satisfies Commands;

type CreateOptions = { mesh?: string; json?: boolean; postPolicy: string };

/** Again with the same policy is fine; with another it is a conflict. */
function defineCreate(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<name>", "name of the topic", topicName)
    .addOption(
      new Option("--post-policy <policy>", "who may post").choices(["members", "subscribers"]).default("members"),
    )
    .action((name: string, options: CreateOptions) =>
      run(shell, options, async () => {
        const input = { name, post_policy: options.postPolicy };
        const value = await asMember(shell, pathsFor(shell, options), (call) => call("topic.create", input));
        return {
          value,
          text: hint(shell, `Topic ${name} is there. Receive it with: claudemesh topic subscribe ${name}`),
        };
      }),
    );
  examples(command, "claudemesh topic create builds", "claudemesh topic create alerts --post-policy subscribers");
}

/** Who hears the topics of a mesh, and how much was said. */
function defineList(command: Command, shell: Shell): void {
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

/** Again changes nothing more. */
function defineSubscribe(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<name>", "name of the topic", topicName)
    .action((name: string, options: CommonOptions) =>
      run(shell, options, async () => {
        const value = await asMember(shell, pathsFor(shell, options), (call) => call("topic.subscribe", { name }));
        return { value, text: `You receive #${name} from now on.` };
      }),
    );
  examples(command, "claudemesh topic subscribe builds");
}

/** Again changes nothing more. */
function defineUnsubscribe(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<name>", "name of the topic", topicName)
    .action((name: string, options: CommonOptions) =>
      run(shell, options, async () => {
        const value = await asMember(shell, pathsFor(shell, options), (call) => call("topic.unsubscribe", { name }));
        return { value, text: `You no longer receive #${name}.` };
      }),
    );
  examples(command, "claudemesh topic unsubscribe builds");
}
