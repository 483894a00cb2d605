// OnceStore on SQLite. A call is decided on committed rows first; where that would change something, it is decided again
// inside the group commit, whose write lock makes callers serial.
import assert from "node:assert/strict";
import { isLiveMember } from "@claudemesh/members/sqlite";
import {
  decideOnceClaim,
  decideOnceRecord,
  decideOnceRenewal,
  decideOnceResolve,
  type OnceClaim,
  type OnceDecision,
  type OnceEpoch,
} from "@claudemesh/protocol/registrar/once-state";
import type { GroupCommit } from "@claudemesh/storage/group-commit";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type {
  Admit,
  OnceEpochKey,
  OnceKey,
  OnceListItem,
  OnceListQuery,
  OnceOutcome,
  OnceStore,
} from "../../ports/once-store.ts";
import { admitNew, anything } from "../once-admission.ts";
import { changedValues, epochOf, type OnceRow, onceColumns } from "../once-rows.ts";

export function createSqliteOnceStore(db: Sqlite, commit: GroupCommit): OnceStore {
  const settleIn = async (
    key: OnceKey,
    caller: string,
    decide: (tx: Sqlite) => OnceDecision,
    admit: Admit = anything,
  ): Promise<OnceOutcome> => {
    const admission = await admitNew(async () => decide(db), admit);
    if (admission.type === "answered") return admission.answer;
    return commit.submit((tx): OnceOutcome => {
      if (!isLiveMember(tx, key.meshId, caller)) return { type: "not_a_member" };
      const { answer, next, begins } = decide(tx);
      if (next !== undefined) {
        if (begins) insertEpoch(tx, key, next);
        else updateEpoch(tx, key, next);
      }
      return answer;
    }, "once");
  };
  return {
    claim: (key, claim, nowMs, admit) =>
      settleIn(key, claim.holder, (tx) => decideOnceClaim(selectForClaim(tx, key, claim), claim, nowMs), admit),
    renew: (key, holder, nowMs) =>
      settleIn(key, holder, (tx) => decideOnceRenewal(selectEpoch(tx, key), holder, nowMs)),
    record: (key, record, nowMs) =>
      settleIn(key, record.holder, (tx) => decideOnceRecord(selectEpoch(tx, key), record, nowMs)),
    resolve: (key, resolution, nowMs) =>
      settleIn(key, resolution.by, (tx) => decideOnceResolve(selectEpoch(tx, key), resolution, nowMs)),
    list: async (query) => selectKeys(db, query),
    epochs: async (key, limit) => selectNewest(db, key, limit),
  };
}

const toMs = (time: number): number => time;

function selectNewest(db: Sqlite, { meshId, key }: OnceKey, limit: number): OnceEpoch[] {
  return db
    .sql<OnceRow<number>>(
      `SELECT ${onceColumns} FROM once_claim WHERE mesh_id = ? AND key = ? ORDER BY epoch DESC LIMIT ?`,
    )
    .all(meshId, key, limit)
    .map((row) => epochOf(row, toMs));
}

function selectKeys(db: Sqlite, { meshId, after, limit, unsettled }: OnceListQuery): OnceListItem[] {
  const which = unsettled
    ? "INDEXED BY once_claim_unsettled WHERE c.mesh_id = ? AND c.key > ? AND c.settled_how IS NULL"
    : `WHERE c.mesh_id = ? AND c.key > ? AND NOT EXISTS (SELECT 1 FROM once_claim n
         WHERE n.mesh_id = c.mesh_id AND n.key = c.key AND n.epoch > c.epoch)`;
  return db
    .sql<OnceRow<number> & { key: string }>(
      `SELECT c.key, ${onceColumns} FROM once_claim c ${which} ORDER BY c.key LIMIT ?`,
    )
    .all(meshId, after, limit)
    .map((row) => ({ key: row.key, newest: epochOf(row, toMs) }));
}

function selectForClaim(db: Sqlite, key: OnceKey, claim: OnceClaim) {
  const [newest] = selectNewest(db, key, 1);
  if (newest === undefined) return { newest, own: undefined };
  const row = db
    .sql<OnceRow<number>>(
      `SELECT ${onceColumns} FROM once_claim
       WHERE mesh_id = ? AND key = ? AND holder_pubkey = ? AND claim_id = ?`,
    )
    .get(key.meshId, key.key, claim.holder, claim.claimId);
  return { newest, own: row === undefined ? undefined : epochOf(row, toMs) };
}

function selectEpoch(db: Sqlite, { meshId, key, epoch }: OnceEpochKey): OnceEpoch | undefined {
  const row = db
    .sql<OnceRow<number>>(`SELECT ${onceColumns} FROM once_claim WHERE mesh_id = ? AND key = ? AND epoch = ?`)
    .get(meshId, key, epoch);
  return row === undefined ? undefined : epochOf(row, toMs);
}

function insertEpoch(tx: Sqlite, { meshId, key }: OnceKey, epoch: OnceEpoch): void {
  tx.sql(
    `INSERT INTO once_claim (mesh_id, key, epoch, claim_id, holder_pubkey, inputs_fingerprint, lease_seconds,
       claimed_at, lease_until)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(
    meshId,
    key,
    epoch.epoch,
    epoch.claimId,
    epoch.holder,
    epoch.inputsFingerprint,
    epoch.leaseSeconds,
    epoch.claimedAtMs,
    epoch.leaseUntilMs,
  );
}

/** Renews or settles. */
function updateEpoch(tx: Sqlite, { meshId, key }: OnceKey, next: OnceEpoch): void {
  const { changes } = tx
    .sql(
      `UPDATE once_claim SET lease_until = ?, settled_how = ?, settled_by = ?, settled_at = ?, result = ?
       WHERE mesh_id = ? AND key = ? AND epoch = ? AND settled_how IS NULL`,
    )
    .run(...changedValues(next, toMs), meshId, key, next.epoch);
  assert(changes === 1, "an epoch was changed that is not there or is settled");
}
