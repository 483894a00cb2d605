// MessagesStore on SQLite: which function runs as a committed read and which as a job of the group commit.
import type { FirstOnes, GroupCommit } from "@claudemesh/storage/group-commit";
import { loadMigrations, type Migration } from "@claudemesh/storage/migrations";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { leaseWithRetries } from "../../core/expired-leases.ts";
import { type RateLimit, retryAfterSeconds } from "../../core/rate-limit.ts";
import { fateFromStored, isAnsweredByClaim } from "../../core/stored-accept.ts";
import type { PresenceStore } from "../../ports/presence.ts";
import type { QueueStore } from "../../ports/queues.ts";
import type { WebhookStore } from "../../ports/webhooks.ts";
import type { CommittedAccept, FateResult, FenceRequest, MessagesStore, OfferedSend } from "../../ports.ts";
import { noClaim } from "../webhook-rows.ts";
import { AcceptBatch, isFenced } from "./accept-batch.ts";
import { acceptInBatch, answerClaimed, findAccepted } from "./accept-in-transaction.ts";
import { selectDestinationState } from "./destination-state.ts";
import { selectExpiredIds } from "./forgetting.ts";
import { selectHistory, selectUnsettled } from "./history-rows.ts";
import { forgetStep, selectMeshes, sweepMesh } from "./housekeeping.ts";
import { BudgetBatch, sweepBudget } from "./limiter.ts";
import { endMembership, selectUnfinished } from "./memberships.ts";
import { selectMentions } from "./mentions.ts";
import { selectMessageState } from "./message-state.ts";
import { claimCheck, createRules, selectCheck, updateCheck } from "./orphans.ts";
import { deleteLeases, selectPeers, sweepLeases, updateProfile, upsertLeases } from "./presence.ts";
import { countParked, selectQueues } from "./queue-list.ts";
import {
  countQueues,
  insertQueue,
  leaseMessages,
  reviveMessages,
  selectMaxDeliveries,
  selectParkedPage,
  settleMessages,
  writeExpired,
} from "./queues.ts";
import { createCountNext } from "./rate-counters.ts";
import { indexNext, selectFound, selectStaleMesh } from "./search.ts";
import { selectSize, selectStats } from "./stats.ts";
import {
  countTopics,
  deleteSubscription,
  deleteTopic,
  insertSubscription,
  insertTopic,
  measureTopics,
  selectTopics,
  topicExists,
} from "./topics.ts";
import { claimDeliveries, selectTurns } from "./webhook-claims.ts";
import {
  countDeliveries,
  hasPrunable,
  pruneDeliveries,
  selectBehind,
  settleDelivery,
  writeNextDeliveries,
} from "./webhook-deliveries.ts";
import {
  deleteWebhook,
  insertWebhook,
  replayDeliveries,
  rewindWebhook,
  selectDeliveries,
  selectWebhook,
  selectWebhooks,
} from "./webhooks.ts";

export function messagesMigrations(): Migration[] {
  return loadMigrations("messages", new URL("./migrations/", import.meta.url));
}

export function createSqliteMessagesStore(db: Sqlite, commit: GroupCommit, rate: RateLimit): MessagesStore {
  const acceptTogether = (tx: Sqlite, sends: readonly OfferedSend[]) => acceptInBudget(tx, rate, sends);
  return {
    accepts: {
      findAccepted: (meshId, clientMessageId) => commit.read((tx) => findAccepted(tx, meshId, clientMessageId)),
      accept: (send) => commit.submitItem(acceptTogether, send, "accept"),
    },
    fences: {
      findFate: async (request) => selectFate(db, request),
      fence: (request, nowMs, expiresAtMs) =>
        commit.submit((tx) => insertFence(tx, request, nowMs, expiresAtMs), "fence"),
    },
    deliveries: {
      unsettled: async (meshId, recipient, after, limit) => selectUnsettled(db, meshId, recipient, after, limit),
      settle: (meshId, recipient, historyIds, nowMs) =>
        commit.submit((tx) => {
          const settle = tx.sql(
            `UPDATE delivery_queue SET settled_at = ?, outcome = 'delivered'
             WHERE mesh_id = ? AND history_id = ? AND recipient_pubkey = ? AND settled_at IS NULL`,
          );
          for (const historyId of historyIds) settle.run(nowMs, meshId, historyId, recipient);
        }),
    },
    history: { read: async (query) => selectHistory(db, query) },
    topics: {
      create: (meshId, topic, nowMs) => commit.submit((tx) => insertTopic(tx, meshId, topic, nowMs)),
      exists: async (meshId, topic) => topicExists(db, meshId, topic),
      count: async (meshId, upTo) => countTopics(db, meshId, upTo),
      list: async (meshId, reader, after, limit) => selectTopics(db, meshId, reader, after, limit),
      measure: async (meshId, topics) => measureTopics(db, meshId, topics),
      subscribe: (meshId, topic, pubkey, nowMs) =>
        commit.submit((tx) => insertSubscription(tx, meshId, topic, pubkey, nowMs)),
      unsubscribe: (meshId, topic, pubkey) => commit.submit((tx) => deleteSubscription(tx, meshId, topic, pubkey)),
      delete: (meshId, topic) => commit.submit((tx) => deleteTopic(tx, meshId, topic)),
    },
    queues: createQueueStore(db, commit),
    webhooks: createWebhookStore(db, commit),
    memberships: {
      end: (former, nowMs, limit) => commit.submit((tx) => endMembership(tx, former, nowMs, limit)),
      unfinished: async (limit) => selectUnfinished(db, limit),
    },
    presence: createPresenceStore(db, commit),
    mentions: { read: async (query) => selectMentions(db, query) },
    search: {
      find: async (query) => selectFound(db, query),
      // Checks first, so that the write lock is not taken while there is nothing to do.
      indexNext: async (nowMs) =>
        selectStaleMesh(db) !== undefined && (await commit.submit((tx) => indexNext(tx, nowMs))),
    },
    messageState: { find: async (query, nowMs) => selectMessageState(db, query, nowMs) },
    destinations: { find: async (query) => selectDestinationState(db, query) },
    housekeeping: {
      meshes: async (after, limit) => selectMeshes(db, after, limit),
      sweepMesh: (meshId, terms) => commit.submit((tx) => sweepMesh(tx, meshId, terms), "sweep"),
      forgetIds: async (meshId, after, nowMs) => {
        // Looking first leaves the write lock alone while there is nothing to forget.
        const { ids, next } = selectExpiredIds(db, meshId, after, nowMs);
        if (ids.length === 0) return { counts: {}, next };
        return commit.submit((tx) => forgetStep(tx, meshId, { ids, after, next, nowMs }), "sweep");
      },
      countNext: createCountNext(db, commit),
    },
    orphans: {
      ...createRules(db),
      claim: (meshId, nowMs, beforeMs) => commit.submit((tx) => claimCheck(tx, meshId, nowMs, beforeMs)),
      noteCheck: (meshId, check) => commit.submit((tx) => updateCheck(tx, meshId, check)),
      lastCheck: async (meshId) => selectCheck(db, meshId),
    },
    stats: {
      ofMesh: async (meshId, nowMs) => selectStats(db, meshId, nowMs),
      sizeBytes: async () => selectSize(db),
    },
    sweepLimiter: (nowMs, limit) => commit.submit((tx) => sweepBudget(tx, rate, nowMs, limit)),
  };
}

function createQueueStore(db: Sqlite, commit: GroupCommit): QueueStore {
  return {
    create: (meshId, queue, nowMs) => commit.submit((tx) => insertQueue(tx, meshId, queue, nowMs)),
    exists: async (meshId, queue) => selectMaxDeliveries(db, meshId, queue) !== undefined,
    count: async (meshId, upTo) => countQueues(db, meshId, upTo),
    lease: (request, nowMs) => leaseWithRetries(() => commit.submit((tx) => leaseMessages(tx, request, nowMs))),
    settle: (request, nowMs) => commit.submit((tx) => settleMessages(tx, request, nowMs)),
    list: async (query, nowMs) => selectQueues(db, query, nowMs),
    countParked: async (meshId, limit) => countParked(db, meshId, limit),
    parked: async (query, nowMs) => {
      for (;;) {
        const page = selectParkedPage(db, query, nowMs);
        if (page.type === "queue_not_found") return undefined;
        if (page.type === "page") return { items: page.items, nextAfter: page.nextAfter };
        await commit.submit((tx) => writeExpired(tx, query, nowMs));
      }
    },
    revive: (request, nowMs) => commit.submit((tx) => reviveMessages(tx, request, nowMs)),
  };
}

/** Checks first, so that the write lock is not taken while there is nothing to do. */
function createWebhookStore(db: Sqlite, commit: GroupCommit): WebhookStore {
  return {
    create: (webhook, nowMs, perMeshMax) => commit.submit((tx) => insertWebhook(tx, webhook, nowMs, perMeshMax)),
    find: async (meshId, id) => {
      const stored = selectWebhook(db, meshId, id);
      return stored && { fingerprint: stored.fingerprint, createdAtMs: stored.created_at };
    },
    list: async (meshId, after, limit) => selectWebhooks(db, meshId, after, limit),
    delete: (meshId, id, nowMs) => commit.submit((tx) => deleteWebhook(tx, meshId, id, nowMs)),
    deliveries: async (query) => selectDeliveries(db, query),
    replay: (meshId, id, which, nowMs) => commit.submit((tx) => replayDeliveries(tx, meshId, id, which, nowMs)),
    replayFrom: (meshId, id, from) => commit.submit((tx) => rewindWebhook(tx, meshId, id, from)),
    writeNext: async (nowMs) =>
      selectBehind(db) !== undefined && (await commit.submit((tx) => writeNextDeliveries(tx, nowMs))),
    claim: async (terms, nowMs) =>
      selectTurns(db, terms, nowMs).length === 0 ? noClaim : commit.submit((tx) => claimDeliveries(tx, terms, nowMs)),
    settle: (delivery, judged, nowMs) => commit.submit((tx) => settleDelivery(tx, delivery, judged, nowMs)),
    prune: async (settledBeforeMs, limit) =>
      hasPrunable(db, settledBeforeMs) ? commit.submit((tx) => pruneDeliveries(tx, settledBeforeMs, limit)) : 0,
    counts: async () => countDeliveries(db),
  };
}

function createPresenceStore(db: Sqlite, commit: GroupCommit): PresenceStore {
  return {
    hold: (leases, nowMs, expiresAtMs) => commit.submit((tx) => upsertLeases(tx, leases, nowMs, expiresAtMs)),
    release: (leases) => commit.submit((tx) => deleteLeases(tx, leases)),
    peers: async (query, nowMs) => selectPeers(db, query, nowMs),
    sweep: (nowMs, limit) => commit.submit((tx) => sweepLeases(tx, nowMs, limit)),
    setProfile: (meshId, pubkey, change, nowMs) =>
      commit.submit((tx) => updateProfile(tx, meshId, pubkey, change, nowMs)),
  };
}

/** Everything else waits while they are written: a few dozen milliseconds' worth. One message may have more of them. */
const deliveriesPerTransaction = 8_192;

function acceptInBudget(tx: Sqlite, rate: RateLimit, sends: readonly OfferedSend[]): FirstOnes<CommittedAccept> {
  const batch = new AcceptBatch(tx);
  const budget = new BudgetBatch(tx, rate);
  const accepts: CommittedAccept[] = [];
  let deliveries = 0;
  for (const send of sends) {
    const accept = acceptWithinBudget(batch, budget, rate, send);
    accepts.push(accept);
    deliveries += accept.recipients.length;
    if (deliveries >= deliveriesPerTransaction) break;
  }
  batch.finish();
  budget.finish();
  return { firstOnes: accepts };
}

// A send that lost the race to the claim is answered by it and spends nothing, as if the look-up had seen the row.
function acceptWithinBudget(
  batch: AcceptBatch,
  budget: BudgetBatch,
  rate: RateLimit,
  send: OfferedSend,
): CommittedAccept {
  const { meshId, clientMessageId, acceptedAtMs } = send;
  if (send.isOutdated()) return { result: { type: "outdated" }, recipients: [] };
  if (!budget.admits(meshId, clientMessageId, acceptedAtMs)) {
    const limited = { type: "rate_limited", retryAfterSeconds: retryAfterSeconds(rate, acceptedAtMs) } as const;
    return answerClaimed(batch.tx, send) ?? { result: limited, recipients: [] };
  }
  const accept = acceptInBatch(batch, send);
  if (isAnsweredByClaim(accept.result)) return accept;
  const consumed = budget.consume(meshId, clientMessageId, acceptedAtMs);
  const { result, recipients } = accept;
  return { result, recipients, budgetSpent: consumed.ok && consumed.spent };
}

// A fence is asked first: once it stands, its owner's send can never commit, also when another member has taken the id
// since, and asking again must give the same fate.
function selectFate(db: Sqlite, request: FenceRequest): FateResult {
  const { meshId, senderPubkey, clientMessageId } = request;
  if (isFenced(db, meshId, senderPubkey, clientMessageId)) return { fate: "fenced" };
  return fateFromStored(findAccepted(db, meshId, clientMessageId), request) ?? { fate: "none" };
}

function insertFence(
  tx: Sqlite,
  request: FenceRequest,
  nowMs: number,
  expiresAtMs: number | undefined,
): Exclude<FateResult, { fate: "none" }> {
  const fate = selectFate(tx, request);
  if (fate.fate !== "none") return fate;
  tx.sql(
    `INSERT INTO client_message_fence
       (mesh_id, sender_pubkey, client_message_id, request_fingerprint, fenced_at, expires_at)
     VALUES (?, ?, ?, ?, ?, ?)`,
  ).run(request.meshId, request.senderPubkey, request.clientMessageId, request.fingerprint, nowMs, expiresAtMs ?? null);
  return { fate: "fenced" };
}
