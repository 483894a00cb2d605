// Known faults of spaces: sessions, verdicts, validation, branches and merges, and what a connection is sent.
import type { KnownBad } from "./fault.ts";

const pendingReads = "packages/protocol/src/spaces/pending-reads.ts";
const sqliteSessions = "packages/spaces/src/stores/sqlite/session-rows.ts";
const openSession = "packages/spaces/src/services/open-session.ts";
const validate = "packages/spaces/src/services/commit/validate.ts";
const mayOverlap = `  if (startsWithPath(read.path, spot.path)) return true;
  if (!startsWithPath(spot.path, read.path)) return false;
`;

/** Rejections in the process alone: they are there until it ends. */
const rejectionOnlyInMemory: KnownBad = {
  name: "rejection-only-in-memory",
  harm: "a commit that was rejected before a restart is accepted after it",
  edits: [
    {
      file: sqliteSessions,
      find: "export function selectVerdicts(",
      replace: `const rejections = new WeakMap<Sqlite, Map<string, VerdictRow>>();
function rejectionsOf(db: Sqlite): Map<string, VerdictRow> {
  const known = rejections.get(db) ?? new Map<string, VerdictRow>();
  rejections.set(db, known);
  return known;
}

export function selectVerdicts(`,
    },
    {
      file: sqliteSessions,
      find: "return row === undefined ? [] : [toVerdict(sessionId, row)];",
      replace: `const rejected = rejectionsOf(db).get(\`\${sessionId}/\${localSeq}\`);
    if (row === undefined) return rejected === undefined ? [] : [rejected];
    return [toVerdict(sessionId, row)];`,
    },
    {
      file: sqliteSessions,
      find: "  for (const { sessionId, localSeq, memberPubkey, fingerprint, branch, seq, result, decidedAtMs } of verdicts) {\n",
      replace: `  for (const row of verdicts) {
    if (row.seq === undefined) rejectionsOf(tx).set(\`\${row.sessionId}/\${row.localSeq}\`, row);
  }
  const kept = verdicts.filter((row) => row.seq !== undefined);
  for (const { sessionId, localSeq, memberPubkey, fingerprint, branch, seq, result, decidedAtMs } of kept) {
`,
    },
    {
      file: sqliteSessions,
      find: "  for (const { sessionId, localSeq, decidedAtMs } of verdicts) {\n",
      replace:
        "  for (const { sessionId, localSeq, decidedAtMs } of verdicts.filter((row) => row.seq !== undefined)) {\n",
    },
  ],
};

const verdicts: readonly KnownBad[] = [
  rejectionOnlyInMemory,
  {
    name: "space-replay-without-compare",
    harm: "another commit under the same localSeq gets the answer that it was accepted, and is lost",
    edits: [
      {
        file: "packages/spaces/src/core/verdict.ts",
        find: 'if (claim !== "same") return',
        replace: 'if (claim === "first") return',
      },
    ],
  },
  {
    name: "lower-local-seq-overtakes",
    harm: "commits of a session are applied in another order than they were made in",
    edits: [
      {
        file: "packages/spaces/src/core/verdict.ts",
        find: 'return localSeq > lastLocalSeq ? { type: "first" }',
        replace: 'return localSeq > lastLocalSeq || localSeq > 0 ? { type: "first" }',
      },
    ],
  },
  {
    name: "rejected-sends-keep-the-commit",
    harm: "a commit whose message was refused is there all the same",
    edits: [
      {
        file: "packages/spaces/src/services/commit/commit.ts",
        find: "  yield* tx.undoToMark();\n  const { index, code } = outcome;\n",
        replace:
          '  const { index, code } = outcome;\n  if (code !== "fenced") return { verdict, receipt: undefined };\n  yield* tx.undoToMark();\n',
      },
    ],
  },
];

const sessions: readonly KnownBad[] = [
  {
    name: "token-not-rotated",
    harm: "the former holder of a session goes on writing beside its new one",
    edits: [
      {
        file: openSession,
        find: "const token = sessionToken(row, request.openId);",
        replace: "const token = request.sessionToken ?? sessionToken(row, request.openId);",
      },
      {
        file: openSession,
        find: "  return answer(row, request.openId, session, space.lastSeq);",
        replace: "  return { ...answer(row, request.openId, session, space.lastSeq), sessionToken: token };",
      },
    ],
  },
  {
    name: "takeover-without-a-fence",
    harm: "a commit of the session's old holder is accepted after it was taken over",
    edits: [
      {
        file: "packages/spaces/src/services/commit/replay.ts",
        find: `  if (!live) throw new MeshError("unauthorized");
  if (space === undefined) throw new MeshError("space_not_found");
  const current = checkHolder(session, writer, writer.nowMs);`,
        replace: `  if (!live) throw new MeshError("unauthorized");
  if (space === undefined) throw new MeshError("space_not_found");
  const current = session ?? checkHolder(session, writer, writer.nowMs);`,
      },
    ],
  },
  {
    name: "takeover-unannounced",
    harm: "the session's old holder goes on waiting for what it will never be sent",
    edits: [
      {
        file: openSession,
        find: "  if (opened.resumed) ports.onSessionTaken(",
        replace: "  if (opened.resumed && opened.epoch < 0) ports.onSessionTaken(",
      },
    ],
  },
  {
    name: "verdict-before-its-frames",
    harm: "a client hears that its commit is in before it sees what it rests on",
    edits: [
      {
        file: "packages/broker/src/operations/space-handlers.ts",
        find: "  await caller.sessions?.explain(space, sessionId, verdict);\n",
        replace: "  void caller.sessions?.explain(space, sessionId, verdict);\n",
      },
    ],
  },
];

const validation: readonly KnownBad[] = [
  {
    name: "pending-basis-is-the-highest-layer",
    harm: "what others wrote under a stack of commits is written over unseen",
    edits: [
      {
        file: pendingReads,
        find: "    fromSeq: read.basisSeq,\n",
        replace: "    fromSeq: Math.max(read.basisSeq, ...layers.map(({ seq }) => seq)),\n",
      },
    ],
  },
  {
    name: "moves-followed-one-step",
    harm: "content that was moved twice is read where no conflict is looked for",
    edits: [{ file: pendingReads, find: "  for (const one of reads) {", replace: "  for (const one of [read]) {" }],
  },
  {
    name: "overlap-is-equality",
    harm: "a whole document is replaced under a transaction that read one field of it",
    edits: [
      {
        file: "packages/protocol/src/spaces/touch.ts",
        find: mayOverlap,
        replace: `  const same = startsWithPath(read.path, spot.path) && startsWithPath(spot.path, read.path);
  if (same) return true;
  if (read.shallow !== true) return false;
`,
      },
    ],
  },
  {
    name: "builds-on-what-was-rejected",
    harm: "a commit is accepted that rests on one that never happened",
    edits: [
      {
        file: "packages/spaces/src/services/commit/pending.ts",
        find: "  if (dead !== undefined) {",
        replace: "  if (dead !== undefined && resolved.length > dead) {",
      },
    ],
  },
  {
    name: "index-forgets-what-is-below",
    harm: "a read of a whole object passes though one of its fields was written since, where many reads are checked",
    edits: [
      {
        file: "packages/protocol/src/spaces/touch-index.ts",
        find: "shallow === true ? node.changedKeys : node.below",
        replace: "shallow === true ? node.changedKeys : node.at",
      },
    ],
  },
  {
    name: "cut-writes-count-as-all",
    harm: "a commit overwrites what it never saw, because the write that says so lay behind many large ones",
    edits: [
      {
        file: "packages/spaces/src/stores/sqlite/entity-rows.ts",
        find: "return { writes, cut: last >= 0 || sizes.length >= bound.rows };",
        replace: "return { writes, cut: sizes.length >= bound.rows };",
      },
    ],
  },
  {
    name: "too-expensive-is-a-verdict",
    harm: "a commit that could be sent in parts has used up its place, and is refused for ever",
    edits: [
      {
        file: "packages/spaces/src/services/commit/apply.ts",
        find: "    if (error instanceof PatchFailure) return error;\n",
        replace: `    if (error instanceof PatchFailure) return error;
    if (error instanceof Error && operation.op === "patch") {
      return new PatchFailure({ operationIndex: opIndex, patchIndex: 0, op: "add", path: "", reason: "too_large" });
    }
`,
      },
    ],
  },
  {
    name: "sessions-reserved-after-the-answer",
    harm: "one socket holds as many sessions as it opens at once, and the broker's memory with them",
    edits: [
      {
        file: "packages/broker/src/sync/connection-sessions.ts",
        find: "    this.#opening += 1;\n",
        replace: "    this.#opening += 0;\n",
      },
      { file: "packages/broker/src/sync/connection-sessions.ts", find: "      this.#opening -= 1;\n", replace: "" },
    ],
  },
  {
    name: "first-conflict-only",
    harm: "a client mends one stale read after the other, and each costs it a try",
    edits: [
      {
        file: "packages/spaces/src/services/commit/reads.ts",
        find: "yield* describe(tx, stale, later, lastSeq);",
        replace: "yield* describe(tx, stale.slice(0, 1), later, lastSeq);",
      },
    ],
  },
  {
    name: "sequence-outside-the-lock",
    harm: "two brokers give two commits the same place",
    edits: [
      {
        file: "packages/spaces/src/stores/postgres/session-rows.ts",
        // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the source's own text
        find: "const text = `${selectSpaceText} FOR NO KEY UPDATE`;",
        replace: "const text = selectSpaceText;",
      },
    ],
  },
];

const cachedTransaction = "packages/spaces/src/stores/cached/cached-transaction.ts";
const writeIfUnchanged = "packages/spaces/src/stores/postgres/write-if-unchanged.ts";

/** The spaces cache, and the precondition of an optimistic commit, are believed. */
const caching: readonly KnownBad[] = [
  {
    name: "cache-not-checked-under-the-lock",
    harm: "a broker decides a commit on documents that another broker has changed since, and overwrites them",
    edits: [{ file: cachedTransaction, find: "cache.checkSeq(space.lastSeq)", replace: "cache.checkSeq(cache.seq)" }],
  },
  {
    name: "cache-keeps-what-was-undone",
    harm: "a commit builds on one that was taken back because its message was refused",
    edits: [
      {
        file: cachedTransaction,
        find: "plain.undoToMark(), () => cache.forget()",
        replace: "plain.undoToMark(), () => undefined",
      },
    ],
  },
  {
    name: "lock-sent-behind-its-questions",
    harm: "on PostgreSQL a commit is decided on a session as it was before the space's lock was granted",
    edits: [
      {
        file: cachedTransaction,
        find: "    lockSpace: () => after(plain.lockSpace(), (space) => space && cache.checkSeq(space.lastSeq)),\n",
        replace: `    lockSpace: function* () {
      const space = yield* plain.lockSpace();
      if (space !== undefined) cache.checkSeq(space.lastSeq);
      return space;
    },
`,
      },
    ],
  },
  {
    name: "remembered-session-believed",
    harm: "on PostgreSQL the session's old holder goes on writing after it was taken over",
    edits: [
      {
        file: writeIfUnchanged,
        find: "AND s.epoch = $${first + 4} AND s.token_hash = $${first + 5}",
        replace: "AND $${first + 4}::int IS NOT NULL AND $${first + 5}::bytea IS NOT NULL",
      },
    ],
  },
  {
    name: "remembered-place-believed",
    harm: "a commit that one broker rejected is accepted by another",
    edits: [
      {
        file: writeIfUnchanged,
        find: "AND s.last_local_seq = $",
        replace: "AND s.last_local_seq >= $",
      },
    ],
  },
  {
    name: "remembered-space-believed",
    harm: "a commit is decided on a space that another broker has changed since",
    edits: [{ file: writeIfUnchanged, find: "AND last_seq = $", replace: "AND last_seq >= $" }],
  },
  {
    name: "remembered-member-believed",
    harm: "a member who was removed goes on writing",
    edits: [
      { file: writeIfUnchanged, find: "AND m.revoked_at IS NULL FOR", replace: "AND m.joined_at IS NOT NULL FOR" },
    ],
  },
];

const branches: readonly KnownBad[] = [
  {
    name: "merge-without-validation",
    harm: "a merge that was proposed earlier takes back what was written since",
    edits: [
      {
        file: validate,
        find: "findConflicts(tx, [...confirmed, ...pendingReads], lastSeq, work);",
        replace: "findConflicts(tx, commit.merge === undefined ? [...confirmed, ...pendingReads] : [], lastSeq, work);",
      },
    ],
  },
  {
    name: "false-merge-base-taken",
    harm: "a client chooses what its merge may pass over",
    edits: [
      {
        file: "packages/spaces/src/services/commit/merge-context.ts",
        find: "  if (index < 0) {",
        replace: "  if (index < -1) {",
      },
    ],
  },
  {
    name: "branch-sees-later-writes",
    harm: "what is written on main after the fork shows on the branch",
    edits: [
      {
        file: "packages/spaces/src/core/branch-lineage.ts",
        find: "  const lineage = segmentsOf(parent, atSeq);",
        replace:
          "  const lineage = segmentsOf(parent, atSeq).map((segment) => ({ ...segment, upTo: Number.MAX_SAFE_INTEGER }));",
      },
    ],
  },
];

const replica: readonly KnownBad[] = [
  {
    name: "reconnect-forgets-what-was-under-way",
    harm: "a commit that was sent when the connection ended never gets its verdict",
    edits: [
      {
        file: "packages/client/src/space/session/outbox.ts",
        find: "    for (const entry of this.#entries.values()) entry.inFlight = false;\n",
        replace: "    for (const entry of this.#entries.values()) entry.inFlight &&= entry.everSent;\n",
      },
    ],
  },
  {
    name: "pending-values-kept-over-a-new-base",
    harm: "what others wrote does not show under unconfirmed work, though both stand",
    edits: [
      {
        file: "packages/client/src/space/tiers/entity-tiers.ts",
        find: "    this.#base = { seq, document };\n    this.#replay();\n",
        replace: "    this.#base = { seq, document };\n    if (!this.hasStack) this.#replay();\n",
      },
    ],
  },
  {
    name: "basis-of-what-is-not-reported",
    harm: "a read of an entity that is not watched passes over what others wrote meanwhile",
    edits: [
      {
        file: "packages/client/src/space/tiers/entity-tiers.ts",
        find: "return this.isLive ? branchSeq : this.#stackedAtSeq;",
        replace: "return this.isLive || this.hasStack ? branchSeq : this.#stackedAtSeq;",
      },
    ],
  },
];

export const spaceFaults: readonly KnownBad[] = [
  ...verdicts,
  ...sessions,
  ...validation,
  ...caching,
  ...branches,
  ...replica,
];
