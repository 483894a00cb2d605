// RegistrarStore on SQLite: which function runs as a committed read and which as a job of the group commit.
import type { GroupCommit } from "@claudemesh/storage/group-commit";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { SurfaceFacts } from "../../core/surface.ts";
import type { RegistrarStore } from "../../ports.ts";
import { insertApproval, revokeApproval, selectApproval, selectApprovals } from "./approvals.ts";
import { countRetries, selectAttempts } from "./attempts.ts";
import { hasWindowsOver, insertRefusal, selectAudit, summariseWindows } from "./audit.ts";
import { inspectSurface } from "./inspect-surface.ts";
import { registrarMigrations } from "./registrar-migrations.ts";
import {
  compensateInTransaction,
  consumeInTransaction,
  insertVerification,
  selectFailed,
  selectUnverified,
} from "./requests.ts";
import { selectConsumed, selectRequest, selectRequests } from "./stored-requests.ts";

/** What the file's live schema shows, without changing it. */
export function inspectSqliteSurface(db: Sqlite): SurfaceFacts {
  return inspectSurface(db, registrarMigrations());
}

export function createSqliteRegistrarStore(db: Sqlite, commit: GroupCommit): RegistrarStore {
  return {
    approvals: {
      add: (meshId, approval) => commit.submit((tx) => insertApproval(tx, meshId, approval)),
      find: (meshId, approvalId) => commit.read((tx) => selectApproval(tx, meshId, approvalId)),
      list: async (meshId, after, limit) => selectApprovals(db, meshId, after, limit),
      revoke: (meshId, approvalId, nowMs) => commit.submit((tx) => revokeApproval(tx, meshId, approvalId, nowMs)),
    },
    requests: {
      // Both are asked for in crowds, and a crowd shares a snapshot.
      find: (meshId, logicalRequestKey) => commit.read((tx) => selectRequest(tx, meshId, logicalRequestKey)),
      findConsumed: (meshId, logicalRequestKey) => commit.read((tx) => selectConsumed(tx, meshId, logicalRequestKey)),
      consume: (request, nowMs) => commit.submit((tx) => consumeInTransaction(tx, request, nowMs), "registrar"),
      compensate: (request, nowMs) => commit.submit((tx) => compensateInTransaction(tx, request, nowMs)),
      verify: (meshId, logicalRequestKey, verification) =>
        commit.submit((tx) => insertVerification(tx, meshId, logicalRequestKey, verification)),
      list: async (meshId, after, limit) => selectRequests(db, meshId, after, limit),
      failed: async (meshId, limit) => selectFailed(db, meshId, limit),
      unverified: async (sinceId, after, limit) => selectUnverified(db, sinceId, after, limit),
    },
    audit: {
      refuse: (meshId, refusal, nowMs, nextId) =>
        commit.submit((tx) => insertRefusal(tx, meshId, refusal, nowMs, nextId)),
      // Looking first leaves the write lock alone while there is nothing to do.
      summarise: async (nowMs, limit, nextId) =>
        hasWindowsOver(db, nowMs) ? commit.submit((tx) => summariseWindows(tx, nowMs, limit, nextId)) : 0,
      list: async (meshId, after, limit) => selectAudit(db, meshId, after, limit),
    },
    attempts: {
      count: (retries) => commit.submit((tx) => countRetries(tx, retries)),
      list: async (meshId, logicalRequestKey) => selectAttempts(db, meshId, logicalRequestKey),
    },
    inspect: async () => inspectSqliteSurface(db),
  };
}
