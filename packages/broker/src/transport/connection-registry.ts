// Which members are connected to this broker process, and who must hear of what: new deliveries, the end of a
// membership, that a member came or went, commits and new holders of sessions in spaces. Knows nothing of sockets' insides or
// of other brokers.
import type { ConnectionPolicy } from "@claudemesh/protocol/features";
import type { Destination } from "@claudemesh/protocol/messages/addresses";
import type { SpaceRef } from "@claudemesh/spaces/ports/rows";

export type RegisteredConnection = {
  readonly meshId: string;
  readonly pubkey: string;
  readonly kind: "daemon" | "client";
  /** There may be something new to push. */
  readonly wake: () => void;
  /** A newer daemon of the same member replaces it. */
  readonly replace: () => void;
  /** An older daemon of the same member stays instead. */
  readonly refuse: () => void;
  /** Its member is none any more. */
  readonly cut: () => void;
  /** Sends of its member to this destination are refused from now on. */
  readonly destinationGone: (destination: Destination) => void;
  /** The brokers of this store are others than before. */
  readonly brokersChanged: (urls: readonly string[]) => void;
};

/** The space has reached this seq. */
export type SpaceChangeListener = (space: SpaceRef, seq: number) => void;
/** The session has been opened so many times: who holds an older epoch has lost it. */
export type SessionTakenListener = (space: SpaceRef, sessionId: string, epoch: number) => void;

export class ConnectionRegistry {
  readonly #byMember = new Map<string, Set<RegisteredConnection>>();
  readonly #presenceListeners = new Set<(meshId: string) => void>();
  readonly #spaceListeners = new Set<SpaceChangeListener>();
  readonly #sessionListeners = new Set<SessionTakenListener>();

  /**
   * Among daemons of one member the policy decides who stays; clients come and go. False: the newcomer must leave.
   */
  add(connection: RegisteredConnection, policy: ConnectionPolicy): boolean {
    const key = keyOf(connection.meshId, connection.pubkey);
    const present = this.#byMember.get(key) ?? new Set();
    if (connection.kind === "daemon" && policy !== "allow_concurrent") {
      const older = [...present].filter((other) => other.kind === "daemon");
      if (older.length > 0 && policy === "prefer_oldest") return false;
      for (const other of older) {
        present.delete(other);
        other.replace();
      }
    }
    present.add(connection);
    this.#byMember.set(key, present);
    return true;
  }

  remove(connection: RegisteredConnection): void {
    const key = keyOf(connection.meshId, connection.pubkey);
    const present = this.#byMember.get(key);
    if (present === undefined) return;
    present.delete(connection);
    if (present.size === 0) this.#byMember.delete(key);
  }

  get size(): number {
    let size = 0;
    for (const present of this.#byMember.values()) size += present.size;
    return size;
  }

  onPresenceChange(listener: (meshId: string) => void): void {
    this.#presenceListeners.add(listener);
  }

  /** A member may have come, gone, or changed whether it is seen. */
  presenceChanged(meshId: string): void {
    for (const listener of this.#presenceListeners) listener(meshId);
  }

  onSpaceChange(listener: SpaceChangeListener): void {
    this.#spaceListeners.add(listener);
  }

  /** Something was committed, and is durable. */
  spaceChanged(space: SpaceRef, seq: number): void {
    for (const listener of this.#spaceListeners) listener(space, seq);
  }

  onSessionTaken(listener: SessionTakenListener): void {
    this.#sessionListeners.add(listener);
  }

  sessionTaken(space: SpaceRef, sessionId: string, epoch: number): void {
    for (const listener of this.#sessionListeners) listener(space, sessionId, epoch);
  }

  brokersChanged(urls: readonly string[]): void {
    for (const present of this.#byMember.values()) for (const connection of present) connection.brokersChanged(urls);
  }

  /** Ends every connection of a former member. */
  cut(meshId: string, pubkey: string): void {
    for (const connection of [...(this.#byMember.get(keyOf(meshId, pubkey)) ?? [])]) connection.cut();
  }

  /**
   * A topic was deleted or a member revoked. Rare, and an owner's doing, so that every connection may be looked at.
   * `pubkey`: it is gone for this member alone, which has left the topic.
   */
  destinationGone(meshId: string, destination: Destination, pubkey?: string): void {
    const concerned = pubkey === undefined ? this.#byMember.values() : [this.#ofMember(meshId, pubkey)];
    for (const present of concerned) {
      for (const connection of present) {
        if (connection.meshId !== meshId) break;
        connection.destinationGone(destination);
      }
    }
  }

  wake(meshId: string, pubkeys: readonly string[]): void {
    for (const pubkey of pubkeys) for (const connection of this.#ofMember(meshId, pubkey)) connection.wake();
  }

  #ofMember(meshId: string, pubkey: string): Iterable<RegisteredConnection> {
    return this.#byMember.get(keyOf(meshId, pubkey)) ?? [];
  }
}

function keyOf(meshId: string, pubkey: string): string {
  return `${meshId}/${pubkey}`;
}
