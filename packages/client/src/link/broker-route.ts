// Chooses the broker of a link among several that share a store: it keeps the present one until that cannot be reached,
// and then moves to the next. Configured addresses stay in the list; announced ones are replaced by each announcement.
// Pure.
// Why: docs/decisions/0143.
import { brokerHttpUrl } from "../broker/broker-url.ts";

/** The broker of a link, the others that it could use, and when it tries again while it is down. */
export type LinkRoute = {
  readonly current: string;
  readonly others: readonly string[];
  /** By the wall clock; undefined while it is connected or trying. */
  readonly nextTryAtMs: number | undefined;
};

export const brokersMax = 16;
/** Together less than two seconds: the longest time before the next of several brokers is asked. */
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

  /** Each of them has failed at least once since one last worked. */
  get isRoundOver(): boolean {
    return this.#failedInRow >= this.#urls.length;
  }

  /** How many have not failed since one last worked, where none has failed twice. */
  get untried(): number {
    return this.#urls.length - this.#failedInRow;
  }

  /** The addresses that the brokers announce. Anything that is not the address of a broker is ignored. */
  learn(urls: readonly string[]): void {
    this.#urls = distinct([...this.#given, ...urls]).slice(0, brokersMax);
  }

  worked(): void {
    this.#failedInRow = 0;
  }

  /** Returns true when a round is over, and the next try should wait. */
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

/** ws:// and http:// name the same broker. Undefined where the text is not the address of a broker. */
function keyOf(url: string): string | undefined {
  try {
    return brokerHttpUrl(url, "");
  } catch {
    return undefined;
  }
}
