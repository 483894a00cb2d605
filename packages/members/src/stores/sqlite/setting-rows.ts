// What owners have set for a mesh, and what is counted against its limits, on SQLite. The caller has checked who may
// set what.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { SettingRecord } from "../../ports.ts";
import { type SettingRow, toSettingRecord } from "../member-rows.ts";

export function selectSettings(db: Sqlite, meshId: string): SettingRecord[] {
  return db
    .sql<SettingRow>("SELECT key, value, set_by, set_at FROM mesh_setting WHERE mesh_id = ? ORDER BY key")
    .all(meshId)
    .map(toSettingRecord);
}

export function upsertSetting(tx: Sqlite, meshId: string, { key, value, setBy, setAt }: SettingRecord): void {
  tx.sql(
    `INSERT INTO mesh_setting (mesh_id, key, value, set_by, set_at) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (mesh_id, key) DO UPDATE SET value = excluded.value, set_by = excluded.set_by, set_at = excluded.set_at`,
  ).run(meshId, key, value, setBy, setAt);
}

export function deleteSetting(tx: Sqlite, meshId: string, key: string): void {
  tx.sql("DELETE FROM mesh_setting WHERE mesh_id = ? AND key = ?").run(meshId, key);
}

export function countTokens(db: Sqlite, meshId: string, upTo: number): number {
  const live = "SELECT 1 FROM member_token WHERE mesh_id = ? AND revoked_at IS NULL LIMIT ?";
  return db.sql<{ n: number }>(`SELECT count(*) AS n FROM (${live})`).get(meshId, upTo)?.n ?? 0;
}

export function countOpenInvites(db: Sqlite, meshId: string, upTo: number, nowMs: number): number {
  const open = `SELECT 1 FROM invite
    WHERE mesh_id = ? AND expires_at > ? AND used_by IS NULL AND revoked_at IS NULL LIMIT ?`;
  return db.sql<{ n: number }>(`SELECT count(*) AS n FROM (${open})`).get(meshId, nowMs, upTo)?.n ?? 0;
}
