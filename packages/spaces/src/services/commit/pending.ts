// Pending reads: which commits of the session they name, what became of those, and which writes would make them stale.
import { MeshError } from "@claudemesh/protocol/errors";
import {
  decidePendingRead,
  type GroupedPendingRead,
  groupPendingReads,
  type NamedLayer,
  type PendingRead,
} from "@claudemesh/protocol/spaces/pending-reads";
import type { Work } from "@claudemesh/protocol/spaces/work";
import type { Branch } from "../../core/branch-lineage.ts";
import type { ReadToCheck } from "../../core/stale-reads.ts";
import type { ResolvedPendingRead } from "../../core/verdict.ts";
import type { Flow } from "../../ports/flow.ts";
import type { LayerAsk, SessionRow } from "../../ports/rows.ts";
import type { SpaceTransaction } from "../../ports.ts";

export type PendingOutcome =
  | {
      readonly type: "resolved";
      readonly reads: readonly ReadToCheck[];
      readonly resolved: readonly ResolvedPendingRead[];
    }
  /** Final: a commit that this one rests on was rejected. */
  | { readonly type: "rejected"; readonly error: MeshError }
  /** No verdict: the same commit may be sent again, or with a basis. */
  | { readonly type: "refused"; readonly error: MeshError };

export function* resolvePending(
  tx: SpaceTransaction,
  session: SessionRow,
  branch: Branch,
  pending: readonly PendingRead[],
  work: Work,
): Flow<PendingOutcome> {
  if (pending.length === 0) return { type: "resolved", reads: [], resolved: [] };
  const localSeqs = [...new Set(pending.map(({ localSeq }) => localSeq))].sort((a, b) => a - b);
  const verdicts = yield* tx.findVerdicts(session.sessionId, localSeqs);
  const byLocalSeq = new Map(verdicts.map((verdict) => [verdict.localSeq, verdict]));
  const resolved: ResolvedPendingRead[] = [];
  let dead: number | undefined;
  for (const localSeq of localSeqs) {
    const verdict = byLocalSeq.get(localSeq);
    if (verdict === undefined && localSeq > session.lastLocalSeq) {
      return { type: "refused", error: new MeshError("pending_dependency_error", undefined, { localSeq }) };
    }
    if (verdict?.seq === undefined) {
      dead ??= localSeq;
    } else if (verdict.branch !== branch.name) {
      throw new MeshError("invalid_request", `The commit ${localSeq} that a pending read names is on another branch.`, {
        field: "reads.pending",
        localSeq,
      });
    } else {
      resolved.push({ localSeq, seq: verdict.seq });
    }
  }
  if (dead !== undefined) {
    const error = new MeshError("dependency_rejected_error", undefined, { localSeq: dead });
    return { type: "rejected", error };
  }
  return yield* decideReads(tx, branch, groupPendingReads(pending), resolved, work);
}

function* decideReads(
  tx: SpaceTransaction,
  branch: Branch,
  groups: readonly GroupedPendingRead[],
  resolved: readonly ResolvedPendingRead[],
  work: Work,
): Flow<PendingOutcome> {
  const layersOf = yield* readLayers(tx, branch, groups, resolved, work);
  const reads: ReadToCheck[] = [];
  for (const group of groups) {
    const layers = layersOf(group);
    const decision = decidePendingRead(group, layers, work);
    if (decision.kind === "basis_required") {
      const { id, path, localSeqs } = group;
      return { type: "refused", error: new MeshError("basis_required_error", undefined, { id, path, localSeqs }) };
    }
    reads.push({
      entityId: group.id,
      branch,
      scan: decision.scan,
      fromSeq: decision.fromSeq,
      ignoreSeqs: new Set(decision.ignoreSeqs),
      path: group.path,
      expectedSeq: decision.fromSeq,
    });
  }
  return { type: "resolved", reads, resolved };
}

/** The layers that each read names; those of many reads of one entity are looked for once. */
function* readLayers(
  tx: SpaceTransaction,
  branch: Branch,
  groups: readonly GroupedPendingRead[],
  resolved: readonly ResolvedPendingRead[],
  work: Work,
): Flow<(group: GroupedPendingRead) => NamedLayer[]> {
  const seqOf = new Map(resolved.map(({ localSeq, seq }) => [localSeq, seq]));
  const askOf = (entityId: string, localSeq: number): LayerAsk => ({ entityId, seq: seqOf.get(localSeq) ?? 0 });
  const keyOf = ({ entityId, seq }: LayerAsk) => `${seq} ${entityId}`;
  const asks = new Map<string, LayerAsk>();
  for (const { id, localSeqs } of groups) {
    for (const localSeq of localSeqs) {
      const ask = askOf(id, localSeq);
      asks.set(keyOf(ask), ask);
    }
  }
  const found = yield* tx.present.layers(branch.name, [...asks.values()], work);
  const byKey = new Map([...asks.keys()].map((key, index) => [key, found[index] ?? []]));
  return ({ id, localSeqs }) =>
    localSeqs.map((localSeq) => {
      const ask = askOf(id, localSeq);
      return { seq: ask.seq, footprints: byKey.get(keyOf(ask)) ?? [] };
    });
}
