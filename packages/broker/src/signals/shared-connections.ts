// The connections of this broker as one of several: what happens here and concerns a member is told to the others, and
// what they tell is done here. Who is connected elsewhere is not known.
import type { ConnectionPolicy } from "@claudemesh/protocol/features";
import type { SpaceRef } from "@claudemesh/spaces/ports/rows";
import { ConnectionRegistry, type RegisteredConnection } from "../transport/connection-registry.ts";
import type { Signal } from "./signal.ts";

export type SharedConnectionsOptions = {
  readonly publish: (signal: Signal) => void;
  /** Ids that grow with time, also between brokers as far as their clocks agree. */
  readonly nextStamp: () => string;
};

export type Recipient = { readonly meshId: string; readonly pubkey: string };

export class SharedConnections extends ConnectionRegistry {
  readonly #options: SharedConnectionsOptions;
  /** Daemons connected here, by member, with the stamp that they were announced with. */
  readonly #daemons = new Map<string, Map<RegisteredConnection, string>>();

  constructor(options: SharedConnectionsOptions) {
    super();
    this.#options = options;
  }

  override add(connection: RegisteredConnection, policy: ConnectionPolicy): boolean {
    if (!super.add(connection, policy)) return false;
    if (connection.kind !== "daemon") return true;
    const { meshId, pubkey } = connection;
    const stamp = this.#options.nextStamp();
    const daemons = this.#daemons.get(keyOf(connection)) ?? new Map<RegisteredConnection, string>();
    daemons.set(connection, stamp);
    this.#daemons.set(keyOf(connection), daemons);
    if (policy === "prefer_newest") this.#options.publish({ type: "daemon_connected", meshId, pubkey, stamp });
    return true;
  }

  override remove(connection: RegisteredConnection): void {
    super.remove(connection);
    const daemons = this.#daemons.get(keyOf(connection));
    daemons?.delete(connection);
    if (daemons?.size === 0) this.#daemons.delete(keyOf(connection));
  }

  override wake(meshId: string, recipients: readonly string[]): void {
    super.wake(meshId, recipients);
    if (recipients.length > 0) this.#options.publish({ type: "deliveries", meshId, recipients });
  }

  override cut(meshId: string, pubkey: string): void {
    super.cut(meshId, pubkey);
    this.#options.publish({ type: "member_revoked", meshId, pubkey });
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

  /** Does here what another broker told, and tells nobody. */
  receive(signal: Signal): void {
    const { type, meshId } = signal;
    if (type === "deliveries") super.wake(meshId, signal.recipients);
    else if (type === "member_revoked") super.cut(meshId, signal.pubkey);
    else if (type === "presence_changed") super.presenceChanged(meshId);
    else if (type === "space_changed") super.spaceChanged(signal, signal.seq);
    else if (type === "session_taken") super.sessionTaken(signal, signal.sessionId, signal.epoch);
    else this.#replaceOlder(signal);
  }

  /** Somebody who is connected here has something waiting. */
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

  // Two that connect at the same moment hear of each other. The stamps decide, so that one of them stays.
  #replaceOlder(signal: Extract<Signal, { type: "daemon_connected" }>): void {
    for (const [connection, stamp] of [...(this.#daemons.get(keyOf(signal)) ?? [])]) {
      if (stamp < signal.stamp) connection.replace();
    }
  }
}

function keyOf({ meshId, pubkey }: Recipient): string {
  return `${meshId}/${pubkey}`;
}
