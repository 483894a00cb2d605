// `claudemesh topic create`: again with the same policy is fine; with another it is a conflict.
import { type Command, Option } from "commander";
import { topicName } from "../bare-names.ts";
import { examples, run, withMesh } from "../command.ts";
import { hint } from "../hints.ts";
import { asMember } from "../member.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Options = { mesh?: string; json?: boolean; postPolicy: string };

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<name>", "name of the topic", topicName)
    .addOption(
      new Option("--post-policy <policy>", "who may post").choices(["members", "subscribers"]).default("members"),
    )
    .action((name: string, options: Options) =>
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
