// The statements of an accept on PostgreSQL, each for a whole batch of one mesh: claim the keys, and, under the mesh's
// lock, judge, number and write. They are sent together (accept-in-transaction.ts), so the second one reads for itself
// what the first one has claimed.
//
// They are planned once for each connection, maybe when the tables were empty and any plan looked as good as another.
// So every look-up is a subquery that can use nothing but its whole key.
//
// Each comes in two forms. Sends come here after a look-up that found their ids free, and nearly always they still are: then
// the claims are plain inserts, which fail where an id was taken meanwhile, and no statement asks whose claim it is. For the rare
// batch that failed so, and inside a larger transaction that must not fail, the contested form finds out id by id.
// Why: docs/tuning-log.md#ids-that-were-free-are-claimed-as-free.
import type { AcceptRefusal } from "@claudemesh/protocol/messages/accept-result";
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { float8Array, int4Array, textArray, uuidArray } from "@claudemesh/storage/postgres-arrays";
import type { SendToAccept, StoredAccept } from "../../ports.ts";
import { type DedupeRow, dedupeColumns, toStoredAccept } from "./stored-accepts.ts";

/** Milliseconds of `name`, a float8, as a time. */
const time = (name: string) => `to_timestamp(${name} / 1000)`;

export type Ids =
  /** Free when they were looked up. Where one no longer is, the claims fail and take the transaction with them. */
  | "free"
  /** Any of them may be taken, and is then answered from its row. */
  | "contested";

// Fingerprints and bodies are sent as one run of bytes each, so that the rows which are judged and numbered stay small.
const claimStatement = (ids: Ids) => `
  INSERT INTO mesh.client_message_dedupe (mesh_id, client_message_id, broker_message_id, request_fingerprint,
    destination_kind, destination_ref, sender_pubkey, first_seen_at, expires_at)
  SELECT $1, e.client_message_id, e.broker_message_id, substring($2::bytea FROM (e.n::int - 1) * 32 + 1 FOR 32),
    e.kind, e.ref, e.sender, ${time("e.accepted_ms")}, ${time("e.expires_ms")}
  FROM unnest($3::text[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::float8[], $9::float8[]) WITH ORDINALITY
    AS e (client_message_id, broker_message_id, kind, ref, sender, accepted_ms, expires_ms, n)
  ORDER BY e.n${ids === "free" ? "" : "\n  ON CONFLICT (mesh_id, client_message_id) DO NOTHING"}`;

const claimStatements = { free: claimStatement("free"), contested: claimStatement("contested") };

/**
 * Inserts the claims in the order given, of ids that are free. Waits for any other transaction that holds one of them;
 * where that one commits, its claim stands. Like the other statement it has been sent when this returns. Its
 * parameters are read before, so that a fault in them is thrown here, although no caller waits for the answer.
 */
export function insertClaims(
  tx: PostgresTransaction,
  meshId: string,
  sends: readonly SendToAccept[],
  ids: Ids,
): Promise<number> {
  const values = [
    meshId,
    Buffer.concat(sends.map((send) => send.fingerprint)),
    textArray(sends.map((send) => send.clientMessageId)),
    uuidArray(sends.map((send) => send.brokerMessageId)),
    textArray(sends.map((send) => send.envelope.destination.kind)),
    textArray(sends.map((send) => send.envelope.destination.ref)),
    textArray(sends.map((send) => send.senderPubkey)),
    float8Array(sends.map((send) => send.acceptedAtMs)),
    float8Array(sends.map((send) => send.expiresAtMs ?? null)),
  ];
  return tx.execute(claimStatements[ids], values, `claim_${ids}`);
}

// Many sends of a batch have the same sender and destination: each such pair is judged once. Whose claim it is, is asked
// first: what is not this transaction's is neither written nor taken back here. Each entry has a broker_message_id that no other ever had,
// so that a claim which bears another, or is gone, belongs to another send.
const pairs = `
    SELECT p.n, p.sender, p.kind, p.ref,
      (SELECT true FROM mesh.client_message_fence f
       WHERE f.mesh_id = $1 AND f.sender_pubkey = p.sender LIMIT 1) AS has_fences,
      CASE
        WHEN (SELECT true FROM mesh.member m
              WHERE m.mesh_id = $1 AND m.pubkey = p.sender AND m.revoked_at IS NULL) IS NULL
          THEN 'unauthorized'
        WHEN p.kind = 'dm' THEN
          CASE WHEN (SELECT true FROM mesh.member m
                     WHERE m.mesh_id = $1 AND m.pubkey = p.ref AND m.revoked_at IS NULL) IS NULL
            THEN 'destination_not_found' END
        WHEN p.kind = 'queue' THEN
          CASE WHEN (SELECT true FROM mesh.queue q WHERE q.mesh_id = $1 AND q.id = p.ref) IS NULL
            THEN 'destination_not_found' END
        ELSE
          CASE coalesce((SELECT t.post_policy FROM mesh.topic t WHERE t.mesh_id = $1 AND t.name = p.ref), 'none')
            WHEN 'none' THEN 'destination_not_found'
            WHEN 'subscribers' THEN
              CASE WHEN (SELECT true FROM mesh.topic_subscription s
                         WHERE s.mesh_id = $1 AND s.topic = p.ref AND s.member_pubkey = p.sender) IS NULL
                THEN 'not_subscribed' END
          END
      END AS refusal
    FROM unnest($2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS p (sender, kind, ref, n)`;

const isTaken = `
      WHEN (SELECT d.broker_message_id FROM mesh.client_message_dedupe d
            WHERE d.mesh_id = $1 AND d.client_message_id = e.client_message_id) IS DISTINCT FROM e.broker_message_id
        THEN 'taken'`;

const storedClaim = `
      CASE WHEN a.refusal = 'taken' THEN (SELECT row_to_json(s) FROM (
        SELECT ${dedupeColumns} FROM mesh.client_message_dedupe d
        WHERE d.mesh_id = $1 AND d.client_message_id = a.client_message_id) AS s) END`;

// history_id is null exactly where there is a refusal. What is inserted comes in the order of its numbers, because they are
// given in that order.
const acceptStatement = (ids: Ids) => `
  WITH pair AS MATERIALIZED (${pairs}
  ), judged AS MATERIALIZED (
    SELECT e.*, p.sender, p.kind, p.ref, CASE${ids === "free" ? "" : isTaken}
      WHEN p.has_fences AND (SELECT true FROM mesh.client_message_fence f
            WHERE f.mesh_id = $1 AND f.sender_pubkey = p.sender AND f.client_message_id = e.client_message_id)
        THEN 'fenced'
      ELSE p.refusal END AS refusal
    FROM unnest($5::text[], $6::uuid[], $7::int[], $8::text[], $9::int[], $10::int[], $11::text[], $12::text[],
      $13::text[], $14::float8[]) WITH ORDINALITY
      AS e (client_message_id, broker_message_id, pair, version, body_start, body_length, meta, priority, reply_to_id,
        accepted_ms, n)
    JOIN pair p ON p.n = e.pair
  ), counter AS (
    INSERT INTO mesh.mesh_history_counter AS c (mesh_id, last_history_id)
    SELECT $1::uuid, count(*) FROM judged WHERE refusal IS NULL HAVING count(*) > 0
    ON CONFLICT (mesh_id) DO UPDATE SET last_history_id = c.last_history_id + excluded.last_history_id
    RETURNING c.last_history_id
  ), numbered AS MATERIALIZED (
    SELECT j.*, CASE WHEN j.refusal IS NULL THEN
        (SELECT last_history_id FROM counter) - count(*) FILTER (WHERE j.refusal IS NULL) OVER ()
          + row_number() OVER (PARTITION BY j.refusal IS NULL ORDER BY j.n)
      END AS history_id
    FROM judged j
  ), audience AS MATERIALIZED (
    SELECT t.ref AS topic, (
      SELECT array_agg(s.member_pubkey ORDER BY s.member_pubkey) FROM mesh.topic_subscription s
      WHERE s.mesh_id = $1 AND s.topic = t.ref AND (SELECT true FROM mesh.member m
        WHERE m.mesh_id = $1 AND m.pubkey = s.member_pubkey AND m.revoked_at IS NULL)) AS members
    FROM (SELECT DISTINCT ref FROM pair WHERE kind = 'topic' AND refusal IS NULL) AS t
  ), topic_messages AS (
    INSERT INTO mesh.topic_message (mesh_id, id, client_message_id, topic, sender_pubkey, envelope_version, body, meta,
      priority, reply_to_id, created_at, history_id)
    SELECT $1, a.broker_message_id, a.client_message_id, a.ref, a.sender, a.version,
      substring($15::bytea FROM a.body_start FOR a.body_length), a.meta, a.priority, a.reply_to_id,
      ${time("a.accepted_ms")}, a.history_id
    FROM numbered a WHERE a.history_id IS NOT NULL AND a.kind = 'topic'
  ), queue_messages AS (
    INSERT INTO mesh.message_queue (mesh_id, id, client_message_id, destination_kind, destination_ref, sender_pubkey,
      envelope_version, body, meta, priority, reply_to_id, created_at, history_id)
    SELECT $1, a.broker_message_id, a.client_message_id, a.kind, a.ref, a.sender, a.version,
      substring($15::bytea FROM a.body_start FOR a.body_length), a.meta, a.priority, a.reply_to_id,
      ${time("a.accepted_ms")}, a.history_id
    FROM numbered a WHERE a.history_id IS NOT NULL AND a.kind <> 'topic'
  ), history AS (
    INSERT INTO mesh.message_history (mesh_id, history_id, broker_message_id, client_message_id, destination_kind,
      destination_ref, sender_pubkey, accepted_at)
    SELECT $1, a.history_id, a.broker_message_id, a.client_message_id, a.kind, a.ref, a.sender,
      ${time("a.accepted_ms")}
    FROM numbered a WHERE a.history_id IS NOT NULL
  ), deliveries AS (
    INSERT INTO mesh.delivery_queue (mesh_id, history_id, recipient_pubkey, broker_message_id)
    SELECT $1, a.history_id, r.pubkey, a.broker_message_id
    FROM numbered a
    LEFT JOIN audience ON a.kind = 'topic' AND audience.topic = a.ref,
    unnest(CASE a.kind WHEN 'dm' THEN ARRAY[a.ref] ELSE audience.members END) AS r (pubkey)
    WHERE a.history_id IS NOT NULL AND (a.kind = 'dm' OR r.pubkey <> a.sender)
  ), queued AS (
    INSERT INTO mesh.queue_message (mesh_id, queue, history_id, broker_message_id, state, deliveries)
    SELECT $1, a.ref, a.history_id, a.broker_message_id, 'ready', 0
    FROM numbered a WHERE a.history_id IS NOT NULL AND a.kind = 'queue'
  ), unclaimed AS (
    DELETE FROM mesh.client_message_dedupe
    WHERE ctid = ANY (ARRAY(
      SELECT (SELECT d.ctid FROM mesh.client_message_dedupe d
              WHERE d.mesh_id = $1 AND d.client_message_id = a.client_message_id)
      FROM numbered a WHERE a.history_id IS NULL AND a.refusal <> 'taken'))
  )
  SELECT a.refusal, a.history_id,${ids === "free" ? "" : `${storedClaim} AS stored,`}
    CASE WHEN a.n = 1 THEN
      (SELECT json_object_agg(audience.topic, coalesce(audience.members, '{}')) FROM audience) END AS audience
  FROM numbered a ORDER BY a.n`;

const acceptStatements = { free: acceptStatement("free"), contested: acceptStatement("contested") };

export type JudgedSend =
  /** The id was consumed before. */
  | { readonly type: "stored"; readonly stored: StoredAccept }
  /** The id was consumed and its row has just been forgotten, so that another try will find it free. */
  | { readonly type: "forgotten" }
  | { readonly type: "accepted"; readonly historyId: number; readonly recipients: readonly string[] }
  | { readonly type: "refused"; readonly refusal: "fenced" | Exclude<AcceptRefusal, "payload_too_large"> };

type JudgedRow = {
  refusal: Extract<JudgedSend, { type: "refused" }>["refusal"] | "taken" | null;
  history_id: number | null;
  /** Of an id that is taken; bytes as PostgreSQL spells them. */
  stored?: (Omit<DedupeRow, "request_fingerprint"> & { request_fingerprint: string }) | null;
  /** Live subscribers of every topic in the batch; in the first row only. */
  audience: Record<string, string[]> | null;
};

/**
 * For sends whose ids this transaction has tried to claim, in the order in which they get their history ids, under the
 * mesh's lock: judges all of them on one snapshot, writes the effects of those that pass, and takes back the claims of
 * the others, so that their ids are free. What another transaction claimed is read and left alone.
 */
export function writeAccepts(
  tx: PostgresTransaction,
  meshId: string,
  sends: readonly SendToAccept[],
  ids: Ids,
): Promise<JudgedSend[]> {
  const values = acceptValues(meshId, sends);
  return tx.query<JudgedRow>(acceptStatements[ids], values, `write_${ids}`).then((rows) => readJudged(sends, rows));
}

function readJudged(sends: readonly SendToAccept[], rows: readonly JudgedRow[]): JudgedSend[] {
  const audience = new Map(Object.entries(rows[0]?.audience ?? {}));
  return sends.map((send, index) => {
    const { refusal, history_id: historyId, stored } = rows[index] ?? {};
    if (refusal === "taken") return toTaken(stored);
    if (typeof refusal === "string") return { type: "refused", refusal };
    if (typeof historyId !== "number") throw new Error("an accepted send got no history id");
    return { type: "accepted", historyId, recipients: recipientsOf(send, audience) };
  });
}

function toTaken(row: JudgedRow["stored"] | undefined): JudgedSend {
  if (row === null || row === undefined) return { type: "forgotten" };
  const request_fingerprint = Buffer.from(row.request_fingerprint.slice("\\x".length), "hex");
  return { type: "stored", stored: toStoredAccept({ ...row, request_fingerprint }) };
}

function recipientsOf(send: SendToAccept, audience: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const { kind, ref } = send.envelope.destination;
  if (kind === "dm") return [ref];
  if (kind === "queue") return [];
  return (audience.get(ref) ?? []).filter((pubkey) => pubkey !== send.senderPubkey);
}

function acceptValues(meshId: string, sends: readonly SendToAccept[]): unknown[] {
  const envelopes = sends.map((send) => send.envelope);
  const { pairs: judged, pairOf } = findPairs(sends);
  const bodyStarts: number[] = [];
  let bodyEnd = 1;
  for (const { body } of envelopes) {
    bodyStarts.push(bodyEnd);
    bodyEnd += body.length;
  }
  return [
    meshId,
    textArray(judged.map((send) => send.senderPubkey)),
    textArray(judged.map((send) => send.envelope.destination.kind)),
    textArray(judged.map((send) => send.envelope.destination.ref)),
    textArray(sends.map((send) => send.clientMessageId)),
    uuidArray(sends.map((send) => send.brokerMessageId)),
    int4Array(pairOf),
    textArray(envelopes.map(({ version }) => version)),
    int4Array(bodyStarts),
    int4Array(envelopes.map(({ body }) => body.length)),
    textArray(envelopes.map(({ canonicalMeta }) => canonicalMeta)),
    textArray(envelopes.map(({ priority }) => priority)),
    textArray(envelopes.map(({ replyToId }) => replyToId ?? null)),
    float8Array(sends.map((send) => send.acceptedAtMs)),
    Buffer.concat(envelopes.map(({ body }) => body)),
  ];
}

/** One send for each pair of sender and destination, and which of them each send has, counted from one. */
function findPairs(sends: readonly SendToAccept[]): { pairs: SendToAccept[]; pairOf: number[] } {
  const firsts: SendToAccept[] = [];
  const numbers = new Map<string, number>();
  const pairOf = sends.map((send) => {
    const { kind, ref } = send.envelope.destination;
    // Neither a key nor a kind contains a space.
    const key = `${send.senderPubkey} ${kind} ${ref}`;
    const number = numbers.get(key);
    if (number !== undefined) return number;
    numbers.set(key, firsts.push(send));
    return firsts.length;
  });
  return { pairs: firsts, pairOf };
}
