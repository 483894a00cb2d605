// What has to be done now and then: old done rows become tombstones, and so do old messages, read or not, where that is
// asked for. In small steps, so that no step holds up a send.
import type { Clock, InboxStore, Log, OutboxStore } from "../ports.ts";

export type HousekeepingPorts = {
  readonly outbox: Pick<OutboxStore, "prune">;
  readonly inbox: Pick<InboxStore, "removeReceivedBefore">;
  readonly clock: Pick<Clock, "nowMs">;
  readonly log: Log;
};

export type HousekeepingOptions = {
  readonly doneRetentionDays: number;
  /** Undefined: messages are kept for ever. */
  readonly inboxRetentionDays: number | undefined;
};

const dayMs = 86_400_000;
const rowsPerStep = 256;

/** `isStopping` is looked at between steps. */
export async function keepHouse(
  ports: HousekeepingPorts,
  options: HousekeepingOptions,
  isStopping: () => boolean,
): Promise<void> {
  const nowMs = ports.clock.nowMs();
  const doneBefore = nowMs - options.doneRetentionDays * dayMs;
  const pruned = await inSteps(() => ports.outbox.prune(doneBefore, nowMs, rowsPerStep), isStopping);
  let removed = 0;
  if (options.inboxRetentionDays !== undefined) {
    const receivedBefore = nowMs - options.inboxRetentionDays * dayMs;
    removed = await inSteps(() => ports.inbox.removeReceivedBefore(receivedBefore, nowMs, rowsPerStep), isStopping);
  }
  if (pruned + removed > 0) {
    ports.log.info({ event: "housekeeping", outbox_pruned: pruned, inbox_removed: removed }, "old rows were put away");
  }
}

async function inSteps(step: () => Promise<number>, isStopping: () => boolean): Promise<number> {
  let total = 0;
  for (;;) {
    if (isStopping()) return total;
    const rows = await step();
    total += rows;
    if (rows < rowsPerStep) return total;
  }
}
