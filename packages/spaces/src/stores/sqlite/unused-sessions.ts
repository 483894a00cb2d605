// Forgetting sessions that are not used, on SQLite. They are looked for outside the write lock, along the primary key: an
// index on when they were used would cost every commit. What goes is a job among the accepts, short enough that they do
// not notice.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { SessionCursor } from "../../ports/rows.ts";
import type { SessionSweepStep } from "../../ports.ts";

/** Looked at in one step, and forgotten of them at most: the others wait for the next. */
const sessionsPerLook = 512;
const sessionsPerStep = 64;
/** Of those sessions together; one that was opened more often takes several steps. */
const opensPerStep = 512;

export type UnusedSessions = { readonly sessions: readonly SessionCursor[]; readonly next: SessionCursor | undefined };

/** Those behind `after` that were not used since, and the session at which the look ended, unless that is the last one. */
export function selectUnusedSessions(
  db: Sqlite,
  unusedSinceMs: number,
  after: SessionCursor | undefined,
): UnusedSessions {
  const rows = db
    .sql<SessionCursor & { unused: number }>(
      `SELECT mesh_id AS meshId, space_id AS spaceId, session_id AS sessionId, used_at < ?4 AS unused FROM space_session
       WHERE (mesh_id, space_id, session_id) > (?1, ?2, ?3) ORDER BY mesh_id, space_id, session_id LIMIT ?5`,
    )
    .all(after?.meshId ?? "", after?.spaceId ?? "", after?.sessionId ?? "", unusedSinceMs, sessionsPerLook);
  const sessions = rows.filter(({ unused }) => unused === 1);
  if (sessions.length > sessionsPerStep) {
    return { sessions: sessions.slice(0, sessionsPerStep), next: sessions[sessionsPerStep - 1] };
  }
  return { sessions, next: rows.length === sessionsPerLook ? rows.at(-1) : undefined };
}

/** Sessions and what they were opened by; verdicts and commits stay. */
export function deleteUnusedSessions(
  tx: Sqlite,
  unusedSinceMs: number,
  { sessions, next }: UnusedSessions,
  after: SessionCursor | undefined,
): SessionSweepStep {
  let room = opensPerStep;
  let removed = 0;
  let last = after;
  for (const session of sessions) {
    const epoch = selectUnusedEpoch(tx, session, unusedSinceMs);
    if (epoch !== undefined) {
      room -= deleteOlderOpens(tx, session, epoch, room);
      // A session keeps its last open for as long as it is there itself, so that a step may end here.
      if (room <= 0) return { removed, next: last, more: true };
      deleteSession(tx, session);
      removed += 1;
    }
    last = session;
  }
  return { removed, next, more: next !== undefined };
}

/** Undefined where the session is gone, or was used in the meantime. */
function selectUnusedEpoch(tx: Sqlite, session: SessionCursor, unusedSinceMs: number): number | undefined {
  return tx
    .sql<{ epoch: number }>(
      `SELECT epoch FROM space_session WHERE mesh_id = ? AND space_id = ? AND session_id = ? AND used_at < ?`,
    )
    .get(session.meshId, session.spaceId, session.sessionId, unusedSinceMs)?.epoch;
}

// The planner, left to itself, takes the primary key and walks through all that the space was ever opened by.
const opensOfSession = `FROM space_session_open AS o INDEXED BY space_session_open_session
  WHERE o.mesh_id = ?1 AND o.space_id = ?2 AND o.session_id = ?3`;

function deleteOlderOpens(tx: Sqlite, session: SessionCursor, epoch: number, limit: number): number {
  return tx
    .sql(
      `DELETE FROM space_session_open WHERE mesh_id = ?1 AND space_id = ?2 AND (member_pubkey, open_hash) IN
         (SELECT o.member_pubkey, o.open_hash ${opensOfSession} AND o.epoch < ?4 LIMIT ?5)`,
    )
    .run(session.meshId, session.spaceId, session.sessionId, epoch, limit).changes;
}

function deleteSession(tx: Sqlite, { meshId, spaceId, sessionId }: SessionCursor): void {
  tx.sql(`DELETE ${opensOfSession}`).run(meshId, spaceId, sessionId);
  tx.sql("DELETE FROM space_session WHERE mesh_id = ? AND space_id = ? AND session_id = ?").run(
    meshId,
    spaceId,
    sessionId,
  );
}
