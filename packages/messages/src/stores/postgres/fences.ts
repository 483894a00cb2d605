// Fences and fates on PostgreSQL. A fence is written under the mesh's lock, where the accept statement reads it.
import { lockMesh } from "@claudemesh/members/postgres";
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { fateFromStored } from "../../core/stored-accept.ts";
import type { FateResult, FenceRequest } from "../../ports.ts";
import { type DedupeRow, dedupeColumns, type Reading, toStoredAccept } from "./stored-accepts.ts";

/**
 * The fence is read first. Once it exists, its owner's send can never commit, also where another member has taken the id since,
 * and every later request must get the same fate.
 */
export async function selectFate(db: Reading, request: FenceRequest): Promise<FateResult> {
  const [row] = await db.query<{ fenced: boolean } & (DedupeRow | Record<keyof DedupeRow, null>)>(
    `SELECT EXISTS (SELECT 1 FROM mesh.client_message_fence f
         WHERE f.mesh_id = $1 AND f.sender_pubkey = $3 AND f.client_message_id = $2) AS fenced, ${dedupeColumns}
     FROM (SELECT 1) AS one
     LEFT JOIN mesh.client_message_dedupe d ON d.mesh_id = $1 AND d.client_message_id = $2`,
    [request.meshId, request.clientMessageId, request.senderPubkey],
  );
  if (row === undefined) throw new Error("asking for a fate returned no row");
  if (row.fenced) return { fate: "fenced" };
  const stored = row.broker_message_id === null ? undefined : toStoredAccept(row);
  return fateFromStored(stored, request) ?? { fate: "none" };
}

export async function fenceInTransaction(
  tx: PostgresTransaction,
  request: FenceRequest,
  nowMs: number,
  expiresAtMs: number | undefined,
): Promise<Exclude<FateResult, { fate: "none" }>> {
  await lockMesh(tx, request.meshId);
  const fate = await selectFate(tx, request);
  if (fate.fate !== "none") return fate;
  await tx.execute(
    `INSERT INTO mesh.client_message_fence
       (mesh_id, sender_pubkey, client_message_id, request_fingerprint, fenced_at, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6)`,
    [
      request.meshId,
      request.senderPubkey,
      request.clientMessageId,
      request.fingerprint,
      new Date(nowMs),
      expiresAtMs === undefined ? null : new Date(expiresAtMs),
    ],
  );
  return { fate: "fenced" };
}
