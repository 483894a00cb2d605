// Builds that are wrong on purpose: one small edit each, that breaks one rule of the contract. The ordinary tests must
// refuse every one of them; a fault that passes is a missing test. The edits are made in a copy, never here.

import { drainFaults } from "./drain-faults.ts";
import type { KnownBad } from "./fault.ts";
import { inboxFaults } from "./inbox-faults.ts";
import { keyFaults } from "./key-faults.ts";
import { memberFaults } from "./member-faults.ts";
import { registrarFaults } from "./registrar-faults.ts";
import { sealingFaults } from "./sealing-faults.ts";
import { spaceFaults } from "./space-faults.ts";

const sqliteAccept = "packages/messages/src/stores/sqlite/accept-in-transaction.ts";
const sqliteMessages = "packages/messages/src/stores/sqlite/messages-store.ts";
const postgresAccept = "packages/messages/src/stores/postgres/accept-in-transaction.ts";
const postgresStatements = "packages/messages/src/stores/postgres/accept-statements.ts";
const outboxRows = "packages/daemon/src/stores/sqlite/outbox-rows.ts";
const destinationDirectory = "packages/daemon/src/services/destination-directory.ts";
const lastInsert = "  insertMentions(tx, send, historyId);\n  const { brokerMessageId";

const messageFaults: readonly KnownBad[] = [
  {
    name: "ack-before-commit",
    harm: "a send is answered and a power cut takes it back",
    edits: [
      {
        file: "packages/storage/src/sqlite/group-commit.ts",
        find: "        done = this.#runJobs(batch);\n",
        replace:
          "        done = this.#runJobs(batch);\n        for (const entry of batch) entry.resolve(entry.result);\n",
      },
    ],
  },
  {
    name: "delivery-acked-before-inbox",
    harm: "the broker settles a delivery that the receiver then loses",
    edits: [
      {
        file: "packages/daemon/src/services/receive.ts",
        find: "    const message = readMessage(item, ownPubkey, sealer);\n",
        replace: "    this.#ack(item.history_id);\n    const message = readMessage(item, ownPubkey, sealer);\n",
      },
    ],
  },
  {
    name: "no-inflight-recovery",
    harm: "what was being sent when the daemon died is never sent again",
    edits: [
      {
        file: "packages/daemon/src/services/resume-outbox.ts",
        find: "await outbox.resumeInflight(nowMs)",
        replace: "await Promise.resolve(0)",
      },
    ],
  },
  {
    name: "limiter-before-b0",
    harm: "a retry of what committed is refused because the window is spent",
    edits: [
      {
        file: sqliteMessages,
        find: "    return answerClaimed(batch.tx, send) ?? { result: limited, recipients: [] };\n",
        replace: "    if (answerClaimed.length > 0) return { result: limited, recipients: [] };\n",
      },
      {
        file: "packages/messages/src/services/accept.ts",
        find: "  if (stored !== undefined) return stored;\n",
        replace: "  if (stored !== undefined && stored.type !== 'duplicate') return stored;\n",
      },
    ],
  },
  {
    name: "plain-incr",
    harm: "each retry of one send spends the budget of the whole mesh",
    edits: [
      {
        file: "packages/messages/src/stores/sqlite/limiter.ts",
        find: "    if (changes === 0) return { ok: true, spent: false };\n",
        replace: "    if (changes < 0) return { ok: true, spent: false };\n",
      },
    ],
  },
  {
    name: "covered-ids-need-room-in-redis",
    harm: "a retry of a send that has had its unit is refused once the window is spent",
    edits: [
      {
        file: "packages/messages/src/stores/redis/consume-script.ts",
        find: "elseif answers[i] == 0 and #fresh < room then",
        replace: "elseif #fresh < room then",
      },
    ],
  },
  {
    name: "b2-keeps-the-dedupe-row",
    harm: "a send that was refused can never be sent, though it never took effect",
    edits: [
      {
        file: postgresStatements,
        find: "FROM numbered a WHERE a.history_id IS NULL AND a.refusal <> 'taken'))",
        replace: "FROM numbered a WHERE a.history_id IS NULL AND a.n < 0))",
      },
    ],
  },
  {
    name: "b2-takes-back-any-claim",
    harm: "a send that loses a race for an id frees it, and the next try takes effect a second time",
    edits: [
      {
        file: postgresStatements,
        find: "FROM numbered a WHERE a.history_id IS NULL AND a.refusal <> 'taken'))",
        replace: "FROM numbered a WHERE a.history_id IS NULL))",
      },
    ],
  },
  {
    name: "a-lost-race-is-a-failure",
    harm: "who offers an id while another broker accepts it gets an error, again and again, instead of the first answer",
    edits: [
      {
        file: "packages/messages/src/stores/postgres/accept-batches.ts",
        find: 'error.constraint === "unique"',
        replace: 'error.constraint === "check"',
      },
    ],
  },
  {
    name: "history-outside-the-transaction",
    harm: "a crash leaves a message that no reader of the history ever sees",
    edits: [
      {
        file: sqliteAccept,
        find: "  insertHistory(tx, send, historyId);\n  const recipients",
        replace: "  setImmediate(() => insertHistory(tx, send, historyId));\n  const recipients",
      },
    ],
  },
  {
    name: "429-is-final",
    harm: "a busy minute turns messages into dead rows",
    edits: [
      {
        file: "packages/protocol/src/messages/outbox-row.ts",
        find: '  if (status === 429) return { next: "pending", counts: "refused", retry: "backoff" };\n',
        replace: "",
      },
    ],
  },
  {
    name: "unguarded-late-answer",
    harm: "a row that an operator has replaced comes back as done",
    edits: [
      {
        file: outboxRows,
        find: "{doneColumns} WHERE id = ? AND status IN ('pending', 'inflight', 'dead')`",
        replace: "{doneColumns} WHERE id = ?`",
      },
    ],
  },
  {
    name: "late-end-of-another-try",
    harm: "the end of an old try is taken for the end of the new one",
    edits: [
      {
        file: outboxRows,
        find: "\"WHERE id = ? AND status = 'inflight' AND attempts = ?\"",
        replace: "\"WHERE id = ? AND status = 'inflight' AND ? >= 0\"",
      },
    ],
  },
  {
    name: "requeue-without-destination",
    harm: "a message that was requeued goes somewhere else",
    edits: [
      {
        file: outboxRows,
        find: "{addressColumns} FROM outbox",
        replace: `{addressColumns.replace("destination_ref", "'elsewhere'")} FROM outbox`,
      },
    ],
  },
  {
    name: "requeue-without-a-fence",
    harm: "the message that the broker had already taken arrives a second time",
    edits: [
      {
        file: "packages/daemon/src/core/requeue.ts",
        find: 'if (fateOf(row) !== "unknown" || order.provenUncommitted',
        replace: 'if (fateOf(row) !== "committed" || order.provenUncommitted',
      },
    ],
  },
  {
    name: "fence-without-the-lock",
    harm: "a send that was fenced commits all the same",
    edits: [
      {
        file: "packages/messages/src/stores/postgres/fences.ts",
        find: "  await lockMesh(tx, request.meshId);\n  const fate",
        replace: "  if (nowMs < 0) await lockMesh(tx, request.meshId);\n  const fate",
      },
    ],
  },
  {
    name: "claim-ignores-the-fence",
    harm: "a send that was fenced commits all the same",
    edits: [
      {
        file: sqliteAccept,
        find: "  if (mesh.isFenced(senderPubkey, clientMessageId)) return",
        replace: "  if (senderPubkey === '' && mesh.isFenced(senderPubkey, clientMessageId)) return",
      },
    ],
  },
  {
    name: "claim-without-the-sender",
    harm: "one member's send is swallowed by another's of the same id",
    edits: [
      {
        file: "packages/messages/src/core/stored-accept.ts",
        find: "owner: stored.senderPubkey }",
        replace: "owner: offered.senderPubkey }",
      },
    ],
  },
  {
    name: "accept-without-the-lock",
    harm: "a send that was fenced commits all the same",
    edits: [
      {
        file: postgresAccept,
        find: "const locking = checkedAtCommit(lockMesh(tx, meshId));",
        replace: "const locking = sends.length >= 0 ? undefined : lockMesh(tx, meshId);",
      },
    ],
  },
  {
    name: "mentions-forgotten",
    harm: "a member that was mentioned never hears of it, though the message is stored",
    edits: [{ file: sqliteAccept, find: lastInsert, replace: "  const { brokerMessageId" }],
  },
  {
    name: "claim-however-old-the-look-up",
    harm: "a try that slept while its id was forgotten takes effect a second time",
    edits: [
      {
        file: "packages/messages/src/services/accept.ts",
        find: "    isOutdated: () => isOutdated(lookUp.atMs, ports.nowMs()),\n",
        replace: "    isOutdated: () => isOutdated(lookUp.atMs, lookUp.atMs),\n",
      },
    ],
  },
  {
    name: "slept-connection-heard",
    harm: "a frame that waited while the broker slept takes effect after its id was forgotten",
    edits: [
      {
        file: "packages/broker/src/transport/connection.ts",
        find: "    if (!this.#lastHeard.again()) this.#socket.terminate();\n",
        replace: "    this.#lastHeard.again();\n",
      },
    ],
  },
  {
    name: "stored-after-a-sweep-unseen",
    harm: "a row that was made before a long sleep and stored after it is neither tried nor ended",
    edits: [
      {
        file: "packages/daemon/src/services/expire.ts",
        find: "    this.#oldestOpenAtMs = Math.min(this.#oldestOpenAtMs, enqueuedAt);\n",
        replace: "    void enqueuedAt;\n",
      },
    ],
  },
  {
    name: "leases-by-the-wall-clock",
    harm: "a broker's clock that is set back holds the jobs of dead workers until it has caught up",
    edits: [
      {
        file: "packages/broker/src/stores/store-clock.ts",
        find: "    nowMs += passedMs;\n",
        replace: "    nowMs = sources.wallMs();\n",
      },
    ],
  },
  {
    name: "time-restarts-with-the-broker",
    harm: "a clock that is set back before a broker starts holds every lease until it has caught up",
    edits: [
      {
        file: "packages/broker/src/stores/store-clock.ts",
        find: "Math.max(sources.wallMs(), atLeastMs)",
        replace: "Math.max(sources.wallMs(), 0 * atLeastMs)",
      },
    ],
  },
  {
    name: "ready-without-a-write",
    harm: "a broker whose store went read-only says that it is ready",
    edits: [
      {
        file: "packages/broker/src/stores/readiness.ts",
        find: "    refusalOf(writeStore(), onFailure,",
        replace: "    refusalOf(Promise.resolve(void writeStore), onFailure,",
      },
    ],
  },
  {
    name: "a-missing-destination-is-remembered",
    harm: "a send to a topic that was made just now is refused",
    edits: [
      {
        file: destinationDirectory,
        find: "    const mayCache = state.refusal === undefined && forgotten === this.#forgotten;\n",
        replace: "    const mayCache = forgotten === this.#forgotten;\n",
      },
    ],
  },
  {
    name: "a-question-asked-before-the-send-counts",
    harm: "a send to a topic that was made while another sender's question was under way is refused",
    edits: [
      {
        file: destinationDirectory,
        find: "    question.next ??= question.running.then(() => this.#begin(key, destination));\n    return question.next;\n",
        replace: "    return question.running;\n",
      },
    ],
  },
  {
    name: "a-former-member-is-forgotten",
    harm: "after a restart a former member's daemon takes sends that can never leave",
    edits: [
      {
        file: "packages/daemon/src/services/membership.ts",
        find: "    this.#ports.store.save(ended).catch(",
        replace: "    Promise.resolve().catch(",
      },
    ],
  },
  {
    name: "a-row-that-waits-is-dismissed",
    harm: "a message that is still going to be sent counts as let go",
    edits: [
      {
        file: outboxRows,
        find: "WHERE id = ? AND status = 'dead' AND dismissed_at IS NULL",
        replace: "WHERE id = ? AND dismissed_at IS NULL",
      },
    ],
  },
  {
    name: "a-waiting-row-of-a-member-is-let-go",
    harm: "a message that could still be sent dies because somebody dismissed it",
    edits: [
      {
        file: outboxRows,
        find: "AND EXISTS (SELECT 1 FROM daemon_state",
        replace: "AND 1 >= (SELECT count(*) FROM daemon_state",
      },
    ],
  },
  {
    name: "letting-a-row-go-forgets-its-fate",
    harm: "what may have arrived counts as never sent, and a requeue sends it twice without asking",
    edits: [
      {
        file: outboxRows,
        find: "SET status = 'dead', last_error = ?, dismissed_at = ?",
        replace: "SET status = 'dead', unanswered = 0, last_error = ?, dismissed_at = ?",
      },
    ],
  },
  {
    name: "new-keys-ask-for-the-fate-of-old-ones",
    harm: "a message that the old member sent is sent again by the new one, which is told that it never arrived",
    edits: [
      {
        file: outboxRows,
        find: " OR (unanswered > 0 AND fenced = 0)",
        replace: "",
      },
    ],
  },
  {
    name: "a-retry-shares-the-failure-of-its-batch",
    harm: "on a full disk a retry of what is stored hears 507 because new sends came with it",
    edits: [
      {
        file: "packages/daemon/src/services/enqueue-send.ts",
        find: "    if (stored === undefined || stored.outboxId === row.id) throw error;\n",
        replace: '    if (stored === undefined || row.id !== "") throw error;\n',
      },
    ],
  },
  {
    name: "a-full-disk-fails-whole-batches",
    harm: "on a full disk a retry that writes nothing hears 507 because new requests came with it",
    edits: [
      {
        file: "packages/storage/src/sqlite/group-commit.ts",
        find: '(error.kind === "constraint" || error.kind === "disk_full")',
        replace: 'error.kind === "constraint"',
      },
    ],
  },
  {
    name: "recovery-takes-a-failed-read-for-no-row",
    harm: "a read that failed once while a damaged outbox is saved costs rows that were there",
    edits: [
      {
        file: "packages/daemon/src/stores/sqlite/read-damaged.ts",
        find: "(errcode & 0xff) !== sqliteIoError) return undefined;",
        replace: "(errcode & 0xff) !== sqliteIoError || tries > 0) return undefined;",
      },
    ],
  },
  {
    name: "a-failed-read-ends-the-start",
    harm: "a read that failed once after the look at the files stops the start, and calls them malformed",
    edits: [
      {
        file: "packages/daemon/src/start.ts",
        find: "if (isReadFailure(error) && triesLeft > 0",
        replace: "if (isReadFailure(error) && triesLeft > startTriesMax",
      },
    ],
  },
  {
    name: "one-look-is-damage",
    harm: "a read that failed once costs the inbox its read marks, or stops the start as damage",
    edits: [
      {
        file: "packages/daemon/src/stores/sqlite/look-for-damage.ts",
        find: "      if (text === seen) return problems;\n",
        replace: "      if (text !== seen) return problems;\n",
      },
    ],
  },
  {
    name: "done-rows-fill-the-outbox",
    harm: "sends are refused for want of room that is held by rows which are no longer needed",
    edits: [
      {
        file: "packages/daemon/src/services/storage-gauge.ts",
        find: "      const rows = await outbox.prune(nowMs + 1, nowMs, rowsPerStep);\n",
        replace: "      const rows = await Promise.resolve(nowMs - nowMs + rowsPerStep - rowsPerStep);\n",
      },
    ],
  },
  {
    name: "priorities-do-not-matter",
    harm: "an urgent message waits behind everything that was queued before it",
    edits: [
      {
        file: "packages/daemon/src/core/priorities.ts",
        find: 'export const prioritiesFirst: readonly Priority[] = ["now", "next", "low"];',
        replace: 'export const prioritiesFirst: readonly Priority[] = ["low", "next", "now"];',
      },
    ],
  },
  {
    name: "wall-clock-backoff",
    harm: "setting the clock back holds up every retry for as long",
    edits: [
      {
        file: "packages/daemon/src/system-clock.ts",
        find: "nowMs: () => Math.floor(startMs + sources.monotonicMs() + sleptMs),",
        replace: "nowMs: () => Math.floor(sources.wallMs() + 0 * (startMs + sleptMs)),",
      },
    ],
  },
];

export const knownBad: readonly KnownBad[] = [
  ...messageFaults,
  ...drainFaults,
  ...inboxFaults,
  ...keyFaults,
  ...memberFaults,
  ...spaceFaults,
  ...sealingFaults,
  ...registrarFaults,
];
