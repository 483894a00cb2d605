// Acknowledging and giving back leased messages, for the two commands that do it.
import { run } from "./command.ts";
import { withDaemon } from "./daemon-access.ts";
import { expectBody } from "./exit-codes.ts";
import { describeSettled } from "./output/queue-outcome.ts";
import { pathsFor, type Shell } from "./shell.ts";

export type SettleOptions = { readonly mesh?: string; readonly json?: boolean; readonly token: string };

export function settleLeased(
  shell: Shell,
  how: "ack" | "nack",
  queue: string,
  brokerMessageIds: readonly string[],
  options: SettleOptions,
): Promise<void> {
  return run(shell, options, async () => {
    const body = { lease_token: options.token, broker_message_ids: [...brokerMessageIds] };
    const value = await withDaemon(shell, pathsFor(shell, options), async (daemon) =>
      expectBody(await daemon[how](queue, body)),
    );
    return { value, text: describeSettled(how === "ack" ? "acked" : "nacked", value) };
  });
}
