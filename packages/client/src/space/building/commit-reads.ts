// Turns what a transaction touched into the reads that its commit names: own writes of the same transaction are looked
// through, a read that depends on unconfirmed commits names all of them, and the rest are reads of confirmed state.
import type { CommitReads, ConfirmedRead, PendingRead } from "@claudemesh/protocol/spaces/commit";
import { type BranchId, defaultBranch, spaceLimits } from "@claudemesh/protocol/spaces/entity";
import type { PathRead } from "@claudemesh/protocol/spaces/footprint";
import { spreadOverMoves } from "@claudemesh/protocol/spaces/pending-reads";
import { collapseReads, layersRead } from "@claudemesh/protocol/spaces/read-recording";
import { movesContent, type Touch, touchCovers, touchOverlaps } from "@claudemesh/protocol/spaces/touch";
import type { EntityTiers } from "../tiers/entity-tiers.ts";

/** The reads of one entity, each with what the transaction itself had written there before. */
export type EntityReads = {
  readonly entity: EntityTiers;
  readonly reads: readonly { readonly read: PathRead; readonly ownTouches: readonly Touch[] }[];
};

/** More reads of one entity than this become one read of the whole entity. */
const readsPerEntity = 500;

export function commitReads(branchSeq: number, touched: readonly EntityReads[]): CommitReads {
  const reads = collect(branchSeq, touched, readsPerEntity);
  if (
    reads.confirmed.length <= spaceLimits.confirmedReadsPerCommit &&
    reads.pending.length <= spaceLimits.pendingReadsPerCommit
  ) {
    return reads;
  }
  return collect(branchSeq, touched, 1);
}

function collect(
  branchSeq: number,
  touched: readonly EntityReads[],
  limitPerEntity: number,
): { readonly confirmed: ConfirmedRead[]; readonly pending: PendingRead[] } {
  const confirmed: ConfirmedRead[] = [];
  const pending: PendingRead[] = [];
  for (const { entity, reads } of touched) {
    const { id } = entity;
    const below = reads.flatMap(({ read, ownTouches }) => readsBelow(read, ownTouches));
    const collapsed = collapseReads(below);
    const seq = entity.basisSeq(branchSeq);
    const layers = entity.layers();
    for (const read of collapsed.length > limitPerEntity ? [{ path: [] }] : collapsed) {
      const named = layersRead(read, layers);
      if (named.length === 0) confirmed.push({ id, ...read, seq });
      for (const localSeq of named) pending.push({ id, ...read, localSeq, basisSeq: seq });
    }
  }
  return { confirmed, pending };
}

/** What a read, made after own writes of the same transaction, depends on in the state under them. */
export function readsBelow(read: PathRead, ownTouches: readonly Touch[]): readonly PathRead[] {
  if (ownTouches.length === 0) return [read];
  // The transaction has written the whole document: wherever its content moved since, it is the transaction's own.
  if (ownTouches.some((touch) => touchCovers(touch, []))) return [];
  const cover = ownTouches.findLastIndex((touch) => touchCovers(touch, read.path));
  const later = ownTouches.slice(cover + 1);
  const isOwn = cover >= 0 && !later.some((touch) => movesContent(touch) && touchOverlaps(touch, read));
  return isOwn ? [] : spreadOverMoves(read, ownTouches);
}

export function branchField(branch: BranchId): { readonly branch?: BranchId } {
  return branch === defaultBranch ? {} : { branch };
}
