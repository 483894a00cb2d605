// Every rule that ties rows of the registrar and of `once` together, as a condition on one row that breaks it. Both stores
// run the same list. Rules that a table keeps by itself are not here.
import { sha256 } from "@claudemesh/members/sha256";
import { sameFingerprint } from "@claudemesh/protocol/messages/fingerprint";
import { effectKey, replayKey } from "@claudemesh/protocol/registrar/digests";
import { exists, lacks, type RowDialect, type RowRule, type RowValue } from "@claudemesh/storage/row-rules";

const requestKey = { logical_request_key: "text" } as const;
const approvalKey = { approval_id: "text" } as const;
const epochKey = { key: "text", epoch: "integer" } as const;

const rule = (
  table: string,
  key: RowRule["key"],
  text: string,
  broken: (dialect: RowDialect) => string,
  invariant?: string,
): RowRule => ({ table, key, rule: text, broken, invariant });

const lacksMember = (d: RowDialect, pubkey: string) => lacks(d, "member", "m", `m.pubkey = ${pubkey}`);
const sameKey = (alias: string) => `${alias}.logical_request_key = r.logical_request_key`;
const sameEffect = (alias: string, other = "r") =>
  ["operation", "target", "artifact_hash", "run_id"]
    .map((column) => `${alias}.${column} = ${other}.${column}`)
    .join(" AND ");

const digestColumns = ["protocol_version", "operation", "target", "artifact_hash", "run_id", "binding"] as const;

/** The digests of a consumed key, worked out again. */
function hasOtherDigests(row: Readonly<Record<string, RowValue>>): boolean {
  const text = (column: string) => String(row[column]);
  const [protocolVersion, operation, target, artifactHash, runId, binding] = digestColumns.map(text);
  const effect = { operation, target, artifactHash, runId } as Parameters<typeof effectKey>[1];
  const identity = { ...effect, protocolVersion, binding, logicalRequestKey: text("logical_request_key") };
  const { replay_key: replay, effect_key: stored } = row;
  if (!(replay instanceof Uint8Array) || !(stored instanceof Uint8Array)) return true;
  const same =
    sameFingerprint(replay, replayKey(sha256, identity as Parameters<typeof replayKey>[1])) &&
    sameFingerprint(stored, effectKey(sha256, effect));
  return !same;
}

export const registrarRules = {
  consume_without_registration: rule(
    "registrar_consume",
    requestKey,
    "a consumed key has its registration, of the same effect, owner, member and time",
    (d) =>
      lacks(
        d,
        "registrar_registration",
        "g",
        `${sameKey("g")} AND g.registration_id = r.registration_id AND ${sameEffect("g")} AND g.binding = r.binding
         AND g.registered_by = r.member_pubkey AND g.registered_at = r.consumed_at`,
      ),
    "REG-4",
  ),
  consume_not_approved: rule(
    "registrar_consume",
    requestKey,
    "a consumed key has an owner's approval of exactly this effect, and was consumed in its window",
    (d) =>
      lacks(
        d,
        "registrar_approval",
        "a",
        `a.approval_id = r.approval_id AND a.purpose = 'register' AND a.owner_pubkey = r.binding AND ${sameEffect("a")}
         AND a.not_before <= ${d.ms("r.consumed_at")} AND ${d.ms("r.consumed_at")} < a.not_after`,
      ),
    "REG-3",
  ),
  consume_with_other_digests: {
    table: "registrar_consume",
    key: requestKey,
    rule: "a consumed key's digests are those of its request and its effect",
    invariant: "REG-2",
    examine: { columns: [...digestColumns, "replay_key", "effect_key"], isBroken: hasOtherDigests },
  },
  consume_without_member: rule("registrar_consume", requestKey, "a key was consumed by a member, former or not", (d) =>
    lacksMember(d, "r.member_pubkey"),
  ),
  registration_without_consume: rule(
    "registrar_registration",
    requestKey,
    "a registration has its consumed key",
    (d) => lacks(d, "registrar_consume", "c", `${sameKey("c")} AND c.registration_id = r.registration_id`),
    "REG-4",
  ),
  verification_without_registration: rule(
    "registrar_verification",
    requestKey,
    "a verdict is of a registration",
    (d) => lacks(d, "registrar_registration", "g", sameKey("g")),
    "REG-4",
  ),
  compensation_of_nothing_failed: rule(
    "registrar_compensation",
    requestKey,
    "what was compensated had failed its verification",
    (d) => lacks(d, "registrar_verification", "v", `${sameKey("v")} AND v.state = 'verify_failed'`),
    "REG-5",
  ),
  compensation_not_approved: rule(
    "registrar_compensation",
    requestKey,
    "a compensation has an owner's approval of exactly that, and was recorded in its window",
    (d) =>
      `NOT EXISTS (SELECT 1 FROM ${d.table("registrar_approval")} a
         JOIN ${d.table("registrar_registration")} g ON g.mesh_id = a.mesh_id AND ${sameEffect("g", "a")}
         WHERE a.mesh_id = r.mesh_id AND a.approval_id = r.approval_id AND a.purpose = 'compensate'
           AND a.logical_request_key = r.logical_request_key AND ${sameKey("g")}
           AND a.not_before <= ${d.ms("r.compensated_at")} AND ${d.ms("r.compensated_at")} < a.not_after)`,
    "REG-3",
  ),
  compensation_without_member: rule(
    "registrar_compensation",
    requestKey,
    "a compensation was recorded by a member, former or not",
    (d) => lacksMember(d, "r.compensated_by"),
  ),
  approval_without_member: rule("registrar_approval", approvalKey, "an approval is a member's, former or not", (d) =>
    lacksMember(d, "r.owner_pubkey"),
  ),
  attempt_without_consume: rule(
    "registrar_attempt",
    { ...requestKey, seq: "integer" },
    "retries are counted of consumed keys only",
    (d) => lacks(d, "registrar_consume", "c", sameKey("c")),
  ),
  audit_without_member: rule(
    "registrar_audit",
    { audit_id: "id" },
    "what is refused is refused to a member, former or not",
    (d) => lacksMember(d, "r.member_pubkey"),
  ),
  audit_window_without_member: rule(
    "registrar_audit_window",
    { member_pubkey: "text" },
    "refusals are counted of a member, former or not",
    (d) => lacksMember(d, "r.member_pubkey"),
  ),
  once_epoch_over_open_one: rule(
    "once_claim",
    epochKey,
    "every epoch but the first follows one that a member resolved as not done",
    (d) =>
      `r.epoch > 1 AND ${lacks(
        d,
        "once_claim",
        "o",
        "o.key = r.key AND o.epoch = r.epoch - 1 AND o.settled_how = 'resolved_not_done'",
      )}`,
    "REG-9",
  ),
  once_recorded_by_another: rule(
    "once_claim",
    epochKey,
    "what came of an epoch was recorded by its holder",
    () => "r.settled_how = 'recorded' AND r.settled_by <> r.holder_pubkey",
    "REG-11",
  ),
  once_without_member: rule(
    "once_claim",
    epochKey,
    "an epoch was claimed by a member, and settled by one if at all",
    (d) =>
      `${lacksMember(d, "r.holder_pubkey")} OR (r.settled_by IS NOT NULL AND NOT ${exists(
        d,
        "member",
        "m",
        "m.pubkey = r.settled_by",
      )})`,
  ),
} satisfies Record<string, RowRule>;
