// The sessions of spaces that one connection holds: those that it opened or watches with. Pushes their notices over
// the connection, one frame at a time, and lets no verdict overtake what explains it.
import { MeshError } from "@claudemesh/protocol/errors";
import type { PushFrame } from "@claudemesh/protocol/wire/frames";
import type { SyncPush } from "@claudemesh/protocol/wire/spaces-operations";
import type { Watched } from "@claudemesh/spaces/core/watched";
import type { SpaceRef } from "@claudemesh/spaces/ports/rows";
import type { Verdict } from "@claudemesh/spaces/services/commit/commit";
import { type Holder, holdSession } from "@claudemesh/spaces/services/hold-session";
import type { OpenedSession } from "@claudemesh/spaces/services/open-session";
import { SessionSync } from "@claudemesh/spaces/services/sync/session-sync";
import type { BrokerContext } from "../context.ts";
import type { SessionHolder } from "./space-watchers.ts";

const sessionsMax = 256;
const branchesPerSession = 64;
/** Ids and prefixes of all sessions of one connection. */
const watchedMax = 100_000;

export type ConnectionSessionsOptions = {
  readonly broker: Pick<BrokerContext, "spaces" | "watchers" | "metrics">;
  /** Resolves when the peer's host has taken the frame, or the connection is over. */
  readonly push: (frame: PushFrame) => Promise<void>;
  readonly onFailure: (error: unknown) => void;
};

type Held = SessionHolder & { holder: Holder; lastWatch: Promise<unknown> };

export class ConnectionSessions {
  readonly #options: ConnectionSessionsOptions;
  readonly #held = new Map<string, Held>();
  /** Sessions that are being opened, and count before there is an answer. */
  #opening = 0;
  #lastPush: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(options: ConnectionSessionsOptions) {
    this.#options = options;
  }

  /** Lets the connection open a session; from then on it is notified when another connection does. */
  async open(
    space: SpaceRef,
    memberPubkey: string,
    resumedId: string | undefined,
    work: () => Promise<OpenedSession>,
  ): Promise<OpenedSession> {
    return this.#reserving(space, resumedId, () => this.#open(space, memberPubkey, resumedId, work));
  }

  async #open(
    space: SpaceRef,
    memberPubkey: string,
    resumedId: string | undefined,
    work: () => Promise<OpenedSession>,
  ): Promise<OpenedSession> {
    const opening = work();
    this.#held.get(keyOf(space, resumedId ?? ""))?.sync.renew(
      opening.then(
        ({ epoch }) => epoch,
        // The caller gets the error; here nothing has changed.
        () => undefined,
      ),
    );
    const opened = await opening;
    const { sessionId, sessionToken, epoch } = opened;
    const { sync } = this.#hold(space, { memberPubkey, sessionId, sessionToken }, epoch);
    // The notice of a later open may have come while this one was under way.
    sync.wake();
    return opened;
  }

  /** Replaces what the session watches on a branch; resolves with the seq up to which everything was pushed. */
  async watch(space: SpaceRef, holder: Holder, branch: string, watched: Watched, seenSeq: number): Promise<number> {
    const held = await this.#reserving(space, holder.sessionId, async () => {
      const { epoch } = await holdSession(this.#options.broker.spaces, space, holder);
      return this.#hold(space, holder, epoch);
    });
    // In the order in which they came, also where the first is still being pushed.
    const watching = held.lastWatch.then(() => {
      this.#checkWatch(held.sync, branch, watched);
      return held.sync.watch(branch, watched, seenSeq);
    });
    held.lastWatch = watching.catch(() => undefined);
    return watching;
  }

  /** SPC-13: resolves when the frames that explain the verdict have gone before it. */
  async explain(space: SpaceRef, sessionId: string, verdict: Verdict): Promise<void> {
    const sync = this.#held.get(keyOf(space, sessionId))?.sync;
    if (sync === undefined) return;
    if (verdict.type === "accepted") await sync.reach(verdict.seq);
    else await sync.reachPresent();
  }

  close(): void {
    this.#closed = true;
    for (const held of this.#held.values()) this.#release(held);
    this.#held.clear();
  }

  #hold(space: SpaceRef, holder: Holder, epoch: number): Held {
    const key = keyOf(space, holder.sessionId);
    const known = this.#held.get(key);
    if (known !== undefined && known.sync.epoch >= epoch) {
      known.holder = holder;
      return known;
    }
    if (known !== undefined) {
      known.holder = holder;
      known.sync.renew(Promise.resolve(epoch));
      return known;
    }
    const { broker, onFailure } = this.#options;
    const feed = broker.watchers.feedOf(space);
    const { store } = broker.spaces;
    const { sessionId } = holder;
    const lost = () => this.#lose(space, sessionId);
    const push = (frame: SyncPush) => this.#pushInTurn(frame);
    const nextTurn = (run: () => void) => broker.watchers.nextTurn(space.meshId, holder.memberPubkey, run);
    const sync = new SessionSync({ store, space, sessionId, epoch, feed, push, onLost: lost, onFailure, nextTurn });
    const held: Held = { sync, holder, lastWatch: Promise.resolve(), lost, check: () => this.#check(held) };
    if (this.#closed) {
      sync.stop();
      return held;
    }
    this.#held.set(key, held);
    broker.watchers.join(held, feed);
    return held;
  }

  async #check(held: Held): Promise<void> {
    const { space, sessionId } = held.sync;
    try {
      await holdSession(this.#options.broker.spaces, space, held.holder);
    } catch (error) {
      if (!(error instanceof MeshError)) throw error;
      // Its holder may have opened it again meanwhile, with another token.
      if (this.#held.get(keyOf(space, sessionId)) === held) held.sync.wake();
    }
  }

  #lose(space: SpaceRef, sessionId: string): void {
    const held = this.#held.get(keyOf(space, sessionId));
    if (held === undefined) return;
    this.#held.delete(keyOf(space, sessionId));
    this.#release(held);
    this.#options.broker.metrics.sessionRevoked();
    void this.#options.push({ type: "session.revoked", space: space.spaceId, sessionId });
  }

  #release(held: Held): void {
    held.sync.stop();
    this.#options.broker.watchers.leave(held);
  }

  /** One frame is on its way at a time, so that what waits for a slow peer stays small. */
  #pushInTurn(frame: SyncPush): Promise<void> {
    this.#lastPush = this.#lastPush.then(async () => {
      if (this.#closed) return;
      this.#options.broker.metrics.synced(frame.upserts.length);
      await this.#options.push(frame);
    });
    return this.#lastPush;
  }

  /** A session that the connection does not hold yet is counted first, because many may be under way at once. */
  async #reserving<T>(space: SpaceRef, sessionId: string | undefined, hold: () => Promise<T>): Promise<T> {
    if (this.#held.has(keyOf(space, sessionId ?? ""))) return hold();
    if (this.#held.size + this.#opening >= sessionsMax) {
      const message = `One connection holds at most ${sessionsMax} sessions; use another connection for more.`;
      throw new MeshError("invalid_request", message, { limit: sessionsMax });
    }
    this.#opening += 1;
    try {
      return await hold();
    } finally {
      this.#opening -= 1;
    }
  }

  #checkWatch(sync: SessionSync, branch: string, watched: Watched): void {
    let size = watched.size;
    for (const held of this.#held.values()) size += held.sync === sync ? sync.sizeWithout(branch) : held.sync.size;
    if (size > watchedMax) {
      const message = `One connection watches at most ${watchedMax} ids and prefixes.`;
      throw new MeshError("invalid_request", message, { field: "ids", limit: watchedMax });
    }
    if (sync.branchCount >= branchesPerSession && !sync.watches(branch)) {
      const message = `A session watches at most ${branchesPerSession} branches at once.`;
      throw new MeshError("invalid_request", message, { field: "branch", limit: branchesPerSession });
    }
  }
}

function keyOf({ meshId, spaceId }: SpaceRef, sessionId: string): string {
  return `${meshId}/${spaceId}/${sessionId}`;
}
