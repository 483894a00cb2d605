// `claudemesh topic subscribe`: again changes nothing more.
import type { Command } from "commander";
import { topicName } from "../bare-names.ts";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { asMember } from "../member.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
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
