// Removes what is older than it has to be, in bounded steps that meshes take in turn. The caller sets the pace: a
// worker rests between steps, a command does not.
// Why: docs/decisions/0032.
import type { ForgetStep, HousekeepingStore, SweepCounts, SweepTerms } from "../ports/housekeeping.ts";
import type { PresenceStore } from "../ports/presence.ts";

export type SweepPorts = {
  readonly store: {
    readonly housekeeping: Pick<HousekeepingStore, "meshes" | "sweepMesh" | "forgetIds">;
    readonly presence: Pick<PresenceStore, "sweep">;
    readonly sweepLimiter: (nowMs: number, limit: number) => Promise<number>;
  };
  readonly nowMs: () => number;
  /** Undefined where messages are kept for ever. */
  readonly messageRetentionMs: number | undefined;
  /** Undefined where ids are kept for ever. */
  readonly dedupeRetentionMs: number | undefined;
};

const meshesPerPage = 256;
const rowsPerStep = 1_000;

/**
 * Yields what each step has removed. At its end nothing is left that was due when it began; without `forgetting`, but
 * ids: finding these may mean reading all of them, and nothing depends on their going soon.
 */
export async function* sweep(
  ports: SweepPorts,
  options: { readonly forgetting: boolean },
): AsyncGenerator<SweepCounts, void> {
  const { store, nowMs } = ports;
  yield* repeat("presence_leases", () => store.presence.sweep(nowMs(), rowsPerStep));
  yield* repeat("limiter_rows", () => store.sweepLimiter(nowMs(), rowsPerStep));
  const unfinished = new Set<MeshSweep>();
  let after = "";
  for (;;) {
    const meshes = await store.housekeeping.meshes(after, meshesPerPage);
    for (const meshId of meshes) unfinished.add(sweepMesh(ports, meshId, options));
    yield* takeTurns(unfinished);
    const last = meshes.at(-1);
    if (last === undefined) break;
    after = last;
  }
  while (unfinished.size > 0) yield* takeTurns(unfinished);
}

type MeshSweep = AsyncGenerator<SweepCounts, void>;

/** One step of each: a mesh with much to remove, or with many ids to look through, keeps no other waiting. */
async function* takeTurns(sweeps: Set<MeshSweep>): AsyncGenerator<SweepCounts, void> {
  for (const sweeping of sweeps) {
    const { done, value } = await sweeping.next();
    if (done === true) sweeps.delete(sweeping);
    else yield value;
  }
}

async function* sweepMesh(ports: SweepPorts, meshId: string, options: { readonly forgetting: boolean }): MeshSweep {
  let more = true;
  while (more) {
    const step = await ports.store.housekeeping.sweepMesh(meshId, termsOf(ports));
    yield step.counts;
    more = step.more;
  }
  if (options.forgetting && ports.dedupeRetentionMs !== undefined) yield* forget(ports, meshId);
}

/** From beginning to end, without a rest. */
export async function sweepAll(ports: SweepPorts): Promise<SweepCounts> {
  let total: SweepCounts = {};
  for await (const counts of sweep(ports, { forgetting: true })) total = addCounts(total, counts);
  return total;
}

export function addCounts(a: SweepCounts, b: SweepCounts): SweepCounts {
  const sum: Record<string, number> = { ...a };
  for (const [kind, rows] of Object.entries(b)) if (rows > 0) sum[kind] = (sum[kind] ?? 0) + rows;
  return sum;
}

async function* forget({ store, nowMs }: SweepPorts, meshId: string): MeshSweep {
  let after: string | undefined = "";
  while (after !== undefined) {
    const step: ForgetStep = await store.housekeeping.forgetIds(meshId, after, nowMs());
    yield step.counts;
    after = step.next;
  }
}

async function* repeat(kind: "presence_leases" | "limiter_rows", step: () => Promise<number>) {
  for (;;) {
    const rows = await step();
    yield { [kind]: rows };
    if (rows < rowsPerStep) return;
  }
}

function termsOf({ nowMs, messageRetentionMs, dedupeRetentionMs }: SweepPorts): SweepTerms {
  const now = nowMs();
  return {
    nowMs: now,
    messagesBeforeMs: messageRetentionMs === undefined ? undefined : now - messageRetentionMs,
    forgetIds: dedupeRetentionMs !== undefined,
    leasesBeforeMs: dedupeRetentionMs === undefined ? undefined : now - dedupeRetentionMs,
  };
}
