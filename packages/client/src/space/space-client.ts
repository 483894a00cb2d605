// The spaces of one connection: opens replicas over it and closes them with it. The entries for Node (node.ts) and for
// browsers (browser.ts) choose the connection.
import type { BackoffBounds } from "@claudemesh/protocol/messages/backoff";
import type { SealingIdentity } from "../seal/outgoing.ts";
import { Sealing } from "./building/sealing.ts";
import { Space } from "./space.ts";
import { bodyOf, ownError } from "./space-errors.ts";
import type { SpaceRequestType, SpaceWire } from "./space-wire.ts";

export type SpaceClientOptions = SealingIdentity & {
  /** How many commits may wait for their verdict in each space; one more is refused. Default: 1000. */
  readonly maxPending?: number;
  /** The pause between two tries of anything that failed. */
  readonly backoff?: BackoffBounds;
  readonly sleep?: (delayMs: number) => Promise<void>;
  /** In [0, 1). */
  readonly random?: () => number;
  /** Makes unique ids. */
  readonly newOpenId?: () => string;
  /** Called with what subscribers throw; by default that becomes an uncaught error. */
  readonly onError?: (error: unknown) => void;
};

const defaultMaxPending = 1_000;
const defaultBackoff: BackoffBounds = { minMs: 10, maxMs: 5_000 };

export class SpaceClient {
  readonly #wire: SpaceWire;
  readonly #options: SpaceClientOptions;
  readonly #spaces = new Map<string, Promise<Space>>();
  readonly #open = new Set<Space>();

  constructor(wire: SpaceWire, options: SpaceClientOptions = {}) {
    this.#wire = wire;
    this.#options = options;
  }

  /** The space's replica, with its session opened. There is one for each name: a second call returns the same. */
  space(name: string, options: { readonly create?: boolean } = {}): Promise<Space> {
    const existing = this.#spaces.get(name);
    if (existing !== undefined) return existing;
    const opening = this.#openSpace(name, options.create === true);
    this.#spaces.set(name, opening);
    opening.catch(() => this.#spaces.delete(name));
    return opening;
  }

  /** Creates the space, or finds that it exists. */
  async createSpace(name: string): Promise<void> {
    await this.#ask("space.create", { name });
  }

  async listSpaces(
    page: { readonly after?: string; readonly limit?: number } = {},
  ): Promise<Readonly<Record<string, unknown>>> {
    return this.#ask("space.list", page);
  }

  /** Closes every space and the connection. */
  async close(): Promise<void> {
    for (const space of this.#open) space.close();
    this.#open.clear();
    this.#spaces.clear();
    await this.#wire.close();
  }

  async #openSpace(name: string, create: boolean): Promise<Space> {
    if (create) await this.createSpace(name);
    const { maxPending = defaultMaxPending, backoff = defaultBackoff, sleep = sleepFor } = this.#options;
    const { random = Math.random, onError = throwLater, newOpenId = () => crypto.randomUUID() } = this.#options;
    const sealing = new Sealing(this.#options);
    const ports = { wire: this.#wire, sealing, maxPending, backoff, sleep, random, onError, newOpenId };
    const space = new Space(name, ports);
    this.#open.add(space);
    try {
      await space.opened();
    } catch (error) {
      this.#open.delete(space);
      space.close();
      throw error;
    }
    return space;
  }

  /** Waits for the connection first, without a limit. */
  async #ask(type: SpaceRequestType, input: object): Promise<Readonly<Record<string, unknown>>> {
    if (!this.#wire.isUp()) await this.#connected();
    return bodyOf(await this.#wire.request(type, input), type);
  }

  #connected(): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = this.#wire.listen({
        onPush: () => undefined,
        onUp: () => {
          stop();
          resolve();
        },
        onDown: (reason) => {
          if (reason === undefined) return;
          stop();
          reject(ownError("ConnectionStoppedError", undefined, { reason }));
        },
      });
    });
  }
}

function sleepFor(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs));
}

function throwLater(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}
