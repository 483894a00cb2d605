// Pushes one recipient's unsettled deliveries over one connection, in history order, a bounded number ahead of the
// acks. Reads only committed rows, so that a push never leads; what is lost with the socket is read again after the
// next hello.
import type { DeliveryStore } from "@claudemesh/messages/ports";
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";

export type DeliveryPumpOptions = {
  readonly store: Pick<DeliveryStore, "unsettled">;
  readonly meshId: string;
  readonly recipient: string;
  readonly push: (item: HistoryItem) => void;
  readonly onFailure: (error: unknown) => void;
};

/** Pushed and not yet acknowledged, at most. */
const windowItems = 256;

export class DeliveryPump {
  readonly #options: DeliveryPumpOptions;
  readonly #unacked = new Set<number>();
  #pushedUpTo = 0;
  #wanted = false;
  #running = false;
  #stopped = false;

  constructor(options: DeliveryPumpOptions) {
    this.#options = options;
  }

  /** Cheap and callable at any time; calls while a read is under way lead to one more. */
  wake(): void {
    this.#wanted = true;
    if (this.#running || this.#stopped) return;
    this.#running = true;
    setImmediate(() => void this.#run());
  }

  settled(historyIds: readonly number[]): void {
    for (const historyId of historyIds) this.#unacked.delete(historyId);
    this.wake();
  }

  stop(): void {
    this.#stopped = true;
  }

  async #run(): Promise<void> {
    try {
      while (this.#wanted && !this.#stopped) {
        this.#wanted = false;
        await this.#pushNext();
      }
    } catch (error) {
      this.#options.onFailure(error);
    } finally {
      this.#running = false;
    }
  }

  async #pushNext(): Promise<void> {
    const room = windowItems - this.#unacked.size;
    if (room <= 0) return;
    const { store, meshId, recipient, push } = this.#options;
    const items = await store.unsettled(meshId, recipient, this.#pushedUpTo, room);
    for (const item of items) {
      if (this.#stopped) return;
      this.#pushedUpTo = item.history_id;
      this.#unacked.add(item.history_id);
      push(item);
    }
    if (items.length === room) this.#wanted = true;
  }
}
