// The brokers' common channel on Redis. What is said in one turn of the event loop travels as one message; what is said
// while Redis is away is lost, and who looks at intervals makes up for it: the delivery sweep, and the space watchers.
import { createSecretKey } from "node:crypto";
import { RedisConnection } from "@claudemesh/messages/redis";
import { decodeSignals, encodeSignals, type Signal } from "./signal.ts";

export type SignalBusOptions = {
  readonly redisUrl: string;
  /** Names this broker among the others. */
  readonly brokerId: string;
  /** What is said is signed with it, and what is not signed with it is not heard. */
  readonly secret: Uint8Array;
  /** Signals of other brokers. */
  readonly onSignal: (signal: Signal) => void;
  /** Listening, for the first time or again: what was said before was not heard. */
  readonly onListening: () => void;
  /** Able to speak, for the first time or again: what was said before was not sent. */
  readonly onSpeaking: () => void;
  readonly onProblem: (error: unknown) => void;
  /** Something was said that no broker of this store can have said. */
  readonly onForged: () => void;
};

export type SignalBus = {
  /** Call it after the commit, never before: brokers that receive it read the store at once. */
  readonly publish: (signal: Signal) => void;
  readonly close: () => void;
};

const channel = "claudemesh:signals";
const publishTimeoutMs = 1_000;
/** In one message; a reader has to parse it in one go. */
const recipientsPerSignal = 1_000;

export function openSignalBus(options: SignalBusOptions): SignalBus {
  const { redisUrl: url, brokerId, onProblem } = options;
  const secret = createSecretKey(options.secret);
  const speaking = new RedisConnection({ url, name: "claudemesh-signals", onProblem, onReady: options.onSpeaking });
  const listening = new RedisConnection({
    url,
    name: "claudemesh-listener",
    onProblem,
    onReady: options.onListening,
    subscription: {
      channel,
      onMessage: (text) => {
        const message = decodeSignals(text, secret);
        if (message === undefined) {
          options.onForged();
          return;
        }
        if (message.from === brokerId) return;
        for (const signal of message.signals) options.onSignal(signal);
      },
    },
  });
  const waiting = new WaitingSignals();
  const flush = () => {
    const text = encodeSignals({ from: brokerId, signals: waiting.take() }, secret);
    speaking.ask((client) => client.publish(channel, text), publishTimeoutMs).catch(onProblem);
  };
  return {
    publish: (signal) => {
      if (waiting.add(signal)) setImmediate(flush);
    },
    close: () => {
      speaking.close();
      listening.close();
    },
  };
}

/** Recipients of one mesh are named once, however many messages they got; so is a space, with its last seq. */
class WaitingSignals {
  #recipients = new Map<string, Set<string>>();
  #spaces = new Map<string, Extract<Signal, { type: "space_changed" }>>();
  #others: Signal[] = [];

  /** True: the first since the last take. */
  add(signal: Signal): boolean {
    const first = this.#recipients.size === 0 && this.#spaces.size === 0 && this.#others.length === 0;
    if (signal.type === "space_changed") {
      const key = `${signal.meshId}/${signal.spaceId}`;
      if (signal.seq > (this.#spaces.get(key)?.seq ?? -1)) this.#spaces.set(key, signal);
      return first;
    }
    if (signal.type !== "deliveries") {
      this.#others.push(signal);
      return first;
    }
    const recipients = this.#recipients.get(signal.meshId) ?? new Set();
    for (const recipient of signal.recipients) recipients.add(recipient);
    this.#recipients.set(signal.meshId, recipients);
    return first;
  }

  take(): Signal[] {
    const signals = [...this.#others, ...this.#spaces.values()];
    for (const [meshId, set] of this.#recipients) {
      const all = [...set];
      for (let from = 0; from < all.length; from += recipientsPerSignal) {
        signals.push({ type: "deliveries", meshId, recipients: all.slice(from, from + recipientsPerSignal) });
      }
    }
    this.#others = [];
    this.#recipients = new Map();
    this.#spaces = new Map();
    return signals;
  }
}
