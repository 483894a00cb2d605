// Natural batching: every job submitted before the event loop comes round shares one transaction and one flush, and
// every read one snapshot. Knows nothing about what they do; a job works on the database alone, because it may run twice.
// Why: docs/tuning-log.md#accepts-share-a-turn.
import assert from "node:assert/strict";
import process from "node:process";
import type { CommitHooks, CommitLabel } from "../commit-hooks.ts";
import { StorageError } from "../storage-error.ts";
import type { Sqlite } from "./sqlite.ts";

export interface GroupCommitOptions {
  /** Jobs in one transaction; more wait for the next. */
  maxBatch?: number;
  /** Jobs waiting; more are refused as busy. */
  maxQueued?: number;
  /** Hear of transactions that hold a job with a label. A throw rejects every job of the batch. */
  hooks?: CommitHooks<void> | undefined;
  /** Calls once, when the event loop has come round; `setImmediate` unless another loop drives this one. */
  nextTurn?: (run: () => void) => void;
  /**
   * Goes on collecting while each turn brings more, up to a full batch: for callers with a socket each, of whom one turn
   * hears a few. The loop is busy with them meanwhile, and a lone caller waits for one empty turn.
   */
  gathersTurns?: boolean;
  /** Called after each COMMIT, before any caller has its answer. */
  onCommitted?: (jobs: number) => void;
}

/** Synchronous, and without effects outside the database: when a neighbour fails it is rolled back and runs again. */
export type CommitJob<R> = (db: Sqlite) => R;

/**
 * For jobs that read the same things: does those that follow each other in one transaction in one call, so that each
 * thing is read once. One result per item, in their order. The same rules hold as for a job.
 */
export type CommitJobs<Item, R> = (db: Sqlite, items: readonly Item[]) => R[] | FirstOnes<R>;

/** The first of the items were work enough for one transaction, and the others, untouched, come first in the next. */
export type FirstOnes<R> = { readonly firstOnes: R[] };

interface QueuedJob {
  /** A job by itself; undefined: `item` is one of `jobs`, which are done together. */
  job: CommitJob<unknown> | undefined;
  jobs: CommitJobs<unknown, unknown> | undefined;
  item: unknown;
  label: CommitLabel | undefined;
  resolve: (result: unknown) => void;
  reject: (error: unknown) => void;
  /** What the job returned in the transaction under way. */
  result: unknown;
}

interface QueuedRead {
  read: CommitJob<unknown>;
  resolve: (result: unknown) => void;
  reject: (error: unknown) => void;
}

type CommitPhase = "begin" | "jobs" | "commit" | "committed";

export class GroupCommit {
  readonly #db: Sqlite;
  readonly #maxBatch: number;
  readonly #maxQueued: number;
  readonly #hooks: CommitHooks<void> | undefined;
  readonly #onCommitted: ((jobs: number) => void) | undefined;
  readonly #gathersTurns: boolean;
  readonly #nextTurn: (run: () => void) => void;
  readonly #onImmediate = () => this.#runScheduled();
  #queue: QueuedJob[] = [];
  #reads: QueuedRead[] = [];
  #scheduled = false;
  /** How many waited when the last turn ended. */
  #gathered = 0;
  #closed = false;

  constructor(db: Sqlite, options: GroupCommitOptions = {}) {
    this.#db = db;
    this.#maxBatch = options.maxBatch ?? 256;
    this.#maxQueued = options.maxQueued ?? 65_536;
    this.#hooks = options.hooks;
    this.#onCommitted = options.onCommitted;
    this.#gathersTurns = options.gathersTurns ?? false;
    this.#nextTurn = options.nextTurn ?? setImmediate;
    assert(this.#maxBatch >= 1 && this.#maxQueued >= 1);
  }

  /** Jobs that wait for their transaction. */
  get queued(): number {
    return this.#queue.length;
  }

  /**
   * Resolves after the COMMIT that holds this job has returned; rejects if it is not committed. The label says to hooks what
   * kind of work it is.
   */
  submit<R>(job: CommitJob<R>, label?: CommitLabel): Promise<R> {
    return this.#enqueue(job, undefined, undefined, label);
  }

  /** The same for one item of `jobs`, which is done in one call with the items of the same `jobs` beside it. */
  submitItem<Item, R>(jobs: CommitJobs<Item, R>, item: Item, label?: CommitLabel): Promise<R> {
    return this.#enqueue(undefined, jobs as CommitJobs<unknown, unknown>, item, label);
  }

  /**
   * A read of committed rows that shares its snapshot with the others of its turn: alone, each would lock and unlock the
   * file. It begins after it was asked for, and sees everything that was committed by then.
   */
  read<R>(read: CommitJob<R>): Promise<R> {
    return new Promise<R>((resolve, reject) => {
      this.#reads.push({ read, resolve: resolve as QueuedRead["resolve"], reject });
      this.#schedule();
    });
  }

  #enqueue<R>(job: QueuedJob["job"], jobs: QueuedJob["jobs"], item: unknown, label: QueuedJob["label"]): Promise<R> {
    if (this.#closed) return Promise.reject(new StorageError("closed", "the group commit is closed"));
    if (this.#queue.length >= this.#maxQueued) {
      return Promise.reject(new StorageError("busy", `${this.#maxQueued} jobs wait for the disk`));
    }
    return new Promise<R>((resolve, reject) => {
      const answer = { resolve: resolve as QueuedJob["resolve"], reject, result: undefined };
      this.#queue.push({ job, jobs, item, label, ...answer });
      this.#schedule();
    });
  }

  /** Refuses further jobs and commits those that wait. The database stays open. */
  close(): void {
    this.#closed = true;
    this.#readAll();
    while (this.#queue.length > 0) this.#commitBatch(this.#takeBatch());
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#nextTurn(this.#onImmediate);
  }

  // A caller that has its answer asks for the next thing at once: what follows belongs to the same turn.
  #runScheduled(): void {
    if (this.#reads.length > 0) {
      this.#readAll();
      afterContinuations(this.#onImmediate);
      return;
    }
    const waiting = this.#queue.length;
    if (this.#gathersTurns && waiting > this.#gathered && waiting < this.#maxBatch) {
      this.#gathered = waiting;
      this.#nextTurn(this.#onImmediate);
      return;
    }
    this.#gathered = 0;
    this.#scheduled = false;
    if (waiting === 0) return;
    const batch = this.#takeBatch();
    if (this.#queue.length > 0) this.#schedule();
    this.#commitBatch(batch);
  }

  #readAll(): void {
    const reads = this.#reads;
    if (reads.length === 0) return;
    this.#reads = [];
    const readEach = () => {
      for (const { read, resolve, reject } of reads) {
        try {
          resolve(this.#run(read));
        } catch (error) {
          reject(error);
        }
      }
    };
    if (reads.length === 1) {
      readEach();
      return;
    }
    try {
      this.#db.snapshot(readEach);
    } catch (error) {
      for (const { reject } of reads) reject(error);
    }
  }

  #takeBatch(): QueuedJob[] {
    if (this.#queue.length > this.#maxBatch) return this.#queue.splice(0, this.#maxBatch);
    const batch = this.#queue;
    this.#queue = [];
    return batch;
  }

  #commitBatch(batch: QueuedJob[]): void {
    let phase: CommitPhase = "begin";
    let done = 0;
    let labels: readonly CommitLabel[] = [];
    try {
      this.#db.transaction(() => {
        phase = "jobs";
        done = this.#runJobs(batch);
        phase = "commit";
        if (this.#hooks !== undefined) labels = labelsOf(batch.slice(0, done));
        if (labels.length > 0) this.#hooks?.before(...labels);
      });
      phase = "committed";
      this.#onCommitted?.(done);
      if (labels.length > 0) this.#hooks?.after(...labels);
    } catch (error) {
      if (batch.length > 1 && isOneJobsFault(phase, error)) this.#commitEachAlone(batch);
      else for (const entry of batch) entry.reject(error);
      return;
    }
    for (const entry of batch.slice(0, done)) entry.resolve(entry.result);
    if (done === batch.length) return;
    this.#queue.unshift(...batch.slice(done));
    this.#schedule();
  }

  #commitEachAlone(batch: QueuedJob[]): void {
    for (const entry of batch) this.#commitBatch([entry]);
  }

  /** How many, from the first on, are done. */
  #runJobs(batch: readonly QueuedJob[]): number {
    for (let at = 0; at < batch.length; ) {
      const first = batch[at];
      assert(first !== undefined);
      if (first.job !== undefined) {
        first.result = this.#run(first.job);
        at += 1;
      } else {
        const end = endOfJobs(batch, at);
        at += this.#runTogether(first.jobs, batch.slice(at, end));
        if (at < end) return at;
      }
    }
    return batch.length;
  }

  #run(job: CommitJob<unknown>): unknown {
    const result = job(this.#db);
    assert(!(result instanceof Promise), "a job is synchronous: what it awaits would run after COMMIT");
    return result;
  }

  #runTogether(jobs: QueuedJob["jobs"], entries: readonly QueuedJob[]): number {
    assert(jobs !== undefined);
    const done = jobs(
      this.#db,
      entries.map(({ item }) => item),
    );
    const results = "firstOnes" in done ? done.firstOnes : done;
    const isEach = Array.isArray(results) && results.length === entries.length;
    assert(isEach || "firstOnes" in done, "jobs return one result per item, at once");
    assert(results.length > 0 && results.length <= entries.length, "the first ones are some of the items");
    for (const [at, result] of results.entries()) (entries[at] as QueuedJob).result = result;
    return results.length;
  }
}

/** Each once. */
function labelsOf(jobs: readonly QueuedJob[]): readonly CommitLabel[] {
  return [...new Set(jobs.flatMap(({ label }) => label ?? []))];
}

/** When everything has run that waits for promises which are settled by now. */
function afterContinuations(run: () => void): void {
  queueMicrotask(() => process.nextTick(run));
}

/** Where those end that are items of the same jobs as the one at `start`. */
function endOfJobs(batch: readonly QueuedJob[], start: number): number {
  const jobs = batch[start]?.jobs;
  let end = start + 1;
  while (end < batch.length && batch[end]?.jobs === jobs) end += 1;
  return end;
}

// A job that threw, or a COMMIT that found a row breaking a deferred rule, or no room for what some of them write: one that
// writes nothing, as a retry, needs none. A BEGIN that waited in vain or a flush that failed concerns all of them.
function isOneJobsFault(phase: CommitPhase, error: unknown): boolean {
  if (phase !== "commit") return phase === "jobs";
  return error instanceof StorageError && (error.kind === "constraint" || error.kind === "disk_full");
}
