// Calls subscribers with the visible documents, in the order in which they became visible. A subscriber may start a
// transaction: then earlier notifications are delivered first, and those of the transaction's own commit before it
// returns.
import type { BranchId, EntityDocument, EntityId } from "@claudemesh/protocol/spaces/entity";
import { frozen } from "./frozen.ts";
import type { Notification, NotificationCause } from "./tiers/visible-changes.ts";

export type Subscriber = (document: EntityDocument | undefined, cause: NotificationCause) => void;
export type PrefixSubscriber = (id: EntityId, document: EntityDocument | undefined, cause: NotificationCause) => void;

export class Notifier {
  readonly #byEntity = new Map<string, Set<Subscriber>>();
  readonly #byPrefix = new Map<BranchId, Map<string, Set<PrefixSubscriber>>>();
  readonly #onError: (error: unknown) => void;
  /**
   * One call each, so that when a subscriber starts a transaction the others still get the earlier notifications first.
   */
  readonly #queue: (() => void)[] = [];

  /** `onError` is called with what a subscriber throws; the others are called all the same. */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  isSubscribed(branch: BranchId, id: EntityId): boolean {
    return this.#byEntity.has(keyOf(branch, id)) || this.#prefixSubscribers(branch, id).length > 0;
  }

  subscribe(branch: BranchId, id: EntityId, subscriber: Subscriber): () => void {
    // Each subscription ends by itself, also where one function is subscribed twice.
    const own: Subscriber = (document, cause) => subscriber(document, cause);
    return addTo(this.#byEntity, keyOf(branch, id), own);
  }

  /** `isLast` in the returned function's answer: no subscriber of this prefix is left. */
  subscribePrefix(branch: BranchId, prefix: string, subscriber: PrefixSubscriber): () => { readonly isLast: boolean } {
    let prefixes = this.#byPrefix.get(branch);
    if (prefixes === undefined) {
      prefixes = new Map();
      this.#byPrefix.set(branch, prefixes);
    }
    let isOn = true;
    const own: PrefixSubscriber = (id, document, cause) => isOn && subscriber(id, document, cause);
    const off = addTo(prefixes, prefix, own);
    return () => {
      isOn = false;
      off();
      return { isLast: !prefixes.has(prefix) };
    };
  }

  notify({ branch, id, document: shown, cause }: Notification): void {
    const document = frozen(shown);
    const subscribers = this.#byEntity.get(keyOf(branch, id));
    for (const each of subscribers ?? []) {
      this.#queue.push(() => subscribers?.has(each) === true && each(document, cause));
    }
    for (const each of this.#prefixSubscribers(branch, id)) this.#queue.push(() => each(id, document, cause));
    this.#drain();
  }

  #drain(): void {
    for (let call = this.#queue.shift(); call !== undefined; call = this.#queue.shift()) {
      try {
        call();
      } catch (error) {
        this.#onError(error);
      }
    }
  }

  #prefixSubscribers(branch: BranchId, id: EntityId): PrefixSubscriber[] {
    const matching: PrefixSubscriber[] = [];
    for (const [prefix, subscribers] of this.#byPrefix.get(branch) ?? []) {
      if (id.startsWith(prefix)) matching.push(...subscribers);
    }
    return matching;
  }
}

function addTo<T>(sets: Map<string, Set<T>>, key: string, member: T): () => void {
  const members = sets.get(key) ?? new Set();
  members.add(member);
  sets.set(key, members);
  return () => {
    members.delete(member);
    if (members.size === 0 && sets.get(key) === members) sets.delete(key);
  };
}

function keyOf(branch: BranchId, id: EntityId): string {
  return `${branch}\0${id}`;
}
