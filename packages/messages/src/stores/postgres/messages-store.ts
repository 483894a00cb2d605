// MessagesStore on PostgreSQL: which function reads on its own, which is a transaction, and what is batched. Has no
// limiter: that is put around it.
import { Batcher, lookUps } from "@claudemesh/storage/batcher";
import type { CommitHooks } from "@claudemesh/storage/commit-hooks";
import { loadMigrations, type Migration } from "@claudemesh/storage/migrations";
import type { Postgres } from "@claudemesh/storage/postgres";
import { createPostgresCommit } from "@claudemesh/storage/postgres-commit";
import type { PresenceStore } from "../../ports/presence.ts";
import type { QueueStore } from "../../ports/queues.ts";
import type { WebhookStore } from "../../ports/webhooks.ts";
import type { MessagesStore, StoredAccept } from "../../ports.ts";
import { noClaim } from "../webhook-rows.ts";
import { AcceptBatches } from "./accept-batches.ts";
import { createDeliveryStore, type Recipient, selectWaiting } from "./deliveries.ts";
import { selectDestinationState } from "./destination-state.ts";
import { fenceInTransaction, selectFate } from "./fences.ts";
import { selectHistory } from "./history-rows.ts";
import { forgetNext, selectMeshes, sweepMesh } from "./housekeeping.ts";
import { endMembership, selectUnfinished } from "./memberships.ts";
import { selectMentions } from "./mentions.ts";
import { selectMessageState } from "./message-state.ts";
import { claimCheck, createRules, selectCheck, updateCheck } from "./orphans.ts";
import { deleteLeases, selectPeers, sweepLeases, updateProfile, upsertLeases } from "./presence.ts";
import { createQueueBatches } from "./queue-batches.ts";
import { countParked, selectQueues } from "./queue-list.ts";
import {
  countQueues,
  insertQueue,
  reviveMessages,
  selectMaxDeliveries,
  selectParkedPage,
  writeExpired,
} from "./queues.ts";
import { createCountNext } from "./rate-counters.ts";
import { hasStaleMesh, indexNext, selectFound } from "./search.ts";
import { selectSize, selectStats } from "./stats.ts";
import { type ClientKey, type Reading, selectAccepted } from "./stored-accepts.ts";
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
import { claimDeliveries, hasTurn } from "./webhook-claims.ts";
import {
  countDeliveries,
  isBehind,
  pruneDeliveries,
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

export function postgresMessagesMigrations(): Migration[] {
  return loadMigrations("messages", new URL("./migrations/", import.meta.url));
}

export type MessagesPools = {
  /** Connections that may wait for a mesh's lock, so that nothing else waits behind them. With generic plans. */
  readonly accepting: Postgres;
  /** For the look-ups that precede every request, so that they wait for nothing else. With generic plans. */
  readonly looking: Postgres;
  /** Connections that may wait for a queue's row, likewise. With generic plans. */
  readonly queueing: Postgres;
  readonly common: Postgres;
};

export function createPostgresMessagesStore(pools: MessagesPools, hooks?: CommitHooks): MessagesStore {
  const { accepting, looking, common } = pools;
  const committed: Reading = { query: (text, values, name) => common.read(text, values, name) };
  const lookedUp: Reading = { query: (text, values, name) => looking.read(text, values, name) };
  const accepts = new AcceptBatches(accepting, hooks);
  // Of all meshes together. A send that is cut off here is cut off from the transaction of its mesh.
  const ids = new Batcher<ClientKey, StoredAccept | undefined>(lookUps, {
    run: (keys) => selectAccepted(lookedUp, keys),
  });
  const fences = createPostgresCommit(accepting, hooks);
  const sweeps = createPostgresCommit(common, hooks);
  return {
    accepts: {
      findAccepted: (meshId, clientMessageId) => ids.submit({ meshId, clientMessageId }),
      accept: (send) => accepts.accept(send),
    },
    fences: {
      findFate: (request) => selectFate(committed, request),
      fence: (request, nowMs, expiresAtMs) =>
        fences.submit((tx) => fenceInTransaction(tx, request, nowMs, expiresAtMs), "fence"),
    },
    deliveries: createDeliveryStore(common, committed),
    history: { read: (query) => selectHistory(committed, query) },
    topics: {
      create: (meshId, topic, nowMs) => common.transaction((tx) => insertTopic(tx, meshId, topic, nowMs)),
      exists: (meshId, topic) => topicExists(committed, meshId, topic),
      count: (meshId, upTo) => countTopics(committed, meshId, upTo),
      list: (meshId, reader, after, limit) => selectTopics(committed, meshId, reader, after, limit),
      measure: (meshId, topics) => measureTopics(committed, meshId, topics),
      subscribe: (meshId, topic, pubkey, nowMs) =>
        common.transaction((tx) => insertSubscription(tx, meshId, topic, pubkey, nowMs)),
      unsubscribe: (meshId, topic, pubkey) => common.transaction((tx) => deleteSubscription(tx, meshId, topic, pubkey)),
      delete: (meshId, topic) => accepting.transaction((tx) => deleteTopic(tx, meshId, topic)),
    },
    queues: createQueueStore(pools, committed),
    webhooks: createWebhookStore(pools, committed),
    memberships: {
      end: (former, nowMs, limit) => common.transaction((tx) => endMembership(tx, former, nowMs, limit)),
      unfinished: (limit) => selectUnfinished(committed, limit),
    },
    presence: createPresenceStore(common, committed),
    mentions: { read: (query) => selectMentions(committed, query) },
    search: {
      find: (query) => selectFound(committed, query),
      indexNext: async (nowMs) =>
        (await hasStaleMesh(committed)) && (await common.transaction((tx) => indexNext(tx, nowMs))),
    },
    messageState: { find: (query, nowMs) => selectMessageState(committed, query, nowMs) },
    destinations: { find: (query) => selectDestinationState(committed, query) },
    housekeeping: {
      meshes: (after, limit) => selectMeshes(committed, after, limit),
      sweepMesh: (meshId, terms) => sweeps.submit((tx) => sweepMesh(tx, meshId, terms), "sweep"),
      forgetIds: (meshId, _after, nowMs) => sweeps.submit((tx) => forgetNext(tx, meshId, nowMs), "sweep"),
      countNext: createCountNext(common),
    },
    orphans: {
      ...createRules(committed),
      claim: (meshId, nowMs, beforeMs) => common.transaction((tx) => claimCheck(tx, meshId, nowMs, beforeMs)),
      noteCheck: (meshId, check) => common.transaction((tx) => updateCheck(tx, meshId, check)),
      lastCheck: (meshId) => selectCheck(committed, meshId),
    },
    stats: {
      ofMesh: (meshId, nowMs) => selectStats(committed, meshId, nowMs),
      sizeBytes: () => selectSize(committed),
    },
    // The limiter around this store keeps its own records and lets them expire.
    sweepLimiter: async () => 0,
  };
}

function createQueueStore({ queueing, common }: MessagesPools, committed: Reading): QueueStore {
  return {
    create: (meshId, queue, nowMs) => common.transaction((tx) => insertQueue(tx, meshId, queue, nowMs)),
    exists: async (meshId, queue) => (await selectMaxDeliveries(committed, meshId, queue)) !== undefined,
    count: (meshId, upTo) => countQueues(committed, meshId, upTo),
    ...createQueueBatches(queueing),
    list: (query, nowMs) => selectQueues(committed, query, nowMs),
    countParked: (meshId, limit) => countParked(committed, meshId, limit),
    parked: async (query, nowMs) => {
      for (;;) {
        const page = await selectParkedPage(committed, query, nowMs);
        if (page.type === "queue_not_found") return undefined;
        if (page.type === "page") return { items: page.items, nextAfter: page.nextAfter };
        await common.transaction((tx) => writeExpired(tx, query, nowMs));
      }
    },
    revive: (request, nowMs) => common.transaction((tx) => reviveMessages(tx, request, nowMs)),
  };
}

/** Checks first, so that nothing is locked while there is nothing to do. */
function createWebhookStore({ accepting, common }: MessagesPools, committed: Reading): WebhookStore {
  return {
    create: (webhook, nowMs, perMeshMax) =>
      accepting.transaction((tx) => insertWebhook(tx, webhook, nowMs, perMeshMax)),
    find: async (meshId, id) => {
      const stored = await selectWebhook(committed, meshId, id);
      return stored && { fingerprint: stored.fingerprint, createdAtMs: stored.created_at.getTime() };
    },
    list: (meshId, after, limit) => selectWebhooks(committed, meshId, after, limit),
    delete: (meshId, id, nowMs) => common.transaction((tx) => deleteWebhook(tx, meshId, id, nowMs)),
    deliveries: (query) => selectDeliveries(committed, query),
    replay: (meshId, id, which, nowMs) => common.transaction((tx) => replayDeliveries(tx, meshId, id, which, nowMs)),
    replayFrom: (meshId, id, from) => common.transaction((tx) => rewindWebhook(tx, meshId, id, from)),
    writeNext: async (nowMs) =>
      (await isBehind(committed)) && (await common.transaction((tx) => writeNextDeliveries(tx, nowMs))),
    claim: async (terms, nowMs) =>
      (await hasTurn(committed, terms, nowMs))
        ? common.transaction((tx) => claimDeliveries(tx, terms, nowMs))
        : noClaim,
    settle: (delivery, judged, nowMs) => common.transaction((tx) => settleDelivery(tx, delivery, judged, nowMs)),
    prune: (settledBeforeMs, limit) => common.transaction((tx) => pruneDeliveries(tx, settledBeforeMs, limit)),
    counts: () => countDeliveries(committed),
  };
}

function createPresenceStore(common: Postgres, committed: Reading): PresenceStore {
  return {
    hold: (leases, nowMs, expiresAtMs) => common.transaction((tx) => upsertLeases(tx, leases, nowMs, expiresAtMs)),
    release: (leases) => common.transaction((tx) => deleteLeases(tx, leases)),
    peers: (query, nowMs) => selectPeers(committed, query, nowMs),
    sweep: (nowMs, limit) => common.transaction((tx) => sweepLeases(tx, nowMs, limit)),
    setProfile: (meshId, pubkey, change, nowMs) =>
      common.transaction((tx) => updateProfile(tx, meshId, pubkey, change, nowMs)),
  };
}

/** Who among those connected here has a delivery waiting: what finds deliveries whose signal was lost. */
export function findWaitingRecipients(common: Postgres, recipients: readonly Recipient[]): Promise<Recipient[]> {
  return selectWaiting({ query: (text, values, name) => common.read(text, values, name) }, recipients);
}
