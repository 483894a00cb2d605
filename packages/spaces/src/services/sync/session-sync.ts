// Sends one holder of a session, for each watched branch, the latest state of what changed, in the order of seq. Nothing is
// queued: a round reads what is newer than what was sent, and the next round begins when the receiver has taken the frames of
// the last. A slow receiver therefore costs a commit nothing, and gets the latest state when it is ready (SPC-12).
// Why: docs/decisions/0029.
import { MeshError } from "@claudemesh/protocol/errors";
import type { SyncPush } from "@claudemesh/protocol/wire/spaces-operations";
import type { Watched } from "../../core/watched.ts";
import type { SpaceRef } from "../../ports/rows.ts";
import type { SpacesStore } from "../../ports.ts";
import { resolveMoment } from "../query.ts";
import { BranchChanges } from "./branch-changes.ts";
import type { SpaceFeed } from "./space-feed.ts";

export type SessionSyncOptions = {
  readonly store: SpacesStore;
  readonly space: SpaceRef;
  readonly sessionId: string;
  /** Of the holder's open. */
  readonly epoch: number;
  readonly feed: SpaceFeed;
  /** Resolves when the receiver has taken the frame, or is gone. */
  readonly push: (frame: SyncPush) => Promise<void>;
  /** The session has another holder, or is over. */
  readonly onLost: () => void;
  readonly onFailure: (error: unknown) => void;
  /** Node's own unless given. */
  readonly nextTurn?: ((run: () => void) => void) | undefined;
};

type BranchWatch = {
  /** When the branch was made: what its ancestors wrote before shows on it, and the feed does not say so. */
  readonly createdSeq: number;
  readonly watched: Watched;
  /** Everything watched has been sent up to here. */
  sentSeq: number;
  /** The last frame's toSeq, or what the client said it had seen. */
  framedSeq: number;
  removes: readonly string[];
};

type Progress = { readonly lastSeq: number; readonly lastLocalSeq: number };

type Look = ({ readonly type: "held" } & Progress) | { readonly type: "lost" };

export class SessionSync {
  readonly #options: SessionSyncOptions;
  readonly #branches = new Map<string, BranchWatch>();
  #epoch: number;
  #renewing: Promise<void> | undefined;
  #next: PromiseWithResolvers<void> | undefined;
  #running = false;
  #stopped = false;

  constructor(options: SessionSyncOptions) {
    this.#options = options;
    this.#epoch = options.epoch;
  }

  get sessionId(): string {
    return this.#options.sessionId;
  }

  get space(): SpaceRef {
    return this.#options.space;
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** How much is watched. */
  get size(): number {
    return [...this.#branches.values()].reduce((size, { watched }) => size + watched.size, 0);
  }

  /** The size without this branch, whose watch is about to be replaced. */
  sizeWithout(branch: string): number {
    return this.size - (this.#branches.get(branch)?.watched.size ?? 0);
  }

  watches(branch: string): boolean {
    return this.#branches.has(branch);
  }

  get branchCount(): number {
    return this.#branches.size;
  }

  /** The holder itself opens the session again. `opening` gives the new epoch, or none where the open was refused. */
  renew(opening: Promise<number | undefined>): void {
    this.#renewing = opening.then((epoch = 0) => {
      this.#epoch = Math.max(this.#epoch, epoch);
    });
  }

  /** Replaces what is watched on the branch. Resolves when everything newer than `seenSeq` was sent, with the seq reached. */
  async watch(branch: string, watched: Watched, seenSeq: number): Promise<number> {
    const moment = await this.#options.store.read(this.#options.space, (view) => resolveMoment(view, { branch }));
    if (seenSeq > moment.atSeq)
      throw new MeshError("seq_out_of_range", undefined, { field: "seenSeq", seq: moment.atSeq });
    this.#options.feed.begin(moment.atSeq);
    const { name } = moment.branch;
    const before = this.#branches.get(name)?.watched;
    const removes = before === undefined ? [] : [...before.ids].filter((id) => !watched.has(id));
    if (watched.size === 0 && removes.length === 0) {
      this.#branches.delete(name);
      return moment.atSeq;
    }
    const { createdSeq } = moment.branch;
    const watch: BranchWatch = { createdSeq, watched, sentSeq: seenSeq, framedSeq: seenSeq, removes };
    this.#branches.set(name, watch);
    await this.#round();
    if (watched.size === 0 && this.#branches.get(name) === watch) this.#branches.delete(name);
    return Math.max(watch.sentSeq, moment.atSeq);
  }

  /** There may be something new. Cheap, and callable at any time. */
  wake(seq?: number): void {
    if (seq === undefined || this.#isBehind(seq)) void this.#round();
  }

  /** Resolves when everything watched has been sent up to this seq: what explains a verdict goes before it. */
  async reach(seq: number): Promise<void> {
    while (!this.#stopped && this.#isBehind(seq)) await this.#round();
  }

  /** The same for whatever has been committed by now. */
  async reachPresent(): Promise<void> {
    if (this.#branches.size > 0) await this.#round();
  }

  stop(): void {
    this.#stopped = true;
    this.#branches.clear();
  }

  #isBehind(seq: number): boolean {
    return [...this.#branches.values()].some(({ sentSeq }) => sentSeq < seq);
  }

  /** One round that begins after this call. Never rejects: a failure is reported, and stops this session's sync. */
  #round(): Promise<void> {
    this.#next ??= Promise.withResolvers<void>();
    const { promise } = this.#next;
    if (!this.#running) void this.#run();
    return promise;
  }

  async #run(): Promise<void> {
    this.#running = true;
    // Commits of the same turn share the round.
    await new Promise<void>((resolve) => (this.#options.nextTurn ?? setImmediate)(resolve));
    while (this.#next !== undefined) {
      const { resolve } = this.#next;
      this.#next = undefined;
      try {
        if (!this.#stopped) await this.#sendAll();
      } catch (error) {
        this.stop();
        this.#options.onFailure(error);
      }
      resolve();
    }
    this.#running = false;
  }

  async #sendAll(): Promise<void> {
    const look = await this.#look();
    if (this.#stopped) return;
    if (look.type === "lost") {
      this.stop();
      this.#options.onLost();
      return;
    }
    for (const [branch, watch] of [...this.#branches]) await this.#send(branch, watch, look);
  }

  /**
   * The space's seq is read first and the session's last localSeq after it, so that the latter covers every own commit that
   * the seq includes.
   */
  async #look(): Promise<Look> {
    const { store, space, sessionId } = this.#options;
    const { row, session } = await store.read(space, function* (view) {
      return { row: yield* view.findSpace(), session: yield* view.findSession(sessionId) };
    });
    if (row === undefined || session === undefined) return { type: "lost" };
    // An open of the holder itself may have been seen before its answer.
    if (session.epoch > this.#epoch) await this.#renewing;
    if (session.epoch > this.#epoch) return { type: "lost" };
    return { type: "held", lastSeq: row.lastSeq, lastLocalSeq: session.lastLocalSeq };
  }

  async #send(branch: string, watch: BranchWatch, { lastSeq, lastLocalSeq }: Progress): Promise<void> {
    const isCurrent = () => !this.#stopped && this.#branches.get(branch) === watch;
    if (!isCurrent() || (watch.sentSeq >= lastSeq && watch.removes.length === 0)) return;
    const { store, space, feed, push } = this.#options;
    const isInFeed = watch.sentSeq >= watch.createdSeq;
    const span = { branch, sinceSeq: watch.sentSeq, atSeq: lastSeq };
    const changes = new BranchChanges(store, space, isInFeed ? feed : undefined, span, this.#options.nextTurn);
    const frame = { type: "sync", space: space.spaceId, sessionId: this.sessionId, branch } as const;
    for await (const { upserts, isLast } of changes.frames(watch.watched)) {
      // Replaced in the meantime: the next round sends what the new watch asks for.
      if (!isCurrent()) return;
      const { removes, framedSeq: fromSeq } = watch;
      const toSeq = isLast ? lastSeq : fromSeq;
      watch.removes = [];
      if (upserts.length > 0 || removes.length > 0) {
        watch.framedSeq = toSeq;
        await push({ ...frame, fromSeq, toSeq, caughtUpLocalSeq: lastLocalSeq, upserts, removes });
      }
    }
    watch.sentSeq = Math.max(watch.sentSeq, lastSeq);
  }
}
