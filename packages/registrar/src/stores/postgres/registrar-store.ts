// RegistrarStore on PostgreSQL: which function reads on its own and which is a transaction.
import { Batcher, questions } from "@claudemesh/storage/batcher";
import type { CommitHooks } from "@claudemesh/storage/commit-hooks";
import type { Postgres } from "@claudemesh/storage/postgres";
import { createPostgresCommit } from "@claudemesh/storage/postgres-commit";
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

/** `looking`: for the look-ups that come before every decision; with generic plans. */
export function createPostgresRegistrarStore(
  postgres: Postgres,
  { looking = postgres, hooks }: { readonly looking?: Postgres; readonly hooks?: CommitHooks | undefined } = {},
): RegistrarStore {
  const commit = createPostgresCommit(postgres, hooks);
  const committed = committedReads(postgres);
  const lookedUp = committedReads(looking);
  // Both are asked for in crowds, and a crowd shares a round trip.
  const lookUps = (read: "stored" | "consumed") =>
    new Batcher<RequestKey, StoredRequest | undefined>(questions, {
      run: (keys) => selectRequestsByKeys(lookedUp, keys, read),
    });
  const stored = lookUps("stored");
  const consumed = lookUps("consumed");
  return {
    approvals: {
      add: (meshId, approval) => postgres.transaction((tx) => insertApproval(tx, meshId, approval)),
      find: (meshId, approvalId) => selectApproval(committed, meshId, approvalId),
      list: (meshId, after, limit) => selectApprovals(committed, meshId, after, limit),
      revoke: (meshId, approvalId, nowMs) =>
        postgres.transaction((tx) => revokeApproval(tx, meshId, approvalId, nowMs)),
    },
    requests: {
      find: (meshId, logicalRequestKey) => stored.submit({ meshId, logicalRequestKey }),
      findConsumed: (meshId, logicalRequestKey) => consumed.submit({ meshId, logicalRequestKey }),
      consume: (request, nowMs) =>
        decideAgainWhenTaken(() => commit.submit((tx) => consumeInTransaction(tx, request, nowMs), "registrar")),
      compensate: (request, nowMs) =>
        decideAgainWhenTaken(() => postgres.transaction((tx) => compensateInTransaction(tx, request, nowMs))),
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
