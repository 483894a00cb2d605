// RegistrarStore on PostgreSQL: which function reads on its own and which is a transaction.
import { NaturalBatches } from "@claudemesh/storage/natural-batches";
import type { Postgres } from "@claudemesh/storage/postgres";
import type { StoredRequest } from "../../core/records.ts";
import type { SurfaceFacts } from "../../core/surface.ts";
import type { RegistrarStore } from "../../ports.ts";
import { insertApproval, revokeApproval, selectApproval, selectApprovals } from "./approvals.ts";
import { countRetries, selectAttempts } from "./attempts.ts";
import { insertRefusal, selectAudit, summariseWindows } from "./audit.ts";
import { inspectSurface } from "./inspect-surface.ts";
import { postgresRegistrarMigrations } from "./registrar-migrations.ts";
import {
  compensateInTransaction,
  consumeInTransaction,
  decideAgainWhenTaken,
  insertVerification,
  selectFailed,
  selectUnverified,
} from "./requests.ts";
import { type Reading, type RequestKey, selectRequests, selectRequestsByKeys } from "./stored-requests.ts";

/** What the database's live schema shows, without changing it. */
export function inspectPostgresSurface(postgres: Postgres): Promise<SurfaceFacts> {
  return inspectSurface(committedReads(postgres), postgresRegistrarMigrations());
}

/** Hears of transactions that consume a key, so that fault points can aim at them. */
export type RegistrarProbe = {
  /** Inside the transaction, after its last statement. A throw rolls back. */
  readonly beforeCommit: (work: "registrar") => void | Promise<void>;
  /** Committed, and nobody has been told. A throw reaches the caller, as a crash would. */
  readonly afterCommit: (work: "registrar") => void | Promise<void>;
};

const lookUpsPerRead = 256;

/** `looking`: for the look-ups that come before every decision; with generic plans. */
export function createPostgresRegistrarStore(
  postgres: Postgres,
  probe: RegistrarProbe,
  looking = postgres,
): RegistrarStore {
  const committed = committedReads(postgres);
  const lookedUp = committedReads(looking);
  // Both are asked for in crowds, and a crowd shares a round trip.
  const lookUps = (read: "stored" | "consumed") =>
    new NaturalBatches<RequestKey, StoredRequest | undefined>({
      maxConcurrent: 2,
      maxBatch: lookUpsPerRead,
      run: (keys) => selectRequestsByKeys(lookedUp, keys, read),
    });
  const stored = lookUps("stored");
  const consumed = lookUps("consumed");
  return {
    approvals: {
      add: async (meshId, approval) => {
        const stored = await postgres.transaction((tx) => insertApproval(tx, meshId, approval));
        return stored === undefined ? { type: "added" } : { type: "stored", approval: stored };
      },
      find: (meshId, approvalId) => selectApproval(committed, meshId, approvalId),
      list: (meshId, after, limit) => selectApprovals(committed, meshId, after, limit),
      revoke: (meshId, approvalId, nowMs) =>
        postgres.transaction((tx) => revokeApproval(tx, meshId, approvalId, nowMs)),
    },
    requests: {
      find: (meshId, logicalRequestKey) => stored.submit({ meshId, logicalRequestKey }),
      findConsumed: (meshId, logicalRequestKey) => consumed.submit({ meshId, logicalRequestKey }),
      consume: async (request, nowMs) => {
        const decision = await decideAgainWhenTaken(postgres, async (tx) => {
          const decided = await consumeInTransaction(tx, request, nowMs);
          if (decided.type === "consume") await probe.beforeCommit("registrar");
          return decided;
        });
        if (decision.type === "consume") await probe.afterCommit("registrar");
        return decision;
      },
      compensate: (request, nowMs) =>
        decideAgainWhenTaken(postgres, (tx) => compensateInTransaction(tx, request, nowMs)),
      verify: (meshId, logicalRequestKey, verification) =>
        postgres.transaction((tx) => insertVerification(tx, meshId, logicalRequestKey, verification)),
      list: (meshId, after, limit) => selectRequests(committed, meshId, after, limit),
      failed: (meshId, limit) => selectFailed(committed, meshId, limit),
      unverified: (sinceId, after, limit) => selectUnverified(committed, sinceId, after, limit),
    },
    audit: {
      refuse: (meshId, refusal, nowMs, nextId) =>
        postgres.transaction((tx) => insertRefusal(tx, meshId, refusal, nowMs, nextId)),
      summarise: (nowMs, limit, nextId) => postgres.transaction((tx) => summariseWindows(tx, nowMs, limit, nextId)),
      list: (meshId, after, limit) => selectAudit(committed, meshId, after, limit),
    },
    attempts: {
      count: (retries) => postgres.transaction((tx) => countRetries(tx, retries)),
      list: (meshId, logicalRequestKey) => selectAttempts(committed, meshId, logicalRequestKey),
    },
    inspect: () => inspectPostgresSurface(postgres),
  };
}

function committedReads(postgres: Postgres): Reading {
  return { query: (text, values, name) => postgres.read(text, values, name) };
}
