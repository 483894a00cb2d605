// Reading what stands under a consumed key on SQLite: one statement, every table by its primary key or one unique index.
// Why: docs/tuning-log.md#a-retry-reads-the-consumed-key-alone.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { StoredRequest } from "../../core/records.ts";
import { consumedValues, type StoredValues, storedValues, toStoredRequest } from "../rows.ts";

const appended = `LEFT JOIN registrar_verification v
    ON v.mesh_id = c.mesh_id AND v.logical_request_key = c.logical_request_key
  LEFT JOIN registrar_compensation k
    ON k.mesh_id = c.mesh_id AND k.logical_request_key = c.logical_request_key`;

const asIs = (column: string) => column;
const dialect = { id: asIs, ms: asIs, hex: (column: string) => `hex(${column})` };
const stored = storedValues(dialect);

const fromConsume = `SELECT ${stored} FROM registrar_consume c
  JOIN registrar_registration r ON r.mesh_id = c.mesh_id AND r.logical_request_key = c.logical_request_key ${appended}`;

const fromRegistration = `SELECT ${stored} FROM registrar_registration r
  CROSS JOIN registrar_consume c ON c.mesh_id = r.mesh_id AND c.logical_request_key = r.logical_request_key ${appended}`;

// Whole texts, made once: a statement is looked up by its text at every call.
const consumed = `SELECT ${consumedValues(dialect)}
  FROM registrar_consume c ${appended} WHERE c.mesh_id = ? AND c.logical_request_key = ?`;
const byKey = `${fromConsume} WHERE c.mesh_id = ? AND c.logical_request_key = ?`;
const byEffect = `${fromConsume} WHERE c.mesh_id = ? AND c.effect_key = ?`;
const page = `${fromRegistration} WHERE r.mesh_id = ? AND r.registration_id > ? ORDER BY r.registration_id LIMIT ?`;

export function selectRequest(db: Sqlite, meshId: string, logicalRequestKey: string): StoredRequest | undefined {
  const row = db.sqlTuples<StoredValues>(byKey).get(meshId, logicalRequestKey);
  return row && toStoredRequest(row);
}

export function selectConsumed(db: Sqlite, meshId: string, logicalRequestKey: string): StoredRequest | undefined {
  const row = db.sqlTuples<StoredValues>(consumed).get(meshId, logicalRequestKey);
  return row && toStoredRequest(row);
}

export function selectByEffect(db: Sqlite, meshId: string, effectKey: Uint8Array): StoredRequest | undefined {
  const row = db.sqlTuples<StoredValues>(byEffect).get(meshId, effectKey);
  return row && toStoredRequest(row);
}

export function selectRequests(db: Sqlite, meshId: string, after: string, limit: number): StoredRequest[] {
  return db.sqlTuples<StoredValues>(page).all(meshId, after, limit).map(toStoredRequest);
}
