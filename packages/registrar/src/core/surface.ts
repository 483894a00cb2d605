// What a database must show before it may hold single-use registrations: criteria (a) to (h), each a list of facts about
// the live schema. A store reports the facts that it finds; one that is missing, or one that must not be, closes the
// registrar. Facts are sentences, so that a report says what to repair.

/** What a store found, by looking. */
export type SurfaceFacts = {
  readonly store: "sqlite" | "postgres";
  readonly facts: ReadonlySet<string>;
  /** What binds less than it could, and is no failure. */
  readonly notes: readonly string[];
};

export type CriterionId = "a" | "b" | "c" | "d" | "e" | "f" | "g" | "h";

export type Criterion = {
  readonly criterion: CriterionId;
  readonly title: string;
  readonly holds: boolean;
  readonly missing: readonly string[];
  readonly forbidden: readonly string[];
};

export type SurfaceProof = {
  readonly fit: boolean;
  readonly store: SurfaceFacts["store"];
  readonly criteria: readonly Criterion[];
  readonly notes: readonly string[];
};

export const appendOnlyTables = [
  "registrar_consume",
  "registrar_registration",
  "registrar_verification",
  "registrar_compensation",
  "registrar_audit",
] as const;

const effectColumns = ["operation", "target", "artifact_hash", "run_id"];

export const surfaceTables: Readonly<Record<string, readonly string[]>> = {
  registrar_approval: [
    "mesh_id",
    "approval_id",
    "owner_pubkey",
    ...effectColumns,
    "purpose",
    "logical_request_key",
    "not_before",
    "not_after",
    "signature",
    "signature_version",
    "nonce_hash",
    "approved_at",
    "revoked_at",
  ],
  registrar_consume: [
    "mesh_id",
    "logical_request_key",
    "protocol_version",
    "replay_key",
    "effect_key",
    ...effectColumns,
    "binding",
    "approval_id",
    "attempt_id",
    "registration_id",
    "member_pubkey",
    "consumed_at",
  ],
  registrar_registration: [
    "mesh_id",
    "logical_request_key",
    "registration_id",
    ...effectColumns,
    "binding",
    "registered_by",
    "registered_at",
  ],
  registrar_verification: ["mesh_id", "logical_request_key", "state", "verifier", "reasons", "verified_at"],
  registrar_compensation: [
    "mesh_id",
    "logical_request_key",
    "approval_id",
    "attempt_id",
    "compensated_by",
    "compensated_at",
  ],
  registrar_audit: [
    "mesh_id",
    "audit_id",
    "kind",
    "member_pubkey",
    "at",
    "code",
    "conflict",
    "logical_request_key",
    "approval_id",
    "attempt_id",
    "suppressed",
  ],
  registrar_audit_window: ["mesh_id", "member_pubkey", "window_start", "written", "suppressed"],
  registrar_attempt: [
    "mesh_id",
    "logical_request_key",
    "seq",
    "attempt_id",
    "member_pubkey",
    "tries",
    "first_at",
    "last_at",
  ],
};

const column = (table: string, name: string) => `column ${table}.${name}`;
const columnsOf = (table: string, names = surfaceTables[table] ?? []) => names.map((name) => column(table, name));
const unique = (table: string, ...columns: string[]) => `unique ${table} (${columns.join(", ")})`;
const check = (name: string) => `check ${name}`;
const guard = (table: string, event: string) => `guard ${table} against ${event}`;

/** Columns that may be empty; in all others NOT NULL is part of the fact. */
const optional = new Set([
  "registrar_approval.logical_request_key",
  "registrar_approval.revoked_at",
  ...["code", "conflict", "logical_request_key", "approval_id", "attempt_id"].map((name) => `registrar_audit.${name}`),
]);

const foundColumn = (table: string, name: string, notNull: boolean) =>
  notNull || optional.has(`${table}.${name}`) ? column(table, name) : `nullable ${column(table, name)}`;

/** Wording that a store uses for what it finds. */
export const surfaceWords = { foundColumn, unique, check, guard } as const;

const guardsOf = (store: SurfaceFacts["store"], table: string) =>
  ["update", "delete", store === "sqlite" ? "replace" : "truncate"].map((event) => guard(table, event));

type Rule = {
  readonly title: string;
  readonly required: (store: SurfaceFacts["store"]) => readonly string[];
  /** Facts that must not be. */
  readonly forbidden?: (fact: string) => boolean;
};

const binding = [...effectColumns, "binding"];
const consumeKey = unique("registrar_consume", "mesh_id", "logical_request_key");
const uniqueOnAttempt = /^unique registrar_\w+ \(.*\battempt/;

const rules: Readonly<Record<CriterionId, Rule>> = {
  a: {
    title: "single use: one row per request, replay key, effect and nonce; attempts key nothing",
    required: () => [
      consumeKey,
      unique("registrar_consume", "mesh_id", "replay_key"),
      unique("registrar_consume", "mesh_id", "effect_key"),
      unique("registrar_consume", "mesh_id", "approval_id"),
      ...["replay_key", "effect_key", "protocol_version"].map((name) => column("registrar_consume", name)),
      check("registrar_consume_digests"),
    ],
    forbidden: (fact) => uniqueOnAttempt.test(fact),
  },
  b: {
    title: "columns that bind operation, target, artifact, run and approval",
    required: () => [
      ...columnsOf("registrar_consume", [...binding, "approval_id"]),
      ...columnsOf("registrar_registration", binding),
      ...columnsOf("registrar_approval"),
      unique("registrar_approval", "mesh_id", "approval_id"),
      check("registrar_approval_purpose"),
      check("registrar_approval_key"),
      check("registrar_approval_window"),
      check("registrar_consume_artifact"),
    ],
  },
  c: {
    title: "the domain is registration: tables of its own, with states of its own",
    required: () => [
      ...columnsOf("registrar_registration"),
      ...columnsOf("registrar_compensation"),
      unique("registrar_registration", "mesh_id", "registration_id"),
      check("registrar_verification_state"),
    ],
  },
  d: {
    title: "key, nonce and registration are consumed together, and a conflict refuses",
    required: () => [
      ...columnsOf("registrar_consume"),
      consumeKey,
      unique("registrar_registration", "mesh_id", "logical_request_key"),
      unique("registrar_compensation", "mesh_id", "logical_request_key"),
      unique("registrar_compensation", "mesh_id", "approval_id"),
    ],
  },
  e: {
    title: "a writer that can append, and records that cannot be changed",
    required: (store) => [
      ...appendOnlyTables.flatMap((table) => guardsOf(store, table)),
      ...guardsOf(store, "registrar_approval"),
      ...(store === "postgres" ? appendOnlyTables.flatMap((table) => [writer(table), rights(table)]) : []),
    ],
    forbidden: (fact) => fact.startsWith("unknown "),
  },
  f: {
    title: "refusals are audited outside the transaction that was rolled back",
    required: (store) => [
      ...columnsOf("registrar_audit"),
      unique("registrar_audit", "mesh_id", "audit_id"),
      check("registrar_audit_kind"),
      ...columnsOf("registrar_audit_window"),
      unique("registrar_audit_window", "mesh_id", "member_pubkey"),
      ...guardsOf(store, "registrar_audit"),
    ],
    forbidden: (fact) => fact.startsWith("reference registrar_audit "),
  },
  g: {
    title: "an exact retry finds the prior result",
    required: () => [
      ...columnsOf("registrar_verification"),
      unique("registrar_verification", "mesh_id", "logical_request_key"),
      ...columnsOf("registrar_attempt"),
      unique("registrar_attempt", "mesh_id", "logical_request_key", "seq"),
    ],
  },
  h: {
    title: "what is consumed stays consumed",
    required: (store) => [
      ...["registrar_consume", "registrar_registration"].flatMap((table) => guardsOf(store, table)),
    ],
    forbidden: (fact) => /^column registrar_(?:consume|registration)\..*expire/.test(fact),
  },
};

function writer(table: string): string {
  return `right to append to ${table}`;
}

function rights(table: string): string {
  return `no right to change ${table}`;
}

export const surfaceRights = { writer, rights } as const;

export function proveSurface({ store, facts, notes }: SurfaceFacts): SurfaceProof {
  const criteria = (Object.keys(rules) as CriterionId[]).map((criterion): Criterion => {
    const { title, required, forbidden } = rules[criterion];
    const missing = required(store).filter((fact) => !facts.has(fact));
    const unwanted = forbidden === undefined ? [] : [...facts].filter(forbidden);
    return {
      criterion,
      title,
      holds: missing.length === 0 && unwanted.length === 0,
      missing,
      forbidden: unwanted,
    };
  });
  return { fit: criteria.every(({ holds }) => holds), store, criteria, notes };
}
