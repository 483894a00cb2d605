// Retention: done rows of the outbox become tombstones after their time, and so do old messages of the inbox, read or
// not, where the settings ask for it. The daemon applies it by itself, and an operator may ask for the outbox's part
// (`POST /v1/outbox/prune`). Both work in small steps, so that no step holds up a send.
import type { Pruned } from "@claudemesh/client/daemon";
import type { Clock, InboxStore, Log, OutboxStore } from "../ports.ts";

export type PrunePorts = {
  readonly outbox: Pick<OutboxStore, "prune">;
  readonly clock: Pick<Clock, "nowMs">;
  readonly log: Log;
};

export type RetentionPorts = PrunePorts & { readonly inbox: Pick<InboxStore, "removeReceivedBefore"> };

export type RetentionSettings = {
  readonly doneRetentionDays: number;
  /** Messages are kept for ever where this is undefined. */
  readonly inboxRetentionDays: number | undefined;
};

const dayMs = 86_400_000;
const rowsPerStep = 256;
/** An operator waits for the answer, so pruning as asked ends after this long and says whether there is more. */
const pruneBoundMs = 10_000;

/** Asks `isStopping` before each step. */
export async function runRetention(
  ports: RetentionPorts,
  settings: RetentionSettings,
  isStopping: () => boolean,
): Promise<void> {
  const nowMs = ports.clock.nowMs();
  const doneBefore = nowMs - settings.doneRetentionDays * dayMs;
  const pruned = await inSteps(() => ports.outbox.prune(doneBefore, nowMs, rowsPerStep), isStopping);
  let removed = 0;
  if (settings.inboxRetentionDays !== undefined) {
    const receivedBefore = nowMs - settings.inboxRetentionDays * dayMs;
    const step = () => ports.inbox.removeReceivedBefore(receivedBefore, nowMs, rowsPerStep);
    removed = (await inSteps(step, isStopping)).rows;
  }
  if (pruned.rows + removed > 0) {
    const fields = { event: "housekeeping", outbox_pruned: pruned.rows, inbox_removed: removed };
    ports.log.info(fields, "old rows were put away");
  }
}

/** Turns done rows into tombstones on an operator's request. */
export async function pruneOutbox({ outbox, clock, log }: PrunePorts, olderThanDays: number): Promise<Pruned> {
  const nowMs = clock.nowMs();
  const deliveredBefore = nowMs - olderThanDays * dayMs;
  const isOverBound = () => clock.nowMs() - nowMs >= pruneBoundMs;
  const { rows, more } = await inSteps(() => outbox.prune(deliveredBefore, nowMs, rowsPerStep), isOverBound);
  if (rows > 0) log.info({ event: "outbox_pruned", rows }, "done rows became tombstones, as asked");
  return { tombstones_made: rows, more };
}

/** `more` is true where the caller stopped the steps before one of them was not full. */
async function inSteps(
  step: () => Promise<number>,
  mustStop: () => boolean,
): Promise<{ readonly rows: number; readonly more: boolean }> {
  let total = 0;
  while (!mustStop()) {
    const rows = await step();
    total += rows;
    if (rows < rowsPerStep) return { rows: total, more: false };
  }
  return { rows: total, more: true };
}
