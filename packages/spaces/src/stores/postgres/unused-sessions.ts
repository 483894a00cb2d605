// Forgetting sessions that are not used, on PostgreSQL. They are looked for along the primary key: an index on when they
// were used would cost every commit.
import type { Postgres, PostgresTransaction } from "@claudemesh/storage/postgres";
import type { SessionCursor } from "../../ports/rows.ts";
import type { SessionSweepStep } from "../../ports.ts";

const sessionsPerStep = 1_000;
/** Before every mesh. */
const nilUuid = "00000000-0000-0000-0000-000000000000";

export async function sweepSessions(
  postgres: Postgres,
  unusedSinceMs: number,
  after: SessionCursor | undefined,
): Promise<SessionSweepStep> {
  const rows = await postgres.read<SessionCursor & { unused: boolean }>(
    `SELECT mesh_id AS "meshId", space_id AS "spaceId", session_id AS "sessionId", used_at < $4 AS unused
     FROM mesh.space_session WHERE (mesh_id, space_id, session_id) > ($1::uuid, $2::text, $3::text)
     ORDER BY mesh_id, space_id, session_id LIMIT $5`,
    [after?.meshId ?? nilUuid, after?.spaceId ?? "", after?.sessionId ?? "", new Date(unusedSinceMs), sessionsPerStep],
  );
  const old = rows.filter(({ unused }) => unused);
  const next = rows.length === sessionsPerStep ? rows.at(-1) : undefined;
  const removed =
    old.length === 0 ? 0 : await postgres.transaction((tx) => deleteUnusedSessions(tx, unusedSinceMs, old));
  return { removed, next, more: next !== undefined };
}

/** Sessions and what they were opened by; verdicts and commits stay. A session that is in use now is passed over. */
async function deleteUnusedSessions(
  tx: PostgresTransaction,
  unusedSinceMs: number,
  sessions: readonly SessionCursor[],
): Promise<number> {
  const rows = await tx.query<SessionCursor>(
    `DELETE FROM mesh.space_session s USING (
       SELECT u.mesh_id, u.space_id, u.session_id FROM mesh.space_session u
       JOIN unnest($1::uuid[], $2::text[], $3::text[]) AS p (mesh_id, space_id, session_id)
         ON u.mesh_id = p.mesh_id AND u.space_id = p.space_id AND u.session_id = p.session_id
       WHERE u.used_at < $4 FOR UPDATE OF u SKIP LOCKED) AS old
     WHERE s.mesh_id = old.mesh_id AND s.space_id = old.space_id AND s.session_id = old.session_id
     RETURNING s.mesh_id AS "meshId", s.space_id AS "spaceId", s.session_id AS "sessionId"`,
    [...columnsOf(sessions), new Date(unusedSinceMs)],
  );
  await tx.execute(
    `DELETE FROM mesh.space_session_open o
     USING unnest($1::uuid[], $2::text[], $3::text[]) AS old (mesh_id, space_id, session_id)
     WHERE o.mesh_id = old.mesh_id AND o.space_id = old.space_id AND o.session_id = old.session_id`,
    columnsOf(rows),
  );
  return rows.length;
}

function columnsOf(sessions: readonly SessionCursor[]): string[][] {
  return [
    sessions.map(({ meshId }) => meshId),
    sessions.map(({ spaceId }) => spaceId),
    sessions.map(({ sessionId }) => sessionId),
  ];
}
