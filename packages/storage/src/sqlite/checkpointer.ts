// Moves the log into the main file in a thread of its own. SQLite does that at the end of a commit otherwise, on the event
// loop: where keys are scattered it is a thousand writes all over the file and two flushes, in which no caller is answered.
// Durability does not depend on this: a commit is in the log, and flushed, before any caller learns of it.
// Why: docs/decisions/0097.
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { Sqlite } from "./sqlite.ts";

/** Jobs that are committed before the next pass begins; about as many pages as SQLite would wait for. */
const jobsPerPass = 1_024;
/** What few jobs left in the log is moved after this time. */
const passAfterMs = 1_000;
/** SQLite's own: where the thread has ended, commits do its work again. */
const ownCheckpointPages = 1_000;
/** Where commits outrun the thread, the log grows to 64 MiB, and then a commit moves the rest. */
export const checkpointPagesBesideThread = 16_384;

/** As text: where the product is bundled, no file of its own is beside it. The settings are those of the main connection. */
const threadCode = `
const { DatabaseSync } = require("node:sqlite");
const { parentPort, workerData } = require("node:worker_threads");
const db = new DatabaseSync(workerData);
db.exec("PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON");
const checkpoint = db.prepare("PRAGMA wal_checkpoint(PASSIVE)");
parentPort.on("message", (message) => {
  if (message === "close") {
    db.close();
    parentPort.close();
    return;
  }
  let failure;
  try {
    checkpoint.get();
  } catch (error) {
    failure = String(error);
  }
  parentPort.postMessage({ failure });
});
`;

export type CheckpointerOptions = {
  /** A pass failed, or the thread ended by itself. Nothing is lost: the log keeps what it holds. */
  readonly onFailure: (error: unknown) => void;
};

export class Checkpointer {
  readonly #db: Sqlite;
  readonly #worker: Worker;
  readonly #onFailure: CheckpointerOptions["onFailure"];
  #isPassing = false;
  #isEnded = false;
  #jobs = 0;
  #timer: NodeJS.Timeout | undefined;

  /** Of a database in a file, opened with `checkpointPagesBesideThread`. */
  constructor(db: Sqlite, { onFailure }: CheckpointerOptions) {
    this.#db = db;
    this.#onFailure = onFailure;
    this.#worker = new Worker(threadCode, {
      eval: true,
      workerData: db.path,
      resourceLimits: { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 4 },
    });
    // A process that wants to end need not wait for it.
    this.#worker.unref();
    this.#worker.on("message", ({ failure }: { failure?: string }) => this.#passed(failure));
    this.#worker.once("error", (error) => this.#ended(error));
    this.#worker.once("exit", () => this.#ended(new Error("the thread that moves the log has ended")));
  }

  /** After every commit, with the number of its jobs. */
  committed(jobs: number): void {
    if (this.#isEnded) return;
    this.#jobs += jobs;
    if (this.#jobs >= jobsPerPass) this.#pass();
    else this.#timer ??= setTimeout(() => this.#pass(), passAfterMs).unref();
  }

  /** Resolves when the thread has let go of the file. */
  async close(): Promise<void> {
    if (this.#isEnded) return;
    clearTimeout(this.#timer);
    this.#isEnded = true;
    const exited = once(this.#worker, "exit");
    this.#worker.ref();
    this.#worker.postMessage("close");
    await exited;
  }

  #pass(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // Those that wait for the pass under way are counted, and begin the next one.
    if (this.#isPassing || this.#isEnded || this.#jobs === 0) return;
    this.#isPassing = true;
    this.#jobs = 0;
    this.#worker.postMessage("pass");
  }

  #passed(failure: string | undefined): void {
    this.#isPassing = false;
    if (failure !== undefined) this.#onFailure(new Error(failure));
    if (this.#jobs > 0) this.committed(0);
  }

  #ended(error: Error): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    clearTimeout(this.#timer);
    if (this.#db.connection.isOpen) this.#db.exec(`PRAGMA wal_autocheckpoint = ${ownCheckpointPages}`);
    this.#onFailure(error);
  }
}
