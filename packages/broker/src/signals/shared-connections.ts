// The connections of this broker as one of several: events here that concern a member are signalled to the other brokers, and
// their signals take effect here. Which members are connected to other brokers is not known.
// Why: docs/decisions/0036.
import type { ConnectionPolicy } from "@claudemesh/protocol/features";
import type { Destination } from "@claudemesh/protocol/messages/addresses";
import type { SpaceRef } from "@claudemesh/spaces/ports/rows";
import { ConnectionRegistry, type RegisteredConnection } from "../transport/connection-registry.ts";
import type { Signal } from "./signal.ts";

export type SharedConnectionsOptions = {
  readonly publish: (signal: Signal) => void;
  /** Ids that grow with time, also between brokers as far as their clocks agree. */
  readonly nextStamp: () => string;
};

type Stamped = { readonly stamp: string };
type Announcement = Stamped & { readonly policy: ConnectionPolicy };

export type Recipient = { readonly meshId: string; readonly pubkey: string };

export class SharedConnections extends ConnectionRegistry {
  readonly #options: SharedConnectionsOptions;
  /** Daemons connected here, by member, with how they were announced. */
  readonly #daemons = new Map<string, Map<RegisteredConnection, Announcement>>();

  constructor(options: SharedConnectionsOptions) {
    super();
    this.#options = options;
  }

  override add(connection: RegisteredConnection, policy: ConnectionPolicy): boolean {
    if (!super.add(connection, policy)) return false;
    if (connection.kind !== "daemon") return true;
    const announcement = { stamp: this.#options.nextStamp(), policy };
    const daemons = this.#daemons.get(keyOf(connection)) ?? new Map<RegisteredConnection, Announcement>();
    daemons.set(connection, announcement);
    this.#daemons.set(keyOf(connection), daemons);
    this.#announce(connection, announcement);
    return true;
  }

  /** Once more, for brokers that were not heard or did not hear. */
  announceAgain(): void {
    for (const daemons of this.#daemons.values()) {
      for (const [connection, announcement] of daemons) this.#announce(connection, announcement);
    }
  }

  #announce({ meshId, pubkey }: RegisteredConnection, { stamp, policy }: Announcement): void {
    if (policy === "allow_concurrent") return;
    const type = policy === "prefer_newest" ? "daemon_connected" : "daemon_offered";
    this.#options.publish({ type, meshId, pubkey, stamp });
  }

  override remove(connection: RegisteredConnection): void {
    super.remove(connection);
    this.#forget(connection);
  }

  override wake(meshId: string, recipients: readonly string[]): void {
    super.wake(meshId, recipients);
    if (recipients.length > 0) this.#options.publish({ type: "deliveries", meshId, recipients });
  }

  override cut(meshId: string, pubkey: string): void {
    super.cut(meshId, pubkey);
    this.#options.publish({ type: "member_revoked", meshId, pubkey });
  }

  override destinationGone(meshId: string, { kind, ref }: Destination, pubkey?: string): void {
    super.destinationGone(meshId, { kind, ref }, pubkey);
    const to = pubkey === undefined ? {} : { pubkey };
    this.#options.publish({ type: "destination_gone", meshId, kind, ref, ...to });
  }

  override presenceChanged(meshId: string): void {
    super.presenceChanged(meshId);
    this.#options.publish({ type: "presence_changed", meshId });
  }

  override spaceChanged(space: SpaceRef, seq: number): void {
    super.spaceChanged(space, seq);
    const { meshId, spaceId } = space;
    this.#options.publish({ type: "space_changed", meshId, spaceId, seq });
  }

  override sessionTaken(space: SpaceRef, sessionId: string, epoch: number): void {
    super.sessionTaken(space, sessionId, epoch);
    const { meshId, spaceId } = space;
    this.#options.publish({ type: "session_taken", meshId, spaceId, sessionId, epoch });
  }

  /** Does here what another broker signalled, and passes nothing on. */
  receive(signal: Signal): void {
    const { type, meshId } = signal;
    if (type === "deliveries") super.wake(meshId, signal.recipients);
    else if (type === "member_revoked") super.cut(meshId, signal.pubkey);
    else if (type === "destination_gone") this.#loseDestination(signal);
    else if (type === "presence_changed") super.presenceChanged(meshId);
    else if (type === "space_changed") super.spaceChanged(signal, signal.seq);
    else if (type === "session_taken") super.sessionTaken(signal, signal.sessionId, signal.epoch);
    else if (type === "daemon_connected") this.#replaceOlder(signal);
    else if (type === "daemon_offered") this.#objectIfOlder(signal);
    else this.#refuse(signal);
  }

  #loseDestination({ meshId, kind, ref, pubkey }: Extract<Signal, { type: "destination_gone" }>): void {
    super.destinationGone(meshId, { kind, ref }, pubkey);
  }

  /** Its membership was ended through another broker, whose signal may have been lost. */
  cutHere({ meshId, pubkey }: Recipient): void {
    super.cut(meshId, pubkey);
  }

  /** A member that is connected here has a delivery waiting. */
  wakeHere({ meshId, pubkey }: Recipient): void {
    super.wake(meshId, [pubkey]);
  }

  /** Every recipient of pushes that is connected here. */
  recipients(): Recipient[] {
    return [...this.#daemons.values()].flatMap((daemons) => {
      const [first] = daemons.keys();
      return first === undefined ? [] : [{ meshId: first.meshId, pubkey: first.pubkey }];
    });
  }

  // Two daemons that connect at the same moment get a signal about each other. Their stamps decide, so that one of them stays.
  #replaceOlder(signal: Recipient & Stamped): void {
    this.#dismiss(
      signal,
      (stamp) => stamp < signal.stamp,
      (connection) => connection.replace(),
    );
    this.#answerOlder(signal, "prefer_newest");
  }

  // Brokers answer from memory. A row in the store would keep a daemon out after the broker that wrote it has died.
  #objectIfOlder(signal: Recipient & Stamped): void {
    const { meshId, pubkey, stamp: offered } = signal;
    if (this.#daemonsOf(signal).some(([, { stamp }]) => stamp < offered)) {
      this.#options.publish({ type: "daemon_refused", meshId, pubkey, stamp: offered });
    }
    this.#answerOlder(signal, "prefer_oldest");
  }

  /**
   * What was announced of a newer daemon here did not reach who announces an older one now: after an outage one broker
   * speaks before another listens. An answer's stamp is above the one it answers, so that answers come to an end.
   */
  #answerOlder(signal: Recipient & Stamped, policy: ConnectionPolicy): void {
    for (const [connection, announcement] of this.#daemonsOf(signal)) {
      if (announcement.stamp > signal.stamp && announcement.policy === policy) this.#announce(connection, announcement);
    }
  }

  #refuse(signal: Recipient & Stamped): void {
    this.#dismiss(
      signal,
      (stamp) => stamp === signal.stamp,
      (connection) => connection.refuse(),
    );
  }

  /** Who has to go neither answers nor objects any more while its socket closes. */
  #dismiss(
    member: Recipient,
    mustGo: (stamp: string) => boolean,
    tell: (connection: RegisteredConnection) => void,
  ): void {
    for (const [connection, { stamp }] of this.#daemonsOf(member)) {
      if (!mustGo(stamp)) continue;
      this.#forget(connection);
      tell(connection);
    }
  }

  #forget(connection: RegisteredConnection): void {
    const daemons = this.#daemons.get(keyOf(connection));
    daemons?.delete(connection);
    if (daemons?.size === 0) this.#daemons.delete(keyOf(connection));
  }

  #daemonsOf(member: Recipient): [RegisteredConnection, Announcement][] {
    return [...(this.#daemons.get(keyOf(member)) ?? [])];
  }
}

function keyOf({ meshId, pubkey }: Recipient): string {
  return `${meshId}/${pubkey}`;
}
