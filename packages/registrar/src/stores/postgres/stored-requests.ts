// Reading what stands under a consumed key on PostgreSQL: one statement, every table by its key.
import { textArray, uuidArray } from "@claudemesh/storage/postgres-arrays";
import type { StoredRequest } from "../../core/records.ts";
import { consumedValues, type ListDialect, type StoredValues, storedValues, toStoredRequest } from "../rows.ts";

/** Where a statement runs: on its own, or inside a transaction. */
export type Reading = {
  readonly query: <Row>(text: string, values: readonly unknown[], name?: string) => Promise<Row[]>;
};

/** As a double, which holds a millisecond exactly; `extract` would calculate in decimals. */
export const asMs = (column: string) => `(date_part('epoch', ${column}) * 1000)::bigint`;

const appended = `LEFT JOIN mesh.registrar_verification v
    ON v.mesh_id = c.mesh_id AND v.logical_request_key = c.logical_request_key
  LEFT JOIN mesh.registrar_compensation k
    ON k.mesh_id = c.mesh_id AND k.logical_request_key = c.logical_request_key`;

const withRegistration = `JOIN mesh.registrar_registration r
    ON r.mesh_id = c.mesh_id AND r.logical_request_key = c.logical_request_key ${appended}`;
// An array has one type, which the server looks up once; json_build_array would do so for every value.
const listOf = (values: (dialect: ListDialect) => string) =>
  `array_to_json(ARRAY[${values({
    id: (column) => `${column}::text`,
    ms: (column) => `${asMs(column)}::text`,
    hex: (column) => `encode(${column}, 'hex')`,
  })}])`;
const select = `SELECT ${listOf(storedValues)} AS stored
  FROM mesh.registrar_consume c ${withRegistration}`;

// Planned once for each connection, maybe when the tables were empty. OFFSET keeps each look-up a subquery of its own,
// which can use nothing but its whole key.
const byKeys = (selected: string) => `SELECT q.n::int AS n, s.*
  FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY AS q (mesh_id, logical_request_key, n)
  CROSS JOIN LATERAL (
    ${selected} WHERE c.mesh_id = q.mesh_id AND c.logical_request_key = q.logical_request_key COLLATE "C" OFFSET 0
  ) AS s`;

const reads = {
  stored: { text: byKeys(select), name: "registrar_requests" },
  consumed: {
    text: byKeys(`SELECT ${listOf(consumedValues)} AS stored
      FROM mesh.registrar_consume c ${appended}`),
    name: "registrar_consumed",
  },
} as const;

type StoredRow = { readonly stored: StoredValues };

const toRequest = ({ stored }: StoredRow) => toStoredRequest(stored);

export type RequestKey = { readonly meshId: string; readonly logicalRequestKey: string };

/** One entry per key, in their order; undefined: the key is free. */
export async function selectRequestsByKeys(
  db: Reading,
  keys: readonly RequestKey[],
  read: keyof typeof reads,
): Promise<readonly (StoredRequest | undefined)[]> {
  const values = [
    uuidArray(keys.map(({ meshId }) => meshId)),
    textArray(keys.map(({ logicalRequestKey }) => logicalRequestKey)),
  ];
  const stored: (StoredRequest | undefined)[] = keys.map(() => undefined);
  const { text, name } = reads[read];
  const rows = await db.query<StoredRow & { n: number }>(text, values, name);
  for (const row of rows) stored[row.n - 1] = toRequest(row);
  return stored;
}

const byKey = `${select} WHERE c.mesh_id = $1 AND c.logical_request_key = $2`;
const byEffect = `${select} WHERE c.mesh_id = $1 AND c.effect_key = $2`;

export async function selectRequest(
  db: Reading,
  meshId: string,
  logicalRequestKey: string,
): Promise<StoredRequest | undefined> {
  const [row] = await db.query<StoredRow>(byKey, [meshId, logicalRequestKey], "registrar_request");
  return row && toRequest(row);
}

export async function selectByEffect(
  db: Reading,
  meshId: string,
  effectKey: Uint8Array,
): Promise<StoredRequest | undefined> {
  const [row] = await db.query<StoredRow>(byEffect, [meshId, effectKey], "registrar_effect");
  return row && toRequest(row);
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
  return rows.map(toRequest);
}
