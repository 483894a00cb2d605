// Known faults of the registrar and of `once`.
import type { KnownBad } from "./fault.ts";

const phaseOne = "packages/registrar/src/core/phase-one.ts";
const onceState = "packages/protocol/src/registrar/once-state.ts";

export const registrarFaults: readonly KnownBad[] = [
  {
    name: "unique-on-key-and-attempt",
    harm: "a second attempt registers the artifact a second time",
    edits: [
      {
        file: "packages/registrar/src/stores/sqlite/migrations/0001-registrar.sql",
        find: "  PRIMARY KEY (mesh_id, logical_request_key),\n  CONSTRAINT registrar_consume_digests",
        replace: "  PRIMARY KEY (mesh_id, logical_request_key, attempt_id),\n  CONSTRAINT registrar_consume_digests",
      },
    ],
    loadedBy: ["packages/registrar/src/stores/sqlite/registrar-migrations.ts"],
  },
  {
    name: "approval-for-any-mesh",
    harm: "what an owner has signed in one mesh is an approval in every mesh of the same key",
    edits: [
      {
        file: "packages/protocol/src/registrar/approval.ts",
        find: "canonicalTerms({ ...terms, mesh_id: meshId })",
        replace: "canonicalTerms({ ...terms, mesh_id: meshId.slice(0, 0) })",
      },
    ],
  },
  {
    name: "nonce-before-key",
    harm: "an exact retry after success is refused, and publishing breaks half-way",
    edits: [
      {
        file: phaseOne,
        find: "  if (consumed !== undefined) return consumed;\n  if (!facts.memberLive)",
        replace: "  if (!facts.memberLive)",
      },
      {
        file: phaseOne,
        find: "  if (sameEffect !== undefined) return",
        replace: "  if (consumed !== undefined) return consumed;\n  if (sameEffect !== undefined) return",
      },
    ],
  },
  {
    name: "fresh-nonce-buys-the-effect-again",
    harm: "the same artifact is registered twice under two keys",
    edits: [
      {
        file: phaseOne,
        find: "if (sameEffect !== undefined) return",
        replace: "if (sameEffect !== undefined && nowMs < 0) return",
      },
    ],
  },
  {
    name: "expired-lease-is-free",
    harm: "an effect whose holder died after doing it runs a second time",
    edits: [
      {
        file: onceState,
        find: '  return nowMs < newest.leaseUntilMs ? "running" : "uncertain";',
        replace: '  return nowMs < newest.leaseUntilMs ? "running" : "absent";',
      },
      {
        file: onceState,
        find: "  if (newest === undefined) return grant(1, claim, nowMs);",
        replace:
          '  if (newest === undefined || state === "absent") return grant((newest?.epoch ?? 0) + 1, claim, nowMs);',
      },
    ],
  },
  {
    name: "registrar-replay-without-compare",
    harm: "another request under a key that is taken gets the answer that it was registered",
    edits: [
      {
        file: phaseOne,
        find: 'return decision === "same" ? { type: "prior", stored } : { type: "mismatch", stored };',
        replace: 'return decision === "first" ? { type: "mismatch", stored } : { type: "prior", stored };',
      },
    ],
  },
  {
    name: "revoked-approval-still-good",
    harm: "an owner takes an approval back, and it registers all the same",
    edits: [
      {
        file: "packages/registrar/src/core/authority.ts",
        find: '  if (approval.revokedAtMs !== undefined) return unbound("revoked");\n',
        replace: "",
      },
    ],
  },
  {
    name: "refusal-audited-inside",
    harm: "what was refused leaves no trace, because its audit is rolled back with it",
    edits: [
      {
        file: "packages/registrar/src/services/audit-refusals.ts",
        find: "    await ports.store.refuse(member.meshId, refusal, ports.nowMs(), ports.nextId);\n",
        replace:
          "    if (refusal.code === 'not_found') await ports.store.refuse(member.meshId, refusal, 0, ports.nextId);\n",
      },
    ],
  },
  {
    name: "lost-claim-locks-its-caller-out",
    harm: "a caller that lost the answer to its claim hears that another one runs the effect",
    edits: [
      {
        file: onceState,
        find: 'type: own === undefined ? "running" : "held"',
        replace: 'type: own === undefined || newest.epoch > 0 ? "running" : "held"',
      },
    ],
  },
  {
    name: "record-after-resolve",
    harm: "a holder that was given up writes over what others have acted on",
    edits: [
      {
        file: onceState,
        find: 'const same = settlement.how === "recorded" && settlement.result === record.result;',
        replace: 'const same = settlement.how !== "recorded" || settlement.result === record.result;',
      },
    ],
  },
];
