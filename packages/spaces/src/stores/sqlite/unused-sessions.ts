// Forgetting sessions that nobody uses, on SQLite. They are looked for outside the write lock, along the primary key: an
// index on when they were used would cost every commit. What goes is a job among the accepts, short enough that they do
// not notice.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { SessionPlace } from "../../ports/rows.ts";
import type { SessionSweepStep } from "../../ports.ts";

/** Looked at in one step, and forgotten of them at most: the others wait for the next. */
const sessionsPerLook = 512;
const sessionsPerStep = 64;
/** Of those sessions together; one that was opened more often takes several steps. */
const opensPerStep = 512;

export type UnusedSessions = { readonly places: readonly SessionPlace[]; readonly next: SessionPlace | undefined };

/** Those behind `after` that nobody used since, and where the look ended; undefined: at the end. */
export function selectUnusedSessions(
  db: Sqlite,
  unusedSinceMs: number,
  after: SessionPlace | undefined,
): UnusedSessions {
  const rows = db
    .sql<SessionPlace & { unused: number }>(
      `SELECT mesh_id AS meshId, space_id AS spaceId, session_id AS sessionId, used_at < ?4 AS unused FROM space_session
       WHERE (mesh_id, space_id, session_id) > (?1, ?2, ?3) ORDER BY mesh_id, space_id, session_id LIMIT ?5`,
    )
    .all(after?.meshId ?? "", after?.spaceId ?? "", after?.sessionId ?? "", unusedSinceMs, sessionsPerLook);
  const places = rows.filter(({ unused }) => unused === 1);
  if (places.length > sessionsPerStep) {
    return { places: places.slice(0, sessionsPerStep), next: places[sessionsPerStep - 1] };
  }
  return { places, next: rows.length === sessionsPerLook ? rows.at(-1) : undefined };
}

/** Sessions and what they were opened by; verdicts and commits stay. */
export function deleteUnusedSessions(
  tx: Sqlite,
  unusedSinceMs: number,
  { places, next }: UnusedSessions,
  after: SessionPlace | undefined,
): SessionSweepStep {
  let room = opensPerStep;
  let removed = 0;
  let last = after;
  for (const place of places) {
    const epoch = selectUnusedEpoch(tx, place, unusedSinceMs);
    if (epoch !== undefined) {
      room -= deleteOlderOpens(tx, place, epoch, room);
      // A session keeps its last open for as long as it is there itself, so that a step may end here.
      if (room <= 0) return { removed, next: last, more: true };
      deleteSession(tx, place);
      removed += 1;
    }
    last = place;
  }
  return { removed, next, more: next !== undefined };
}

/** Undefined: it is gone, or was used meanwhile. */
function selectUnusedEpoch(tx: Sqlite, place: SessionPlace, unusedSinceMs: number): number | undefined {
  return tx
    .sql<{ epoch: number }>(
      `SELECT epoch FROM space_session WHERE mesh_id = ? AND space_id = ? AND session_id = ? AND used_at < ?`,
    )
    .get(place.meshId, place.spaceId, place.sessionId, unusedSinceMs)?.epoch;
}

// The planner, left to itself, takes the primary key and walks through all that the space was ever opened by.
const opensOfSession = `FROM space_session_open AS o INDEXED BY space_session_open_session
  WHERE o.mesh_id = ?1 AND o.space_id = ?2 AND o.session_id = ?3`;

function deleteOlderOpens(tx: Sqlite, place: SessionPlace, epoch: number, limit: number): number {
  return tx
    .sql(
      `DELETE FROM space_session_open WHERE mesh_id = ?1 AND space_id = ?2 AND (member_pubkey, open_hash) IN
         (SELECT o.member_pubkey, o.open_hash ${opensOfSession} AND o.epoch < ?4 LIMIT ?5)`,
    )
    .run(place.meshId, place.spaceId, place.sessionId, epoch, limit).changes;
}

function deleteSession(tx: Sqlite, { meshId, spaceId, sessionId }: SessionPlace): void {
  tx.sql(`DELETE ${opensOfSession}`).run(meshId, spaceId, sessionId);
  tx.sql("DELETE FROM space_session WHERE mesh_id = ? AND space_id = ? AND session_id = ?").run(
    meshId,
    spaceId,
    sessionId,
  );
}
