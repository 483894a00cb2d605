// What consumers of queues were answered: what is acknowledged stays so, and none gets what another still holds.
import type { Answer } from "../world/daemon.ts";
import type { Disk } from "../world/disk.ts";
import { Violation } from "./violation.ts";

type LeasedItem = { readonly broker_message_id: string; readonly deliveries: number };
type Held = { readonly token: string; readonly expiresAtMs: number };

export class QueueWatch {
  readonly #acked = new Set<string>();
  /** By message and delivery: two tokens must not share one. */
  readonly #held = new Map<string, Held>();

  get ackedCount(): number {
    return this.#acked.size;
  }

  /** What was acknowledged before this question was asked must not be in its answer. */
  ackedBefore(): ReadonlySet<string> {
    return new Set(this.#acked);
  }

  noteLease(ackedBefore: ReadonlySet<string>, { status, body }: Answer): readonly LeasedItem[] {
    if (status !== 200 || body.lease_token === null) return [];
    const items = body.items as readonly LeasedItem[];
    const token = String(body.lease_token);
    for (const { broker_message_id: id, deliveries } of items) {
      if (ackedBefore.has(id)) throw new Violation("queue_wrong", `${id} was acknowledged and is handed out again`);
      const key = `${id}/${deliveries}`;
      const before = this.#held.get(key);
      if (before !== undefined && before.token !== token && !this.revived) {
        throw new Violation("queue_wrong", `delivery ${deliveries} of ${id} went to two tokens`);
      }
      this.#held.set(key, { token, expiresAtMs: Number(body.expires_at) });
    }
    return items;
  }

  /** Once a message was revived its deliveries are counted anew. */
  revived = false;

  noteAck({ status, body }: Answer): void {
    if (status !== 200) return;
    for (const { broker_message_id, settlement } of body.items as readonly Record<string, string>[]) {
      if (settlement === "acked") this.#acked.add(String(broker_message_id));
    }
  }

  check(disk: Disk): void {
    const rows = disk
      .sql<{ broker_message_id: string; state: string }>("SELECT broker_message_id, state FROM queue_message")
      .all();
    for (const { broker_message_id, state } of rows) {
      if (!this.#acked.has(broker_message_id) || state === "acked") continue;
      throw new Violation("queue_wrong", `${broker_message_id} was acknowledged and is ${state}`);
    }
  }
}
