// What owners have set for a mesh, and what is counted against its limits, on PostgreSQL. The caller has checked who
// may set what.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import type { SettingRecord } from "../../ports.ts";
import { type SettingRow, toSettingRecord } from "../member-rows.ts";
import type { Reading } from "./reading.ts";

export async function selectSettings(db: Reading, meshId: string): Promise<SettingRecord[]> {
  const rows = await db.query<SettingRow>(
    "SELECT key, value, set_by, set_at FROM mesh.mesh_setting WHERE mesh_id = $1 ORDER BY key",
    [meshId],
  );
  return rows.map(toSettingRecord);
}

export async function upsertSetting(
  tx: PostgresTransaction,
  meshId: string,
  { key, value, setBy, setAt }: SettingRecord,
): Promise<void> {
  await tx.execute(
    `INSERT INTO mesh.mesh_setting (mesh_id, key, value, set_by, set_at) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (mesh_id, key) DO UPDATE SET value = excluded.value, set_by = excluded.set_by, set_at = excluded.set_at`,
    [meshId, key, value, setBy, new Date(setAt)],
  );
}

export async function deleteSetting(tx: PostgresTransaction, meshId: string, key: string): Promise<void> {
  await tx.execute("DELETE FROM mesh.mesh_setting WHERE mesh_id = $1 AND key = $2", [meshId, key]);
}

export async function countTokens(db: Reading, meshId: string, upTo: number): Promise<number> {
  const [row] = await db.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM (
       SELECT FROM mesh.member_token WHERE mesh_id = $1 AND revoked_at IS NULL LIMIT $2) AS live`,
    [meshId, upTo],
  );
  return row?.n ?? 0;
}

export async function countOpenInvites(db: Reading, meshId: string, upTo: number, nowMs: number): Promise<number> {
  const [row] = await db.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM (
       SELECT FROM mesh.invite
       WHERE mesh_id = $1 AND expires_at > $3 AND used_by IS NULL AND revoked_at IS NULL LIMIT $2) AS open`,
    [meshId, upTo, new Date(nowMs)],
  );
  return row?.n ?? 0;
}
