// Keeps the presence leases of this broker's daemons, and notifies them which members come and go in their mesh, through
// this broker or another. What was pushed to them is compared with the store, so that a lost signal or a broker that
// died shows at the next renewal at the latest.
import { setTimeout as sleep } from "node:timers/promises";
import type { Peer, PresenceLease, PresenceStore } from "@claudemesh/messages/ports/presence";
import type { PeerJoinPush, PeerLeavePush, PushFrame } from "@claudemesh/protocol/wire/frames";
import type { Logger } from "pino";
import type { ConnectionRegistry } from "./connection-registry.ts";
import { toPeerItem } from "./peer-item.ts";

export type PresenceKeeperOptions = {
  readonly store: () => PresenceStore;
  readonly connections: Pick<ConnectionRegistry, "onPresenceChange" | "presenceChanged">;
  readonly nowMs: () => number;
  readonly log: Logger;
};

/** Outlives two missed renewals; a broker that died is missed for no longer. */
export const presenceLeaseMs = 45_000;
/** In larger meshes every arrival would be a push to every daemon; there, clients ask for the list. */
export const presencePushPeersMax = 256;
const refreshPauseMs = 50;
/** Leases in one transaction. */
const leasesPerStep = 500;

/** A daemon's connection as presence sees it. */
export type PresentDaemon = { readonly lease: PresenceLease; readonly push: (frame: PushFrame) => void };

type PeersOfMesh =
  | { readonly type: "all"; readonly peers: readonly Peer[] }
  /** More than are pushed. */
  | { readonly type: "too_many" };

/** One mesh with daemons on this broker. */
type Watch = {
  readonly daemons: Set<PresentDaemon>;
  pushedPeers: ReadonlySet<string>;
  running: boolean;
  wanted: boolean;
};

export class PresenceKeeper {
  readonly #options: PresenceKeeperOptions;
  /** With when its lease was first taken. */
  readonly #held = new Map<PresentDaemon, Promise<void>>();
  readonly #watches = new Map<string, Watch>();
  #renewing: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: PresenceKeeperOptions) {
    this.#options = options;
    options.connections.onPresenceChange((meshId) => this.#refresh(meshId));
  }

  /** Its hello was answered. */
  join(daemon: PresentDaemon): void {
    const { meshId } = daemon.lease;
    const watch = this.#watches.get(meshId) ?? {
      daemons: new Set(),
      pushedPeers: new Set(),
      running: false,
      wanted: false,
    };
    watch.daemons.add(daemon);
    this.#watches.set(meshId, watch);
    const taken = this.#attempt("taking a presence lease", () => this.#hold([daemon.lease]));
    this.#held.set(daemon, taken);
    void taken.then(() => this.#options.connections.presenceChanged(meshId));
  }

  /** Its connection is gone. */
  leave(daemon: PresentDaemon): void {
    const taken = this.#held.get(daemon);
    if (taken === undefined) return;
    this.#held.delete(daemon);
    const { meshId } = daemon.lease;
    const watch = this.#watches.get(meshId);
    watch?.daemons.delete(daemon);
    if (watch?.daemons.size === 0) this.#watches.delete(meshId);
    void this.#attempt("releasing a presence lease", async () => {
      // A renewal under way must not bring the lease back.
      await Promise.all([taken, this.#renewing]);
      await this.#options.store().release([daemon.lease]);
      this.#options.connections.presenceChanged(meshId);
    });
  }

  /** Called at intervals well below the lease: renews what is held, and looks who has gone unnoticed. */
  renew(): Promise<void> {
    this.#renewing = this.#renewing.then(() => this.#renewAll());
    return this.#renewing;
  }

  /** Gives up all leases; the sockets follow. */
  stop(): void {
    const leases = [...this.#held.keys()].map(({ lease }) => lease);
    const meshIds = [...this.#watches.keys()];
    this.#held.clear();
    this.#watches.clear();
    this.#stopped = true;
    if (leases.length === 0) return;
    void this.#attempt("releasing presence", async () => {
      await this.#options.store().release(leases);
      for (const meshId of meshIds) this.#options.connections.presenceChanged(meshId);
    });
  }

  #renewAll(): Promise<void> {
    return this.#attempt("renewing presence leases", async () => {
      const leases = [...this.#held.keys()].map(({ lease }) => lease);
      for (let from = 0; from < leases.length; from += leasesPerStep) {
        await this.#hold(leases.slice(from, from + leasesPerStep));
      }
      while ((await this.#options.store().sweep(this.#options.nowMs(), leasesPerStep)) === leasesPerStep);
      for (const meshId of this.#watches.keys()) this.#refresh(meshId);
    });
  }

  #hold(leases: readonly PresenceLease[]): Promise<void> {
    const nowMs = this.#options.nowMs();
    return this.#options.store().hold(leases, nowMs, nowMs + presenceLeaseMs);
  }

  /** Calls while one is under way lead to one more. */
  #refresh(meshId: string): void {
    const watch = this.#watches.get(meshId);
    if (watch === undefined) return;
    watch.wanted = true;
    if (watch.running) return;
    watch.running = true;
    void this.#attempt("reading who is present", async () => {
      while (watch.wanted && !this.#stopped) {
        watch.wanted = false;
        await this.#pushChanges(meshId, watch);
        // In a rush of arrivals one look serves many.
        if (watch.wanted) await sleep(refreshPauseMs, undefined, { ref: false });
      }
    }).finally(() => {
      watch.running = false;
    });
  }

  async #pushChanges(meshId: string, watch: Watch): Promise<void> {
    const read = await this.#readPeers(meshId);
    // Daemons that were notified before the mesh grew too large get the difference when it has shrunk again.
    if (read.type === "too_many") return;
    const { peers } = read;
    const present = new Set(peers.map(({ pubkey }) => pubkey));
    for (const peer of peers) {
      if (!watch.pushedPeers.has(peer.pubkey)) this.#push(watch, { type: "peer_join", ...toPeerItem(peer) });
    }
    for (const pubkey of watch.pushedPeers) {
      if (!present.has(pubkey)) this.#push(watch, { type: "peer_leave", pubkey });
    }
    watch.pushedPeers = present;
  }

  /** To every daemon but those of the peer itself. */
  #push(watch: Watch, frame: PeerJoinPush | PeerLeavePush): void {
    for (const { lease, push } of watch.daemons) if (lease.pubkey !== frame.pubkey) push(frame);
  }

  async #readPeers(meshId: string): Promise<PeersOfMesh> {
    const peers: Peer[] = [];
    let after: string | undefined = "";
    while (after !== undefined) {
      const limit = presencePushPeersMax + 1 - peers.length;
      const query = { meshId, reader: undefined, after, limit };
      const page = await this.#options.store().peers(query, this.#options.nowMs());
      peers.push(...page.items);
      if (peers.length > presencePushPeersMax) return { type: "too_many" };
      after = page.nextCursor;
    }
    return { type: "all", peers };
  }

  /** Presence is worth no connection: what fails is tried again with the next renewal. */
  async #attempt(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!this.#stopped) this.#options.log.warn({ event: "presence_failed", what, err: error }, `${what} failed`);
    }
  }
}
