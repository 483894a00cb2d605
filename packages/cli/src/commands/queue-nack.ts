// `claudemesh queue nack`: leased messages are given back. Again with the same token and ids is safe.
import type { Command } from "commander";
import { queueName } from "../bare-names.ts";
import { examples, withMesh } from "../command.ts";
import { type SettleOptions, settleLeased } from "../queue-settle.ts";
import type { Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<queue>", "id of the queue", queueName)
    .argument("<broker-message-id...>", "messages of the lease")
    .requiredOption("--token <lease-token>", "from `claudemesh queue lease`")
    .action((queue: string, ids: string[], options: SettleOptions) => settleLeased(shell, "nack", queue, ids, options));
  examples(
    command,
    "claudemesh queue nack builds 0198c0de-0000-7000-8000-0000000000aa --token 0198c0de-0000-7000-8000-0000000000bb",
  );
}
