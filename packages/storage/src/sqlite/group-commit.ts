// Natural batching: every job submitted before the event loop comes round shares one transaction and one flush.
// Knows nothing about what the jobs do; a job works on the database alone, because it may run twice.
import assert from "node:assert/strict";
import { StorageError } from "../storage-error.ts";
import type { Sqlite } from "./sqlite.ts";

export interface GroupCommitOptions {
  /** Jobs in one transaction; more wait for the next. */
  maxBatch?: number;
  /** Jobs waiting; more are refused as busy. */
  maxQueued?: number;
  /** After the last job, inside the transaction. A throw rolls back and rejects every job of the batch. */
  beforeCommit?: () => void;
  /** Calls once, when the event loop has come round; `setImmediate` unless another loop drives this one. */
  nextTurn?: (run: () => void) => void;
  /** The batch is on disk and nobody has been told. A throw rejects jobs that are committed, as a crash would. */
  afterCommit?: () => void;
}

/** Synchronous, and without effects outside the database: when a neighbour fails it is rolled back and runs again. */
export type CommitJob<R> = (db: Sqlite) => R;

interface QueuedJob {
  job: CommitJob<unknown>;
  resolve: (result: unknown) => void;
  reject: (error: unknown) => void;
  /** What the job returned in the transaction under way. */
  result: unknown;
}

type CommitPhase = "begin" | "jobs" | "commit" | "committed";

export class GroupCommit {
  readonly #db: Sqlite;
  readonly #maxBatch: number;
  readonly #maxQueued: number;
  readonly #beforeCommit: (() => void) | undefined;
  readonly #afterCommit: (() => void) | undefined;
  readonly #nextTurn: (run: () => void) => void;
  readonly #onImmediate = () => this.#runScheduled();
  #queue: QueuedJob[] = [];
  #scheduled = false;
  #closed = false;

  constructor(db: Sqlite, options: GroupCommitOptions = {}) {
    this.#db = db;
    this.#maxBatch = options.maxBatch ?? 256;
    this.#maxQueued = options.maxQueued ?? 65_536;
    this.#beforeCommit = options.beforeCommit;
    this.#afterCommit = options.afterCommit;
    this.#nextTurn = options.nextTurn ?? setImmediate;
    assert(this.#maxBatch >= 1 && this.#maxQueued >= 1);
  }

  /** Jobs that wait for their transaction. */
  get queued(): number {
    return this.#queue.length;
  }

  /** Resolves after the COMMIT that holds this job has returned; rejects if it is not committed. */
  submit<R>(job: CommitJob<R>): Promise<R> {
    if (this.#closed) return Promise.reject(new StorageError("closed", "the group commit is closed"));
    if (this.#queue.length >= this.#maxQueued) {
      return Promise.reject(new StorageError("busy", `${this.#maxQueued} jobs wait for the disk`));
    }
    return new Promise<R>((resolve, reject) => {
      this.#queue.push({ job, resolve: resolve as QueuedJob["resolve"], reject, result: undefined });
      this.#schedule();
    });
  }

  /** Refuses further jobs and commits those that wait. The database stays open. */
  close(): void {
    this.#closed = true;
    while (this.#queue.length > 0) this.#commitBatch(this.#takeBatch());
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#nextTurn(this.#onImmediate);
  }

  #runScheduled(): void {
    this.#scheduled = false;
    if (this.#queue.length === 0) return;
    const batch = this.#takeBatch();
    if (this.#queue.length > 0) this.#schedule();
    this.#commitBatch(batch);
  }

  #takeBatch(): QueuedJob[] {
    if (this.#queue.length > this.#maxBatch) return this.#queue.splice(0, this.#maxBatch);
    const batch = this.#queue;
    this.#queue = [];
    return batch;
  }

  #commitBatch(batch: QueuedJob[]): void {
    let phase: CommitPhase = "begin";
    try {
      this.#db.transaction(() => {
        phase = "jobs";
        for (const entry of batch) entry.result = this.#run(entry.job);
        phase = "commit";
        this.#beforeCommit?.();
      });
      phase = "committed";
      this.#afterCommit?.();
    } catch (error) {
      if (batch.length > 1 && isOneJobsFault(phase, error)) this.#commitEachAlone(batch);
      else for (const entry of batch) entry.reject(error);
      return;
    }
    for (const entry of batch) entry.resolve(entry.result);
  }

  #commitEachAlone(batch: QueuedJob[]): void {
    for (const entry of batch) this.#commitBatch([entry]);
  }

  #run(job: CommitJob<unknown>): unknown {
    const result = job(this.#db);
    assert(!(result instanceof Promise), "a job is synchronous: what it awaits would run after COMMIT");
    return result;
  }
}

// A job that threw, or a COMMIT that found a row breaking a deferred rule. A BEGIN that waited in vain or a flush that
// failed concerns all of them.
function isOneJobsFault(phase: CommitPhase, error: unknown): boolean {
  if (phase === "commit") return error instanceof StorageError && error.kind === "constraint";
  return phase === "jobs";
}
