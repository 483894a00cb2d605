// Who calls? Asked anew for every HTTP request, so that a revocation counts at once, and therefore asked for many requests
// in one round trip: those that arrive while two others are on their way.
import { NaturalBatches } from "@claudemesh/storage/natural-batches";
import type { Postgres } from "@claudemesh/storage/postgres";
import type { Member, MembersStore, Mesh } from "../../ports.ts";
import { comparable, type MemberRow, memberColumns, toMember } from "./member-rows.ts";

const perRead = 256;
const readsAtOnce = 2;

const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

type TokenKey = { readonly meshId: string; readonly tokenHash: Uint8Array };
type Numbered<Row> = Row & { readonly n: number };

/** A read begins after it was asked for, and sees everything that was committed by then. */
export function createCallerLookUps(postgres: Postgres): Pick<MembersStore, "findMesh" | "findByToken"> {
  const batches = <Key, Found>(run: (keys: readonly Key[]) => Promise<readonly (Found | undefined)[]>) =>
    new NaturalBatches<Key, Found | undefined>({ maxBatch: perRead, maxConcurrent: readsAtOnce, run });
  const meshesById = batches<string, Mesh>((ids) => selectMeshesById(postgres, ids));
  const meshesByName = batches<string, Mesh>((names) => selectMeshesByName(postgres, names));
  const byToken = batches<TokenKey, Member>((keys) => selectByTokens(postgres, keys));
  return {
    findMesh: async (nameOrId) => {
      // Anything else is not a uuid to the server either, which would refuse the statement instead of finding nothing.
      const byId = uuidPattern.test(nameOrId) ? await meshesById.submit(nameOrId) : undefined;
      return byId ?? meshesByName.submit(nameOrId);
    },
    findByToken: async (meshId, tokenHash) =>
      uuidPattern.test(meshId) ? byToken.submit({ meshId, tokenHash }) : undefined,
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

async function selectByTokens(postgres: Postgres, keys: readonly TokenKey[]): Promise<(Member | undefined)[]> {
  const rows = await postgres.read<Numbered<MemberRow>>(
    `SELECT k.n::int AS n, ${memberColumns}
     FROM unnest($1::uuid[], $2::bytea[]) WITH ORDINALITY AS k (mesh_id, token_hash, n)
     JOIN mesh.member_token t ON t.mesh_id = k.mesh_id AND t.token_hash = k.token_hash AND t.revoked_at IS NULL
     JOIN mesh.member m ON m.mesh_id = t.mesh_id AND m.pubkey = t.pubkey`,
    [keys.map(({ meshId }) => meshId), keys.map(({ tokenHash }) => Buffer.from(tokenHash))],
  );
  return inOrder(rows, keys.length, toMember);
}

const toMesh = ({ id, name }: Mesh): Mesh => ({ id, name });

/** One entry per key; undefined where nothing was found. */
function inOrder<Row, Found>(
  rows: readonly Numbered<Row>[],
  count: number,
  read: (row: Row) => Found,
): (Found | undefined)[] {
  const found: (Found | undefined)[] = Array.from({ length: count });
  for (const row of rows) found[row.n - 1] = read(row);
  return found;
}
