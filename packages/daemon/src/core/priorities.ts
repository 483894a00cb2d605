// In which order rows that wait on this host leave it: the more urgent first. Rows of one priority keep their order.
import type { Priority } from "@claudemesh/protocol/messages/envelope";

export const prioritiesFirst: readonly Priority[] = ["now", "next", "low"];

export function byPriority<Value>(make: (priority: Priority) => Value): Readonly<Record<Priority, Value>> {
  return { now: make("now"), next: make("next"), low: make("low") };
}

/** A queue for each priority; the most urgent that waits comes out first. */
export class PriorityQueue<Item extends { readonly priority: Priority }> {
  readonly #waiting = byPriority<Item[]>(() => []);

  get size(): number {
    return prioritiesFirst.reduce((sum, priority) => sum + this.#waiting[priority].length, 0);
  }

  push(item: Item): void {
    this.#waiting[item.priority].push(item);
  }

  shift(): Item | undefined {
    for (const priority of prioritiesFirst) {
      const item = this.#waiting[priority].shift();
      if (item !== undefined) return item;
    }
    return undefined;
  }
}
