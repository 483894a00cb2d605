// `claudemesh queue create`: again with the same settings is fine; with others it is a conflict.
import { type Command, InvalidArgumentError } from "commander";
import { queueName } from "../bare-names.ts";
import { examples, run, withMesh } from "../command.ts";
import { hint } from "../hints.ts";
import { asMember } from "../member.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Options = { mesh?: string; json?: boolean; maxDeliveries?: number };

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<queue>", "id of the queue", queueName)
    .option("--max-deliveries <n>", "after so many a message is parked (default: 5)", parseCount)
    .action((queue: string, options: Options) =>
      run(shell, options, async () => {
        const { maxDeliveries } = options;
        const input = { queue, ...(maxDeliveries === undefined ? {} : { max_deliveries: maxDeliveries }) };
        const value = await asMember(shell, pathsFor(shell, options), (call) => call("queue.create", input));
        return {
          value,
          text: hint(shell, `Queue ${queue} is there. Fill it with: claudemesh send queue:${queue} "…"`),
        };
      }),
    );
  examples(command, "claudemesh queue create builds", "claudemesh queue create builds --max-deliveries 3");
}

export function parseCount(text: string): number {
  const count = /^[1-9][0-9]{0,8}$/.test(text) ? Number(text) : 0;
  if (count === 0) throw new InvalidArgumentError("It takes a whole number from 1 on.");
  return count;
}
