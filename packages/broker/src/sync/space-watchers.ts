// The holders of space sessions on this broker, and how they are notified that something was committed or that their session
// was taken: at once from this broker, by a signal from other brokers, and by regular checks where a signal was lost.
// Why: docs/decisions/0029.

import type { CommitNotice, SpacesStore } from "@claudemesh/spaces/ports";
import type { SpaceRef } from "@claudemesh/spaces/ports/rows";
import { FairTurns } from "@claudemesh/spaces/services/sync/fair-turns";
import type { SessionSync } from "@claudemesh/spaces/services/sync/session-sync";
import { SpaceFeed } from "@claudemesh/spaces/services/sync/space-feed";
import type { ConnectionRegistry } from "../transport/connection-registry.ts";

export type SessionHolder = {
  readonly sync: SessionSync;
  /** Asks the store whether the session is still held, and notes that it is used. */
  readonly check: () => Promise<void>;
  readonly lost: () => void;
};

export type SpaceWatchersOptions = {
  readonly store: SpacesStore;
  readonly connections: Pick<ConnectionRegistry, "onSpaceChange" | "onSessionTaken" | "spaceChanged" | "sessionTaken">;
  readonly onFailure: (error: unknown) => void;
  /** Node's own unless given. */
  readonly nextTurn?: (run: () => void) => void;
};

type Watch = { readonly space: SpaceRef; readonly feed: SpaceFeed; readonly holders: Set<SessionHolder> };

/** Looks at the spaces between two looks at the sessions. */
const looksPerCheck = 12;

export class SpaceWatchers {
  readonly #options: SpaceWatchersOptions;
  readonly #watches = new Map<string, Watch>();
  readonly #turns: FairTurns;
  #looking: Promise<void> | undefined;
  #looks = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: SpaceWatchersOptions) {
    this.#options = options;
    const { connections, nextTurn } = options;
    this.#turns = new FairTurns(nextTurn);
    connections.onSpaceChange((space, seq) => this.#wake(space, seq));
    connections.onSessionTaken((space, sessionId, epoch) => this.#revoke(space, sessionId, epoch));
  }

  /** Sessions that are held on this broker. */
  get size(): number {
    return [...this.#watches.values()].reduce((size, { holders }) => size + holders.size, 0);
  }

  /** Schedules one round of pushes to this member. Each round has its own turn of the event loop, and members take turns. */
  nextTurn(meshId: string, memberPubkey: string, run: () => void): void {
    this.#turns.take(`${meshId}/${memberPubkey}`, run);
  }

  feedOf(space: SpaceRef): SpaceFeed {
    return this.#watches.get(keyOf(space))?.feed ?? new SpaceFeed(this.#options.store, space);
  }

  join(holder: SessionHolder, feed: SpaceFeed): void {
    const { space } = holder.sync;
    const watch = this.#watches.get(keyOf(space)) ?? { space, feed, holders: new Set() };
    watch.holders.add(holder);
    this.#watches.set(keyOf(space), watch);
  }

  leave(holder: SessionHolder): void {
    const key = keyOf(holder.sync.space);
    const watch = this.#watches.get(key);
    watch?.holders.delete(holder);
    if (watch?.holders.size === 0) this.#watches.delete(key);
  }

  /** A commit was made on this broker, and is durable. */
  committed(notice: CommitNotice): void {
    const { seq, branch, entityIds } = notice;
    this.#watches.get(keyOf(notice))?.feed.add({ seq, branch, entityIds });
    this.#options.connections.spaceChanged(notice, seq);
  }

  /** A session was opened here, so its holder before has lost it. */
  taken(space: SpaceRef, sessionId: string, epoch: number): void {
    // The opener itself may have held it, and first learns that it holds it again.
    const { nextTurn = setImmediate, connections } = this.#options;
    nextTurn(() => connections.sessionTaken(space, sessionId, epoch));
  }

  /** Checks at intervals for commits whose signal was lost. */
  start(intervalMs: number): void {
    this.#timer = setInterval(() => void this.look(), intervalMs);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
  }

  look(): Promise<void> {
    this.#looking ??= this.#lookAtAll()
      .catch(this.#options.onFailure)
      .finally(() => {
        this.#looking = undefined;
      });
    return this.#looking;
  }

  async #lookAtAll(): Promise<void> {
    this.#looks += 1;
    const isCheck = this.#looks % looksPerCheck === 0;
    for (const { space, holders } of [...this.#watches.values()]) {
      const row = await this.#options.store.read(space, (view) => view.findSpace());
      for (const holder of [...holders]) {
        if (isCheck) await holder.check();
        holder.sync.wake(row?.lastSeq ?? 0);
      }
    }
  }

  #wake(space: SpaceRef, seq: number): void {
    for (const { sync } of this.#watches.get(keyOf(space))?.holders ?? []) sync.wake(seq);
  }

  #revoke(space: SpaceRef, sessionId: string, epoch: number): void {
    for (const holder of [...(this.#watches.get(keyOf(space))?.holders ?? [])]) {
      if (holder.sync.sessionId === sessionId && holder.sync.epoch < epoch) holder.lost();
    }
  }
}

function keyOf({ meshId, spaceId }: SpaceRef): string {
  return `${meshId}/${spaceId}`;
}
