// What a start does with what the last process left behind: tries that were cut off become unanswered tries, and due
// times from a clock that ran ahead are brought back.
import type { BackoffBounds } from "@claudemesh/protocol/messages/backoff";
import type { Log, OutboxStore } from "../ports.ts";

export async function resumeOutbox(
  outbox: Pick<OutboxStore, "resumeInflight" | "boundDueTimes">,
  nowMs: number,
  backoff: BackoffBounds,
  log: Log,
): Promise<void> {
  const interrupted = await outbox.resumeInflight(nowMs);
  const broughtForward = await outbox.boundDueTimes(nowMs + backoff.maxMs);
  if (interrupted + broughtForward === 0) return;
  const fields = { event: "outbox_recovered", interrupted, brought_forward: broughtForward };
  log.info(fields, "the outbox is as the last process left it, with its open tries counted as unanswered");
}
