// OnceStore on PostgreSQL. A call is decided on committed rows first; where that would change something, it is decided
// again inside a transaction. An epoch's row is locked by the call that renews or settles it; a new epoch is an insert, and of
// several at once the keys let one through: the others look again.
import assert from "node:assert/strict";
import {
  decideOnceClaim,
  decideOnceRecord,
  decideOnceRenewal,
  decideOnceResolve,
  type OnceClaim,
  type OnceDecision,
  type OnceEpoch,
} from "@claudemesh/protocol/registrar/once-state";
import type { CommitHooks } from "@claudemesh/storage/commit-hooks";
import type { Postgres, PostgresTransaction } from "@claudemesh/storage/postgres";
import { createPostgresCommit } from "@claudemesh/storage/postgres-commit";
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

/** A committed read, or a statement of a transaction. */
type Reading = { readonly query: <Row>(text: string, values: readonly unknown[]) => Promise<Row[]> };
type Lock = "" | "FOR NO KEY UPDATE";
type Decide = (db: Reading, lock: Lock) => Promise<OnceDecision>;

/** Each round that finds its insert taken sees the row that took it, so one repetition is the rule. */
const roundsMax = 10;

export function createPostgresOnceStore(postgres: Postgres, hooks?: CommitHooks): OnceStore {
  const commit = createPostgresCommit(postgres, hooks);
  const committed: Reading = { query: (text, values) => postgres.read(text, values) };
  const settleIn = async (
    key: OnceKey,
    caller: string,
    decide: Decide,
    admit: Admit = anything,
  ): Promise<OnceOutcome> => {
    const admission = await admitNew(() => decide(committed, ""), admit);
    if (admission.type === "answered") return admission.answer;
    return commit.submit((tx) => decideAndWrite(tx, key, caller, decide), "once");
  };
  return {
    claim: (key, claim, nowMs, admit) =>
      settleIn(
        key,
        claim.holder,
        async (db) => decideOnceClaim(await selectForClaim(db, key, claim), claim, nowMs),
        admit,
      ),
    renew: (key, holder, nowMs) =>
      settleIn(key, holder, async (db, lock) => decideOnceRenewal(await selectEpoch(db, key, lock), holder, nowMs)),
    record: (key, record, nowMs) =>
      settleIn(key, record.holder, async (db, lock) =>
        decideOnceRecord(await selectEpoch(db, key, lock), record, nowMs),
      ),
    resolve: (key, resolution, nowMs) =>
      settleIn(key, resolution.by, async (db, lock) =>
        decideOnceResolve(await selectEpoch(db, key, lock), resolution, nowMs),
      ),
    list: (query) => selectKeys(committed, query),
    epochs: (key, limit) => selectNewest(committed, key, limit),
  };
}

async function decideAndWrite(
  tx: PostgresTransaction,
  key: OnceKey,
  caller: string,
  decide: Decide,
): Promise<OnceOutcome> {
  const live = await tx.query(
    "SELECT 1 FROM mesh.member WHERE mesh_id = $1 AND pubkey = $2 AND revoked_at IS NULL FOR SHARE",
    [key.meshId, caller],
  );
  if (live.length === 0) return { type: "not_a_member" };
  for (let round = 0; round < roundsMax; round++) {
    const { answer, next, begins } = await decide(tx, "FOR NO KEY UPDATE");
    if (next === undefined) return answer;
    const written = begins ? await insertEpoch(tx, key, next) : await updateEpoch(tx, key, next);
    if (written) return answer;
  }
  throw assert.fail("a new epoch was taken by others again and again");
}

const toMs = (time: Date): number => time.getTime();
const toTime = (ms: number): Date => new Date(ms);

async function selectNewest(db: Reading, { meshId, key }: OnceKey, limit: number): Promise<OnceEpoch[]> {
  const rows = await db.query<OnceRow<Date>>(
    `SELECT ${onceColumns} FROM mesh.once_claim WHERE mesh_id = $1 AND key = $2 ORDER BY epoch DESC LIMIT $3`,
    [meshId, key, limit],
  );
  return rows.map((row) => epochOf(row, toMs));
}

async function selectKeys(db: Reading, { meshId, after, limit, unsettled }: OnceListQuery): Promise<OnceListItem[]> {
  const which = unsettled
    ? "c.settled_how IS NULL"
    : `NOT EXISTS (SELECT 1 FROM mesh.once_claim n
         WHERE n.mesh_id = c.mesh_id AND n.key = c.key AND n.epoch > c.epoch)`;
  const rows = await db.query<OnceRow<Date> & { key: string }>(
    `SELECT c.key, ${onceColumns} FROM mesh.once_claim c
     WHERE c.mesh_id = $1 AND c.key > $2 AND ${which} ORDER BY c.key LIMIT $3`,
    [meshId, after, limit],
  );
  return rows.map((row) => ({ key: row.key, newest: epochOf(row, toMs) }));
}

/** Newest and own in one statement: between two, a claim of the same id could come and be seen by halves. */
async function selectForClaim(db: Reading, { meshId, key }: OnceKey, claim: OnceClaim) {
  const rows = await db.query<OnceRow<Date>>(
    `(SELECT ${onceColumns} FROM mesh.once_claim WHERE mesh_id = $1 AND key = $2 ORDER BY epoch DESC LIMIT 1)
     UNION ALL
     (SELECT ${onceColumns} FROM mesh.once_claim
      WHERE mesh_id = $1 AND key = $2 AND holder_pubkey = $3 AND claim_id = $4)
     ORDER BY epoch DESC`,
    [meshId, key, claim.holder, claim.claimId],
  );
  const epochs = rows.map((row) => epochOf(row, toMs));
  const isOwn = ({ claimId, holder }: OnceEpoch) => claimId === claim.claimId && holder === claim.holder;
  return { newest: epochs[0], own: epochs.find(isOwn) };
}

async function selectEpoch(db: Reading, key: OnceEpochKey, lock: Lock): Promise<OnceEpoch | undefined> {
  const [row] = await db.query<OnceRow<Date>>(
    `SELECT ${onceColumns} FROM mesh.once_claim WHERE mesh_id = $1 AND key = $2 AND epoch = $3 ${lock}`,
    [key.meshId, key.key, key.epoch],
  );
  return row === undefined ? undefined : epochOf(row, toMs);
}

/** False: another call has made this epoch, or this claim has one. */
async function insertEpoch(tx: PostgresTransaction, { meshId, key }: OnceKey, epoch: OnceEpoch): Promise<boolean> {
  const inserted = await tx.execute(
    `INSERT INTO mesh.once_claim (mesh_id, key, epoch, claim_id, holder_pubkey, inputs_fingerprint, lease_seconds,
       claimed_at, lease_until)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`,
    [
      meshId,
      key,
      epoch.epoch,
      epoch.claimId,
      epoch.holder,
      epoch.inputsFingerprint,
      epoch.leaseSeconds,
      toTime(epoch.claimedAtMs),
      toTime(epoch.leaseUntilMs),
    ],
  );
  return inserted === 1;
}

/** Renews or settles an epoch whose row this transaction holds. */
async function updateEpoch(tx: PostgresTransaction, { meshId, key }: OnceKey, next: OnceEpoch): Promise<true> {
  const updated = await tx.execute(
    `UPDATE mesh.once_claim SET lease_until = $1, settled_how = $2, settled_by = $3, settled_at = $4, result = $5
     WHERE mesh_id = $6 AND key = $7 AND epoch = $8 AND settled_how IS NULL`,
    [...changedValues(next, toTime), meshId, key, next.epoch],
  );
  assert(updated === 1, "an epoch was changed that is not there or is settled");
  return true;
}
