// Reading what stands under a consumed key on SQLite: one statement, every table by its primary key or one unique index.
import type { VerifiedState } from "@claudemesh/protocol/registrar/registration-state";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { StoredRequest } from "../../core/records.ts";
import { readReasons } from "../reasons.ts";

export type StoredRow = {
  readonly logical_request_key: string;
  readonly registration_id: string;
  readonly operation: string;
  readonly target: string;
  readonly artifact_hash: string;
  readonly run_id: string;
  readonly binding: string;
  readonly registered_by: string;
  readonly registered_at: number;
  readonly protocol_version: string;
  readonly replay_key: Uint8Array;
  readonly effect_key: Uint8Array;
  readonly c_operation: string;
  readonly c_target: string;
  readonly c_artifact_hash: string;
  readonly c_run_id: string;
  readonly c_binding: string;
  readonly approval_id: string;
  readonly attempt_id: string;
  readonly consumed_at: number;
  readonly state: VerifiedState | null;
  readonly verifier: string | null;
  readonly reasons: string | null;
  readonly verified_at: number | null;
  readonly compensation_approval_id: string | null;
  readonly compensation_attempt_id: string | null;
  readonly compensated_by: string | null;
  readonly compensated_at: number | null;
};

/** Columns of both stores; `prefix` is the schema. */
export const storedColumns = `r.logical_request_key, r.registration_id, r.operation, r.target, r.artifact_hash, r.run_id,
  r.binding, r.registered_by, r.registered_at, c.protocol_version, c.replay_key, c.effect_key,
  c.operation AS c_operation, c.target AS c_target, c.artifact_hash AS c_artifact_hash, c.run_id AS c_run_id,
  c.binding AS c_binding, c.approval_id, c.attempt_id, c.consumed_at, v.state, v.verifier, v.reasons, v.verified_at,
  k.approval_id AS compensation_approval_id, k.attempt_id AS compensation_attempt_id, k.compensated_by,
  k.compensated_at`;

const joined = `LEFT JOIN registrar_verification v
    ON v.mesh_id = r.mesh_id AND v.logical_request_key = r.logical_request_key
  LEFT JOIN registrar_compensation k
    ON k.mesh_id = r.mesh_id AND k.logical_request_key = r.logical_request_key`;

const fromConsume = `SELECT ${storedColumns} FROM registrar_consume c
  JOIN registrar_registration r ON r.mesh_id = c.mesh_id AND r.logical_request_key = c.logical_request_key ${joined}`;

const fromRegistration = `SELECT ${storedColumns} FROM registrar_registration r
  CROSS JOIN registrar_consume c ON c.mesh_id = r.mesh_id AND c.logical_request_key = r.logical_request_key ${joined}`;

export function selectRequest(db: Sqlite, meshId: string, logicalRequestKey: string): StoredRequest | undefined {
  const row = db
    .sql<StoredRow>(`${fromConsume} WHERE c.mesh_id = ? AND c.logical_request_key = ?`)
    .get(meshId, logicalRequestKey);
  return row && toStoredRequest(row);
}

export function selectByEffect(db: Sqlite, meshId: string, effectKey: Uint8Array): StoredRequest | undefined {
  const row = db.sql<StoredRow>(`${fromConsume} WHERE c.mesh_id = ? AND c.effect_key = ?`).get(meshId, effectKey);
  return row && toStoredRequest(row);
}

export function selectRequests(db: Sqlite, meshId: string, after: string, limit: number): StoredRequest[] {
  return db
    .sql<StoredRow>(
      `${fromRegistration} WHERE r.mesh_id = ? AND r.registration_id > ? ORDER BY r.registration_id LIMIT ?`,
    )
    .all(meshId, after, limit)
    .map(toStoredRequest);
}

export function toStoredRequest(row: StoredRow): StoredRequest {
  const { logical_request_key: logicalRequestKey, verified_at, compensated_at } = row;
  return {
    registration: {
      registrationId: row.registration_id,
      logicalRequestKey,
      operation: row.operation,
      target: row.target,
      artifactHash: row.artifact_hash,
      runId: row.run_id,
      binding: row.binding,
      registeredBy: row.registered_by,
      registeredAtMs: row.registered_at,
    },
    consumption: {
      protocolVersion: row.protocol_version,
      replayKey: row.replay_key,
      effectKey: row.effect_key,
      operation: row.c_operation,
      target: row.c_target,
      artifactHash: row.c_artifact_hash,
      runId: row.c_run_id,
      binding: row.c_binding,
      approvalId: row.approval_id,
      attemptId: row.attempt_id,
      consumedAtMs: row.consumed_at,
    },
    verification:
      row.state === null || verified_at === null
        ? undefined
        : {
            state: row.state,
            verifier: row.verifier ?? "",
            reasons: readReasons(row.reasons),
            verifiedAtMs: verified_at,
          },
    compensation:
      row.compensation_approval_id === null || compensated_at === null
        ? undefined
        : {
            approvalId: row.compensation_approval_id,
            attemptId: row.compensation_attempt_id ?? "",
            compensatedBy: row.compensated_by ?? "",
            compensatedAtMs: compensated_at,
          },
  };
}
