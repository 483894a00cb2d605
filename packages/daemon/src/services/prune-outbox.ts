// Pruning on an operator's word: `POST /v1/outbox/prune` without HTTP. The same small steps as the automatic prune, so
// that no step holds up a send; bounded in time, so that the operator hears how it went.
import type { Pruned } from "@claudemesh/client/daemon";
import type { Clock, Log, OutboxStore } from "../ports.ts";

export type PrunePorts = {
  readonly outbox: Pick<OutboxStore, "prune">;
  readonly clock: Pick<Clock, "nowMs">;
  readonly log: Log;
};

const dayMs = 86_400_000;
const rowsPerStep = 256;
const boundMs = 10_000;

export async function pruneOutbox(ports: PrunePorts, olderThanDays: number): Promise<Pruned> {
  const nowMs = ports.clock.nowMs();
  const deliveredBefore = nowMs - olderThanDays * dayMs;
  let made = 0;
  let more = true;
  while (more && ports.clock.nowMs() - nowMs < boundMs) {
    const rows = await ports.outbox.prune(deliveredBefore, nowMs, rowsPerStep);
    made += rows;
    more = rows === rowsPerStep;
  }
  if (made > 0) ports.log.info({ event: "outbox_pruned", rows: made }, "done rows became tombstones, as asked");
  return { tombstones_made: made, more };
}
