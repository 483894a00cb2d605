// Which broker a link goes to, of several that share a store: the one that it has, until that is away, then the next one.
// Addresses that were given stay; those that brokers tell of are as they told them last. Pure.
// Why: docs/decisions/0143.
import { brokerHttpUrl } from "../broker/broker-url.ts";

/** Where a link is, where else it could go, and when it tries again while it is down. */
export type LinkRoute = {
  readonly current: string;
  readonly others: readonly string[];
  /** By the wall clock; undefined while it is connected or trying. */
  readonly nextTryAtMs: number | undefined;
};

export const brokersMax = 16;
/** Together less than two seconds: so long it takes at most until the next of several brokers is asked. */
export const hastyConnectMs = 1_400;
export const hopMs = 500;

export class BrokerRoute {
  readonly #given: readonly string[];
  #urls: readonly string[];
  #current: string;
  #failedInRow = 0;

  constructor(first: string, others: readonly string[] = []) {
    this.#given = distinct([first, ...others]);
    this.#urls = this.#given;
    this.#current = first;
  }

  get current(): string {
    return this.#current;
  }

  get others(): readonly string[] {
    return this.#urls.filter((url) => keyOf(url) !== keyOf(this.#current));
  }

  /** All of them have failed at least once since one last worked. */
  get isRoundOver(): boolean {
    return this.#failedInRow >= this.#urls.length;
  }

  /** How many have not failed since one last worked, where none has failed twice. */
  get untried(): number {
    return this.#urls.length - this.#failedInRow;
  }

  /** What the brokers say of themselves. What is no address of a broker is passed over. */
  learn(urls: readonly string[]): void {
    this.#urls = distinct([...this.#given, ...urls]).slice(0, brokersMax);
  }

  worked(): void {
    this.#failedInRow = 0;
  }

  /** True: a round is over, and the next try should wait. */
  failed(): boolean {
    this.#failedInRow += 1;
    const at = this.#urls.findIndex((url) => keyOf(url) === keyOf(this.#current));
    this.#current = this.#urls[(at + 1) % this.#urls.length] ?? this.#current;
    return this.#failedInRow % this.#urls.length === 0;
  }
}

function distinct(urls: readonly string[]): readonly string[] {
  const byKey = new Map<string, string>();
  for (const url of urls) {
    const key = keyOf(url);
    if (key !== undefined && !byKey.has(key)) byKey.set(key, url);
  }
  return [...byKey.values()];
}

/** ws:// and http:// name the same broker. Undefined: no address of one. */
function keyOf(url: string): string | undefined {
  try {
    return brokerHttpUrl(url, "");
  } catch {
    return undefined;
  }
}
