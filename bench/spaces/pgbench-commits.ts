// pgbench with the rows of an accepted commit: in the product's own tables, one statement and one transaction per commit,
// each client with a session and an entity of its own, all of them on the row that holds the space's last seq.
import { writeFileSync } from "node:fs";
import { askPostgres } from "../broker/store-pair.ts";
import { type BenchSpace, benchSpace, patchesPerSnapshot, rowTexts } from "./bench-commit.ts";

const quote = (text: string) => `'${text.replaceAll("'", "''")}'`;

/** The space with a session for each client, and the script. */
export async function preparePgbenchCommits(
  url: string,
  scriptPath: string,
  { meshId, member }: BenchSpace,
  clients: number,
): Promise<void> {
  const space = `'${meshId}', '${benchSpace}'`;
  await askPostgres(
    url,
    `INSERT INTO mesh.space (mesh_id, space_id, signed_writes, last_seq, created_by, created_at)
     VALUES (${space}, 'optional', 0, '${member}', now())`,
  );
  await askPostgres(
    url,
    `INSERT INTO mesh.space_session (mesh_id, space_id, session_id, member_pubkey, epoch, token_hash, last_local_seq, used_at)
     SELECT ${space}, '01900000-0000-7000-8000-' || lpad(n::text, 12, '0'), '${member}', 1, '\\xa5', 0, now()
     FROM generate_series(0, ${clients - 1}) AS n`,
  );
  const session = "'01900000-0000-7000-8000-' || lpad(:client_id::text, 12, '0')";
  const entity = "'task:' || lpad(:client_id::text, 6, '0')";
  const { original, resolution, result, body, footprint, document } = rowTexts;
  const here = `mesh_id = '${meshId}' AND space_id = '${benchSpace}'`;
  // seq serves as localSeq as well: it grows in every session.
  const text = `WITH next AS (UPDATE mesh.space SET last_seq = last_seq + 1 WHERE ${here} RETURNING last_seq AS seq),
    verdict AS (INSERT INTO mesh.space_verdict (mesh_id, space_id, session_id, local_seq, member_pubkey, fingerprint,
      branch, seq, result, decided_at)
      SELECT ${space}, ${session}, seq, '${member}', decode(repeat('a5', 32), 'hex'), '', seq, ${quote(result)}, now()
      FROM next),
    location AS (UPDATE mesh.space_session SET last_local_seq = next.seq, used_at = now() FROM next
      WHERE ${here} AND session_id = ${session}),
    logged AS (INSERT INTO mesh.space_commit (mesh_id, space_id, seq, branch, session_id, local_seq, member_pubkey,
      original, resolution, committed_at)
      SELECT ${space}, seq, '', ${session}, seq, '${member}', ${quote(original)}, ${quote(resolution)}, now() FROM next),
    revision AS (INSERT INTO mesh.space_revision (mesh_id, space_id, branch, entity_id, seq, op_index, op, body, footprint)
      SELECT ${space}, '', ${entity}, seq, 0, 'patch', ${quote(body)}, ${quote(footprint)} FROM next),
    snapshot AS (INSERT INTO mesh.space_snapshot (mesh_id, space_id, branch, entity_id, seq, document)
      SELECT ${space}, '', ${entity}, seq, ${quote(document)} FROM next WHERE seq % ${patchesPerSnapshot} = 0)
    INSERT INTO mesh.space_head (mesh_id, space_id, branch, entity_id, seq, deleted)
    SELECT ${space}, '', ${entity}, seq, false FROM next
    ON CONFLICT (mesh_id, space_id, branch, entity_id) DO UPDATE SET seq = excluded.seq, deleted = excluded.deleted;`;
  writeFileSync(scriptPath, `${text.replaceAll(/\s+/g, " ")}\n`);
}
