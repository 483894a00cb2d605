// `claudemesh queue revive`: parked messages wait again, with a fresh count of deliveries.
import type { Command } from "commander";
import { queueName } from "../bare-names.ts";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { asMember } from "../member.ts";
import { describeRevived } from "../output/queue-outcome.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<queue>", "id of the queue", queueName)
    .argument("<broker-message-id...>", "from `claudemesh queue parked`")
    .action((queue: string, ids: string[], options: CommonOptions) =>
      run(shell, options, async () => {
        const input = { queue, broker_message_ids: ids };
        const value = await asMember(shell, pathsFor(shell, options), (call) => call("queue.revive", input));
        return { value, text: describeRevived(queue, ids, (value as { readonly revived: number }).revived) };
      }),
    );
  examples(command, "claudemesh queue revive builds 0198c0de-0000-7000-8000-0000000000aa");
}
