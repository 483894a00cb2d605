// Finds the member behind each HTTP request. Every request reads anew, so that a revocation takes effect at once. To
// keep that cheap, requests that arrive while two round trips are under way share the next one.
import { Batcher, lookUps } from "@claudemesh/storage/batcher";
import type { Postgres } from "@claudemesh/storage/postgres";
import { comparable, isUuid } from "@claudemesh/storage/postgres-text";
import type { MembersStore, Mesh, MeshMember } from "../../ports.ts";
import { type MemberRow, memberColumns, toMember } from "../member-rows.ts";

type TokenKey = { readonly nameOrId: string; readonly tokenHash: string };
type Numbered<Row> = Row & { readonly n: number };

/** Each read begins after it was asked for, and sees everything that was committed by then. */
export function createCallerLookUps(postgres: Postgres): Pick<MembersStore, "findMesh" | "findByToken"> {
  const batches = <Key, Found>(run: (keys: readonly Key[]) => Promise<readonly (Found | undefined)[]>) =>
    new Batcher<Key, Found | undefined>(lookUps, { run });
  const meshesById = batches<string, Mesh>((ids) => selectMeshesById(postgres, ids));
  const meshesByName = batches<string, Mesh>((names) => selectMeshesByName(postgres, names));
  const byToken = batches<TokenKey, MeshMember>((keys) => selectByTokens(postgres, keys));
  return {
    findMesh: async (nameOrId) => {
      const byId = isUuid(nameOrId) ? await meshesById.submit(nameOrId) : undefined;
      return byId ?? meshesByName.submit(nameOrId);
    },
    findByToken: (nameOrId, tokenHash) => byToken.submit({ nameOrId, tokenHash }),
  };
}

async function selectMeshesById(postgres: Postgres, ids: readonly string[]): Promise<(Mesh | undefined)[]> {
  const rows = await postgres.read<Numbered<Mesh>>(
    `SELECT k.n::int AS n, m.id, m.name FROM unnest($1::uuid[]) WITH ORDINALITY AS k (id, n)
     JOIN mesh.mesh m ON m.id = k.id`,
    [ids],
  );
  return inOrder(rows, ids.length, toMesh);
}

async function selectMeshesByName(postgres: Postgres, names: readonly string[]): Promise<(Mesh | undefined)[]> {
  const rows = await postgres.read<Numbered<Mesh>>(
    `SELECT k.n::int AS n, m.id, m.name FROM unnest($1::text[]) WITH ORDINALITY AS k (name, n)
     JOIN mesh.mesh m ON m.name = k.name`,
    [names.flatMap(comparable)],
  );
  return inOrder(rows, names.length, toMesh);
}

// Many requests usually come with few tokens, so each token is looked up once. The statement is planned once for each
// connection, perhaps while the tables are empty: OFFSET keeps each look-up to its whole key.
async function selectByTokens(postgres: Postgres, keys: readonly TokenKey[]): Promise<(MeshMember | undefined)[]> {
  const texts = keys.map(({ nameOrId, tokenHash }) => `${tokenHash}/${nameOrId}`);
  const positions = new Map(texts.map((text, at) => [text, at]));
  const distinct = [...positions.values()].map((at) => keys[at] as TokenKey);
  const rows = await postgres.read<Numbered<MemberRow & { mesh_name: string }>>(
    `SELECT k.n::int AS n, ${memberColumns}, mesh.name AS mesh_name
     FROM unnest($1::uuid[], $2::text[], $3::bytea[]) WITH ORDINALITY AS k (id, name, token_hash, n)
     CROSS JOIN LATERAL (
       SELECT m.id, m.name FROM mesh.mesh m WHERE m.id = k.id
       UNION ALL
       SELECT m.id, m.name FROM mesh.mesh m WHERE m.name = k.name
         AND NOT EXISTS (SELECT FROM mesh.mesh other WHERE other.id = k.id)
     ) AS mesh
     CROSS JOIN LATERAL (
       SELECT t.pubkey FROM mesh.member_token t
       WHERE t.mesh_id = mesh.id AND t.token_hash = k.token_hash AND t.revoked_at IS NULL OFFSET 0
     ) AS t
     CROSS JOIN LATERAL (
       SELECT ${memberColumns} FROM mesh.member m WHERE m.mesh_id = mesh.id AND m.pubkey = t.pubkey OFFSET 0
     ) AS m`,
    [
      distinct.map(({ nameOrId }) => (isUuid(nameOrId) ? nameOrId : null)),
      distinct.flatMap(({ nameOrId }) => comparable(nameOrId)),
      distinct.map(({ tokenHash }) => Buffer.from(tokenHash, "hex")),
    ],
    "callers_by_token",
  );
  const callers = inOrder(rows, distinct.length, toMeshMember);
  const order = new Map([...positions.keys()].map((text, at) => [text, callers[at]]));
  return texts.map((text) => order.get(text));
}

function toMeshMember(row: MemberRow & { mesh_name: string }): MeshMember {
  return { mesh: { id: row.mesh_id, name: row.mesh_name }, member: toMember(row) };
}

const toMesh = ({ id, name }: Mesh): Mesh => ({ id, name });

/** One entry per key; undefined where there is no row. */
function inOrder<Row, Value>(
  rows: readonly Numbered<Row>[],
  count: number,
  read: (row: Row) => Value,
): (Value | undefined)[] {
  const values: (Value | undefined)[] = Array.from({ length: count });
  for (const row of rows) values[row.n - 1] = read(row);
  return values;
}
