// The statements of an accept on PostgreSQL, each for a whole batch of one mesh: claim the keys, and, under the mesh's
// lock, judge, number and write. They travel together (accept-in-transaction.ts): the second finds out by itself what the
// first one got.
//
// They are planned once for each connection, maybe when the tables were empty and any plan looked as good as another.
// So every look-up is a subquery that can use nothing but its whole key.
import type { AcceptRefusal } from "@claudemesh/protocol/messages/accept-result";
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { float8Array, int4Array, textArray, uuidArray } from "@claudemesh/storage/postgres-arrays";
import type { SendToAccept, StoredAccept } from "../../ports.ts";
import { type DedupeRow, dedupeColumns, toStoredAccept } from "./stored-accepts.ts";

/** Milliseconds of `name`, a float8, as a time. */
const time = (name: string) => `to_timestamp(${name} / 1000)`;

// Fingerprints and bodies travel as one run of bytes each, so that what is judged and numbered is not carried with them.
const claimStatement = `
  INSERT INTO mesh.client_message_dedupe (mesh_id, client_message_id, broker_message_id, request_fingerprint,
    destination_kind, destination_ref, sender_pubkey, first_seen_at, expires_at)
  SELECT $1, e.client_message_id, e.broker_message_id, substring($2::bytea FROM (e.n::int - 1) * 32 + 1 FOR 32),
    e.kind, e.ref, e.sender, ${time("e.accepted_ms")}, ${time("e.expires_ms")}
  FROM unnest($3::text[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::float8[], $9::float8[]) WITH ORDINALITY
    AS e (client_message_id, broker_message_id, kind, ref, sender, accepted_ms, expires_ms, n)
  ORDER BY e.n
  ON CONFLICT (mesh_id, client_message_id) DO NOTHING`;

/**
 * Inserts the claims in the order given, of ids that are free. Waits for any other transaction that holds one of them;
 * where that one commits, its claim stands.
 */
export async function insertClaims(
  tx: PostgresTransaction,
  meshId: string,
  sends: readonly SendToAccept[],
): Promise<void> {
  await tx.execute(
    claimStatement,
    [
      meshId,
      Buffer.concat(sends.map((send) => send.fingerprint)),
      textArray(sends.map((send) => send.clientMessageId)),
      uuidArray(sends.map((send) => send.brokerMessageId)),
      textArray(sends.map((send) => send.envelope.destination.kind)),
      textArray(sends.map((send) => send.envelope.destination.ref)),
      textArray(sends.map((send) => send.senderPubkey)),
      float8Array(sends.map((send) => send.acceptedAtMs)),
      float8Array(sends.map((send) => send.expiresAtMs ?? null)),
    ],
    "claim_sends",
  );
}

// B2 for every entry. Each has a broker_message_id that no other ever had: a claim that bears another, or is gone, is not
// this transaction's. That is asked first: whose claim it is not is neither written nor taken back here.
const judged = `
  SELECT e.*, CASE
    WHEN (SELECT d.broker_message_id FROM mesh.client_message_dedupe d
          WHERE d.mesh_id = $1 AND d.client_message_id = e.client_message_id) IS DISTINCT FROM e.broker_message_id
      THEN 'taken'
    WHEN (SELECT true FROM mesh.client_message_fence f
          WHERE f.mesh_id = $1 AND f.sender_pubkey = e.sender AND f.client_message_id = e.client_message_id)
      THEN 'fenced'
    WHEN (SELECT true FROM mesh.member m
          WHERE m.mesh_id = $1 AND m.pubkey = e.sender AND m.revoked_at IS NULL) IS NULL
      THEN 'unauthorized'
    WHEN e.kind = 'dm' THEN
      CASE WHEN (SELECT true FROM mesh.member m
                 WHERE m.mesh_id = $1 AND m.pubkey = e.ref AND m.revoked_at IS NULL) IS NULL
        THEN 'destination_not_found' END
    WHEN e.kind = 'queue' THEN
      CASE WHEN (SELECT true FROM mesh.queue q WHERE q.mesh_id = $1 AND q.id = e.ref) IS NULL
        THEN 'destination_not_found' END
    ELSE
      CASE coalesce((SELECT t.post_policy FROM mesh.topic t WHERE t.mesh_id = $1 AND t.name = e.ref), 'none')
        WHEN 'none' THEN 'destination_not_found'
        WHEN 'subscribers' THEN
          CASE WHEN (SELECT true FROM mesh.topic_subscription s
                     WHERE s.mesh_id = $1 AND s.topic = e.ref AND s.member_pubkey = e.sender) IS NULL
            THEN 'not_subscribed' END
      END
    END AS refusal
  FROM entry e`;

// history_id is null exactly where there is a refusal. What is inserted is not sorted: its numbers are its order, and it comes
// in that order by itself.
const acceptStatement = `
  WITH entry AS MATERIALIZED (
    SELECT * FROM unnest($2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::int[], $9::int[],
      $10::text[], $11::text[], $12::text[], $13::float8[]) WITH ORDINALITY
      AS e (client_message_id, broker_message_id, sender, kind, ref, version, body_start, body_length,
        meta, priority, reply_to_id, accepted_ms, n)
  ), judged AS MATERIALIZED (${judged}
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
    FROM (SELECT DISTINCT ref FROM numbered WHERE kind = 'topic' AND history_id IS NOT NULL) AS t
  ), topic_messages AS (
    INSERT INTO mesh.topic_message (mesh_id, id, client_message_id, topic, sender_pubkey, envelope_version, body, meta,
      priority, reply_to_id, created_at, history_id)
    SELECT $1, a.broker_message_id, a.client_message_id, a.ref, a.sender, a.version,
      substring($14::bytea FROM a.body_start FOR a.body_length), a.meta, a.priority, a.reply_to_id,
      ${time("a.accepted_ms")}, a.history_id
    FROM numbered a WHERE a.history_id IS NOT NULL AND a.kind = 'topic'
  ), queue_messages AS (
    INSERT INTO mesh.message_queue (mesh_id, id, client_message_id, destination_kind, destination_ref, sender_pubkey,
      envelope_version, body, meta, priority, reply_to_id, created_at, history_id)
    SELECT $1, a.broker_message_id, a.client_message_id, a.kind, a.ref, a.sender, a.version,
      substring($14::bytea FROM a.body_start FOR a.body_length), a.meta, a.priority, a.reply_to_id,
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
  ), mentions AS (
    INSERT INTO mesh.mention_index (mesh_id, mentioned_pubkey, history_id, broker_message_id)
    SELECT $1, m.pubkey, a.history_id, a.broker_message_id
    FROM numbered a, unnest($15::int[], $16::text[]) AS m (n, pubkey)
    WHERE a.history_id IS NOT NULL AND m.n = a.n
  ), unclaimed AS (
    DELETE FROM mesh.client_message_dedupe
    WHERE ctid = ANY (ARRAY(
      SELECT (SELECT d.ctid FROM mesh.client_message_dedupe d
              WHERE d.mesh_id = $1 AND d.client_message_id = a.client_message_id)
      FROM numbered a WHERE a.history_id IS NULL AND a.refusal <> 'taken'))
  )
  SELECT a.refusal, a.history_id, CASE WHEN a.refusal = 'taken' THEN
      (SELECT row_to_json(s) FROM (
        SELECT ${dedupeColumns} FROM mesh.client_message_dedupe d
        WHERE d.mesh_id = $1 AND d.client_message_id = a.client_message_id) AS s) END AS stored, CASE WHEN a.n = 1 THEN
      (SELECT json_object_agg(audience.topic, coalesce(audience.members, '{}')) FROM audience) END AS audience
  FROM numbered a ORDER BY a.n`;

export type JudgedSend =
  /** The id was consumed before. */
  | { readonly type: "stored"; readonly stored: StoredAccept }
  /** The id was consumed and its row has just been forgotten: another try will find it free. */
  | { readonly type: "forgotten" }
  | { readonly type: "accepted"; readonly historyId: number; readonly recipients: readonly string[] }
  | { readonly type: "refused"; readonly refusal: "fenced" | Exclude<AcceptRefusal, "payload_too_large"> };

type JudgedRow = {
  refusal: Extract<JudgedSend, { type: "refused" }>["refusal"] | "taken" | null;
  history_id: number | null;
  /** Of an id that is taken; bytes as PostgreSQL spells them. */
  stored: (Omit<DedupeRow, "request_fingerprint"> & { request_fingerprint: string }) | null;
  /** Live subscribers of every topic in the batch; in the first row only. */
  audience: Record<string, string[]> | null;
};

/**
 * For sends whose ids this transaction has tried to claim, in the order in which they get their history ids, under the
 * mesh's lock: judges all of them on one snapshot, writes every effect of those that pass, and takes back the claims of
 * the others, so that their ids are free. What another transaction claimed is read and left alone.
 */
export async function writeAccepts(
  tx: PostgresTransaction,
  meshId: string,
  sends: readonly SendToAccept[],
): Promise<JudgedSend[]> {
  const rows = await tx.query<JudgedRow>(acceptStatement, acceptValues(meshId, sends), "write_accepts");
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
  const bodyStarts: number[] = [];
  let bodyEnd = 1;
  for (const { body } of envelopes) {
    bodyStarts.push(bodyEnd);
    bodyEnd += body.length;
  }
  return [
    meshId,
    textArray(sends.map((send) => send.clientMessageId)),
    uuidArray(sends.map((send) => send.brokerMessageId)),
    textArray(sends.map((send) => send.senderPubkey)),
    textArray(envelopes.map(({ destination }) => destination.kind)),
    textArray(envelopes.map(({ destination }) => destination.ref)),
    textArray(envelopes.map(({ version }) => version)),
    int4Array(bodyStarts),
    int4Array(envelopes.map(({ body }) => body.length)),
    textArray(envelopes.map(({ canonicalMeta }) => canonicalMeta)),
    textArray(envelopes.map(({ priority }) => priority)),
    textArray(envelopes.map(({ replyToId }) => replyToId ?? null)),
    float8Array(sends.map((send) => send.acceptedAtMs)),
    Buffer.concat(envelopes.map(({ body }) => body)),
    int4Array(sends.flatMap((send, index) => send.mentions.map(() => index + 1))),
    textArray(sends.flatMap((send) => send.mentions)),
  ];
}
