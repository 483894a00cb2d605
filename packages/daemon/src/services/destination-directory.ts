// What the broker would answer to a send, per destination, so that a message that cannot arrive is refused when it is sent
// and not found dead later. That a destination takes messages is cached for a while, and sends to it cost no question. That
// it does not is never cached: what was missing a moment ago may exist now, so every such send asks again.
// Why: docs/decisions/0135.
import type { Destination } from "@claudemesh/protocol/messages/addresses";
import type { BrokerLink, Clock } from "../ports.ts";

export type DestinationState = {
  readonly refusal: "destination_not_found" | "not_subscribed" | undefined;
  /** False for a topic to which no member but this one is subscribed. */
  readonly hasRecipients: boolean;
};

export type DestinationPorts = {
  readonly link: { readonly request: BrokerLink["request"]; readonly status: BrokerLink["status"] };
  readonly clock: Pick<Clock, "nowMs">;
};

/** Deletions and revocations are pushed; this bounds what a push that was lost between brokers can do. */
const trustedMs = 60_000;
/** Its readers may leave at any time, and no push says so. */
const topicTrustedMs = 5_000;
/** A member may subscribe at any time, and no push says so. */
const emptyTrustedMs = 1_000;
const questionTimeoutMs = 2_000;
/** After a question without an answer, sends are accepted for so long without asking, so that not each waits for a time-out. */
const silenceMs = 5_000;
const cachedMax = 4_096;

type CachedState = { readonly state: DestinationState; readonly untilMs: number };
type Question = {
  readonly running: Promise<DestinationState | undefined>;
  next?: Promise<DestinationState | undefined>;
};

export class DestinationDirectory {
  readonly #ports: DestinationPorts;
  readonly #cache = new Map<string, CachedState>();
  readonly #questions = new Map<string, Question>();
  #silentUntilMs = Number.NEGATIVE_INFINITY;
  /** The broker of this connection does not know the question. */
  #unanswerable = false;
  /** Grows with everything that is forgotten, so that an answer that was on its way meanwhile is not cached. */
  #forgotten = 0;

  constructor(ports: DestinationPorts) {
    this.#ports = ports;
  }

  /** What is known without asking. */
  known(destination: Destination): DestinationState | undefined {
    const cached = this.#cache.get(keyOf(destination));
    return cached !== undefined && this.#ports.clock.nowMs() < cached.untilMs ? cached.state : undefined;
  }

  /** True while the broker can be asked. Where it cannot, sends are queued unasked. */
  get mayAsk(): boolean {
    if (this.#unanswerable || this.#ports.link.status().state !== "online") return false;
    return this.#ports.clock.nowMs() >= this.#silentUntilMs;
  }

  /** What is known, or what the broker answers to a question that is asked after this call. Undefined without an answer. */
  async find(destination: Destination): Promise<DestinationState | undefined> {
    return this.known(destination) ?? (this.mayAsk ? await this.#askOnce(destination) : undefined);
  }

  /** A try found that the destination takes no messages, or the broker says so. */
  forget(destination: Destination): void {
    this.#forgotten++;
    this.#cache.delete(keyOf(destination));
    // A member that is gone may have been the last reader of any topic.
    if (destination.kind === "dm") this.#forgetTopics();
  }

  #forgetTopics(): void {
    for (const key of this.#cache.keys()) if (key.startsWith("topic ")) this.#cache.delete(key);
  }

  /** Called for a new connection: pushes were missed while there was none, and this broker may be of a newer version. */
  forgetAll(): void {
    this.#forgotten++;
    this.#cache.clear();
    this.#unanswerable = false;
    this.#silentUntilMs = Number.NEGATIVE_INFINITY;
  }

  /**
   * The broker may have answered a question that is under way before this sender's topic was made. So callers that come
   * meanwhile share the next question.
   */
  #askOnce(destination: Destination): Promise<DestinationState | undefined> {
    const key = keyOf(destination);
    const question = this.#questions.get(key);
    if (question === undefined) return this.#begin(key, destination);
    question.next ??= question.running.then(() => this.#begin(key, destination));
    return question.next;
  }

  #begin(key: string, destination: Destination): Promise<DestinationState | undefined> {
    const question: Question = {
      running: this.#ask(key, destination).finally(() => {
        if (this.#questions.get(key) === question) this.#questions.delete(key);
      }),
    };
    this.#questions.set(key, question);
    return question.running;
  }

  async #ask(key: string, { kind, ref }: Destination): Promise<DestinationState | undefined> {
    const forgotten = this.#forgotten;
    const { link, clock } = this.#ports;
    const outcome = await link.request("destination.state", { kind, ref }, { timeoutMs: questionTimeoutMs });
    const state = outcome.type === "answered" && outcome.status === 200 ? readState(outcome.body) : undefined;
    if (state === undefined) {
      this.#unanswerable ||= outcome.type === "answered" && outcome.status === 400;
      if (outcome.type === "answered" || outcome.type === "timed_out") this.#silentUntilMs = clock.nowMs() + silenceMs;
      return undefined;
    }
    const mayCache = state.refusal === undefined && forgotten === this.#forgotten;
    if (mayCache) this.#put(key, state, clock.nowMs() + trustMs(kind, state));
    return state;
  }

  #put(key: string, state: DestinationState, untilMs: number): void {
    this.#cache.delete(key);
    this.#cache.set(key, { state, untilMs });
    const [oldest] = this.#cache.keys();
    if (this.#cache.size > cachedMax && oldest !== undefined) this.#cache.delete(oldest);
  }
}

function trustMs(kind: Destination["kind"], { hasRecipients }: DestinationState): number {
  if (!hasRecipients) return emptyTrustedMs;
  return kind === "topic" ? topicTrustedMs : trustedMs;
}

function keyOf({ kind, ref }: Destination): string {
  return `${kind} ${ref}`;
}

/** A refusal that a newer broker knows and we do not is left to the send itself. */
function readState(body: unknown): DestinationState | undefined {
  if (typeof body !== "object" || body === null) return undefined;
  const { refusal, has_recipients } = body as Readonly<Record<string, unknown>>;
  if (refusal === undefined || typeof has_recipients !== "boolean") return undefined;
  const isKnown = refusal === "destination_not_found" || refusal === "not_subscribed";
  return { refusal: isKnown ? refusal : undefined, hasRecipients: has_recipients };
}
