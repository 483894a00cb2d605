// Reading what stands under a consumed key on PostgreSQL: one statement, every table by its key.
import type { StoredRequest } from "../../core/records.ts";
import { type StoredRow, storedColumns, toStoredRequest } from "../rows.ts";

/** Where a statement runs: on its own, or inside a transaction. */
export type Reading = {
  readonly query: <Row>(text: string, values: readonly unknown[], name?: string) => Promise<Row[]>;
};

export const asMs = (column: string) => `(extract(epoch FROM ${column}) * 1000)::bigint`;

const joined = `LEFT JOIN mesh.registrar_verification v
    ON v.mesh_id = r.mesh_id AND v.logical_request_key = r.logical_request_key
  LEFT JOIN mesh.registrar_compensation k
    ON k.mesh_id = r.mesh_id AND k.logical_request_key = r.logical_request_key`;

const select = `SELECT ${storedColumns(asMs)} FROM mesh.registrar_consume c
  JOIN mesh.registrar_registration r ON r.mesh_id = c.mesh_id AND r.logical_request_key = c.logical_request_key ${joined}`;

export async function selectRequest(
  db: Reading,
  meshId: string,
  logicalRequestKey: string,
): Promise<StoredRequest | undefined> {
  const [row] = await db.query<StoredRow>(
    `${select} WHERE c.mesh_id = $1 AND c.logical_request_key = $2`,
    [meshId, logicalRequestKey],
    "registrar_request",
  );
  return row && toStoredRequest(row);
}

export async function selectByEffect(
  db: Reading,
  meshId: string,
  effectKey: Uint8Array,
): Promise<StoredRequest | undefined> {
  const [row] = await db.query<StoredRow>(
    `${select} WHERE c.mesh_id = $1 AND c.effect_key = $2`,
    [meshId, effectKey],
    "registrar_effect",
  );
  return row && toStoredRequest(row);
}

/** Before every id that is made. */
export const firstId = "00000000-0000-0000-0000-000000000000";

export async function selectRequests(
  db: Reading,
  meshId: string,
  after: string,
  limit: number,
): Promise<StoredRequest[]> {
  const rows = await db.query<StoredRow>(
    `${select} WHERE r.mesh_id = $1 AND r.registration_id > $2 ORDER BY r.registration_id LIMIT $3`,
    [meshId, after === "" ? firstId : after, limit],
  );
  return rows.map(toStoredRequest);
}
