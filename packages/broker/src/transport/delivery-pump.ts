// Pushes one recipient's unsettled deliveries over one connection, in history order, a bounded number ahead of the
// acks. Reads only committed rows, so that a push never leads; what is lost with the socket is read again after the
// next hello.
import type { DeliveryStore } from "@claudemesh/messages/ports";
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";

export type DeliveryPumpOptions = {
  readonly store: Pick<DeliveryStore, "unsettled">;
  readonly meshId: string;
  readonly recipient: string;
  /** Returns how many bytes the frame took, roughly. */
  readonly push: (item: HistoryItem) => number;
  readonly onFailure: (error: unknown) => void;
  /** Calls once, when the event loop has come round; `setImmediate` where absent. */
  readonly nextTurn?: (run: () => void) => void;
};

/**
 * Pushed and not yet acknowledged, at most; whichever bound comes first. The bytes stay well below what makes a slow
 * socket be dropped: else a backlog of large messages would drop every connection before its first ack.
 */
const windowItems = 256;
const windowBytes = 4 * 1_048_576;
/** In the memory at once. */
const readItems = 32;

export class DeliveryPump {
  readonly #options: DeliveryPumpOptions;
  readonly #nextTurn: (run: () => void) => void;
  /** history_id → bytes. */
  readonly #unacked = new Map<number, number>();
  #unackedBytes = 0;
  #pushedUpTo = 0;
  #wanted = false;
  #running = false;
  #stopped = false;

  constructor(options: DeliveryPumpOptions) {
    this.#options = options;
    this.#nextTurn = options.nextTurn ?? setImmediate;
  }

  /** Cheap and callable at any time; calls while a read is under way lead to one more. */
  wake(): void {
    this.#wanted = true;
    if (this.#running || this.#stopped) return;
    this.#running = true;
    this.#nextTurn(() => void this.#run());
  }

  settled(historyIds: readonly number[]): void {
    for (const historyId of historyIds) {
      this.#unackedBytes -= this.#unacked.get(historyId) ?? 0;
      this.#unacked.delete(historyId);
    }
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
    const room = Math.min(windowItems - this.#unacked.size, readItems);
    if (room <= 0) return;
    const { store, meshId, recipient, push } = this.#options;
    const items = await store.unsettled(meshId, recipient, this.#pushedUpTo, room);
    for (const item of items) {
      // The acks of what is on its way wake the pump again.
      if (this.#stopped || this.#unackedBytes >= windowBytes) return;
      const bytes = push(item);
      this.#pushedUpTo = item.history_id;
      this.#unacked.set(item.history_id, bytes);
      this.#unackedBytes += bytes;
    }
    if (items.length === room) this.#wanted = true;
  }
}
