// One connection to Redis that never makes a caller wait for it: while it is away every command fails at once, and it
// comes back by itself. A connection whose other end has fallen silent is replaced.
import { createClient } from "redis";
import { consumeScript } from "./consume-script.ts";

export type RedisConnectionOptions = {
  readonly url: string;
  /** Shown in the server's list of clients. */
  readonly name: string;
  /** It was lost, or could not be made. Called for every try. */
  readonly onProblem: (error: unknown) => void;
  /** It is there, for the first time or again. */
  readonly onReady?: () => void;
  /** Messages on this channel; whatever was published while the connection was away is not heard. */
  readonly subscription?: { readonly channel: string; readonly onMessage: (text: string) => void };
  readonly heartbeatMs?: number;
  readonly random?: () => number;
};

/** No answer in time, or no connection to ask on. */
export class RedisUnavailable extends Error {
  override readonly name = "RedisUnavailable";
}

const connectTimeoutMs = 2_000;
const reconnectDelayMaxMs = 1_000;

function createRedisClient(url: string, name: string, random: () => number) {
  return createClient({
    url,
    name,
    scripts: { consumeBudget: consumeScript },
    disableOfflineQueue: true,
    // Who asks has a timeout of its own (`ask`); a signal for each command would be one more.
    commandOptions: { timeout: 0 },
    maintNotifications: "disabled",
    socket: {
      connectTimeout: connectTimeoutMs,
      reconnectStrategy: (retries) => Math.min(2 ** retries * 20, reconnectDelayMaxMs) * (0.5 + random() / 2),
    },
  });
}

export type RedisClient = ReturnType<typeof createRedisClient>;

export class RedisConnection {
  readonly #options: RedisConnectionOptions;
  readonly #heartbeatMs: number;
  readonly #heartbeat: NodeJS.Timeout;
  #client: RedisClient;
  /** When the other end took the connection on which the client still waits for its first answers. */
  #acceptedAtMs: number | undefined;
  #closed = false;

  constructor(options: RedisConnectionOptions) {
    this.#options = options;
    this.#heartbeatMs = options.heartbeatMs ?? 2_000;
    this.#client = this.#open();
    this.#heartbeat = setInterval(() => void this.#checkAlive(), this.#heartbeatMs);
    this.#heartbeat.unref();
  }

  get ready(): boolean {
    return this.#client.isReady;
  }

  /** Rejects with RedisUnavailable when there is no connection, or no answer in time. It may have run all the same. */
  async ask<T>(command: (client: RedisClient) => Promise<T>, timeoutMs: number): Promise<T> {
    const client = this.#client;
    if (!client.isReady) throw new RedisUnavailable("there is no connection to Redis");
    const { promise: late, reject } = Promise.withResolvers<never>();
    const giveUp = () => reject(new RedisUnavailable(`Redis did not answer in ${timeoutMs} ms`));
    const answer = command(client);
    // A process that was busy for longer is not Redis's fault. The client writes at the end of this turn, and the time
    // counts from then; and timers run before sockets are read, so that an answer may be here when the time is over.
    let timer: NodeJS.Timeout | undefined;
    const written = setImmediate(() => {
      timer = setTimeout(() => setImmediate(giveUp), timeoutMs);
    });
    try {
      return await Promise.race([answer, late]);
    } finally {
      clearImmediate(written);
      clearTimeout(timer);
    }
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#heartbeat);
    this.#client.destroy();
  }

  #open(): RedisClient {
    const { url, name, onProblem, onReady, subscription } = this.#options;
    const client = createRedisClient(url, name, this.#options.random ?? Math.random);
    let subscribed = false;
    const noteProblem = (error: unknown) => {
      if (!this.#closed && client === this.#client) onProblem(error);
    };
    client.on("error", noteProblem);
    client.on("connect", () => {
      this.#acceptedAtMs = performance.now();
    });
    client.on("reconnecting", () => {
      this.#acceptedAtMs = undefined;
    });
    client.on("ready", () => {
      this.#acceptedAtMs = undefined;
      // After the first time the client itself subscribes again, before it says that it is ready.
      if (subscription === undefined || subscribed) {
        onReady?.();
        return;
      }
      client.subscribe(subscription.channel, subscription.onMessage).then(() => {
        subscribed = true;
        onReady?.();
      }, onProblem);
    });
    client.connect().catch(noteProblem);
    return client;
  }

  async #checkAlive(): Promise<void> {
    const client = this.#client;
    if (!client.isReady) {
      this.#checkGreeting();
      return;
    }
    try {
      await this.ask((asked) => asked.ping(), this.#heartbeatMs);
    } catch (error) {
      // A broken connection mends itself. One that swallows everything would not be noticed for many minutes.
      const silent = error instanceof RedisUnavailable && client.isReady;
      if (this.#closed || !silent || client !== this.#client) return;
      this.#replace(error);
    }
  }

  // The client bounds how long it takes to be accepted, and tries again by itself. For what it asks after that, before it
  // is ready, it waits for ever.
  #checkGreeting(): void {
    if (this.#acceptedAtMs === undefined || performance.now() - this.#acceptedAtMs < connectTimeoutMs) return;
    this.#replace(new RedisUnavailable(`Redis took the connection and did not answer in ${connectTimeoutMs} ms`));
  }

  #replace(problem: RedisUnavailable): void {
    this.#options.onProblem(problem);
    this.#acceptedAtMs = undefined;
    const silent = this.#client;
    this.#client = this.#open();
    silent.destroy();
  }
}
