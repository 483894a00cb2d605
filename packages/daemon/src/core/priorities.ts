// In which order rows that wait on this host leave it: the more urgent first. Rows of one priority keep their order.
import type { Priority } from "@claudemesh/protocol/messages/envelope";

export const prioritiesFirst: readonly Priority[] = ["now", "next", "low"];

export function byPriority<Value>(make: (priority: Priority) => Value): Readonly<Record<Priority, Value>> {
  return { now: make("now"), next: make("next"), low: make("low") };
}

type Stack<Item> = { readonly top: Item; readonly below: Stack<Item> } | undefined;

/** Items are taken from `front` and put on `back`, which is turned over when `front` is empty. */
type Fifo<Item> = { readonly front: Stack<Item>; readonly back: Stack<Item> };

/**
 * Items that wait, first in first out for each priority. It never changes: adding to it and taking from it give another one,
 * and cost the same however many wait.
 */
export class PriorityQueue<Item extends { readonly priority: Priority }> {
  readonly #waiting: Readonly<Record<Priority, Fifo<Item>>>;
  readonly size: number;

  private constructor(waiting: Readonly<Record<Priority, Fifo<Item>>>, size: number) {
    this.#waiting = waiting;
    this.size = size;
  }

  static empty<Item extends { readonly priority: Priority }>(): PriorityQueue<Item> {
    return new PriorityQueue<Item>(
      byPriority(() => ({ front: undefined, back: undefined })),
      0,
    );
  }

  with(item: Item): PriorityQueue<Item> {
    const { front, back } = this.#waiting[item.priority];
    return this.#change(item.priority, { front, back: { top: item, below: back } }, 1);
  }

  /** The first of the most urgent items, and the queue without it; undefined where nothing waits. */
  takeFirst(): { readonly first: Item; readonly rest: PriorityQueue<Item> } | undefined {
    for (const priority of prioritiesFirst) {
      const { front, back } = this.#waiting[priority];
      const stack = front ?? turnOver(back);
      if (stack === undefined) continue;
      const left = { front: stack.below, back: front === undefined ? undefined : back };
      return { first: stack.top, rest: this.#change(priority, left, -1) };
    }
    return undefined;
  }

  #change(priority: Priority, fifo: Fifo<Item>, by: number): PriorityQueue<Item> {
    return new PriorityQueue<Item>({ ...this.#waiting, [priority]: fifo }, this.size + by);
  }
}

function turnOver<Item>(stack: Stack<Item>): Stack<Item> {
  let turned: Stack<Item>;
  for (let left = stack; left !== undefined; left = left.below) turned = { top: left.top, below: turned };
  return turned;
}
