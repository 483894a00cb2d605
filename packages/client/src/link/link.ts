// A link that stays up: one connection after another, with backoff between them, until it is closed or the broker says
// that reconnecting would be wrong. Also the one-shot form for commands, which fails instead of trying again.
// connection.ts handles a single socket.
// Why: docs/decisions/0122.
import { MeshError } from "@claudemesh/protocol/errors";
import { type BackoffBounds, backoffDelayMs, defaultReconnect } from "@claudemesh/protocol/messages/backoff";
import { brokerSocketUrl } from "../broker/broker-url.ts";
import { BrokerRoute, hastyConnectMs, hopMs, type LinkRoute } from "./broker-route.ts";
import { trustInMemory } from "./broker-trust.ts";
import { Connection, type ConnectionOptions } from "./connection.ts";
import { type EndedStatus, failuresAfterEnd } from "./ended-status.ts";
import type { Link, LinkOptions, LinkStatus } from "./link-contract.ts";

export type LinkTiming = {
  /** After this silence the broker is pinged; after as much silence again the connection ends. */
  readonly pingIdleMs: number;
  /** How long a connection must hold before its loss counts as the first failure of a new row. */
  readonly steadyMs: number;
};

const defaultTiming: LinkTiming = { pingIdleMs: 15_000, steadyMs: 5_000 };
const defaultConnectTimeoutMs = 10_000;
/** For people who meet a key that they do not expect. */
export const notOursAdvice =
  "Nothing was sent to it. Look what runs there; if an owner says that the key was changed on purpose: claudemesh mesh trust-broker.";

/**
 * Starts connecting at once. `onStatus` is called for every change after the first "connecting", and never before this
 * returns. Throws a MeshError when the address cannot be that of a broker.
 */
export function openLink(options: LinkOptions, timing: LinkTiming = defaultTiming): Link {
  const link = new ReconnectingLink(options, timing);
  return {
    status: () => link.status,
    request: (operation, input, requestOptions) => link.connection.request(operation, input, requestOptions),
    bufferedBytes: () => link.connection.bufferedBytes(),
    route: () => link.describeRoute(),
    reconnect: () => link.tryNow(),
    close: () => link.close(),
  };
}

class ReconnectingLink {
  status: LinkStatus = { state: "connecting" };
  /** The present connection, or the last one while none is up: that one refuses requests as not sent. */
  connection: Connection;
  readonly #options: LinkOptions;
  readonly #connectionOptions: ConnectionOptions;
  readonly #backoff: BackoffBounds;
  readonly #steadyMs: number;
  /** This link has pinned the first key of its home. */
  #hasPinnedKey = false;
  readonly #route: BrokerRoute;
  #nextTryAtMs: number | undefined;
  #failures = 0;
  #onlineAtMs: number | undefined;
  #reconnectTimer: NodeJS.Timeout | undefined;

  constructor(options: LinkOptions, timing: LinkTiming) {
    this.#options = options;
    this.#connectionOptions = connectionOptions(options, timing);
    this.#backoff = options.backoff ?? defaultReconnect;
    this.#steadyMs = timing.steadyMs;
    this.#route = new BrokerRoute(options.url, options.brokers);
    this.connection = this.#connect();
  }

  async close(): Promise<void> {
    clearTimeout(this.#reconnectTimer);
    this.connection.close();
    if (this.status.state !== "stopped") {
      this.#change({ state: "stopped", reason: "closed", detail: "closed by this side" });
    }
    await this.connection.closed;
  }

  #connect(): Connection {
    this.#onlineAtMs = undefined;
    this.#nextTryAtMs = undefined;
    return new Connection(this.#connectionTo(this.#route), {
      onOnline: (hello, { features, defaulted }, { brokerKey, isFirst }) => {
        this.#onlineAtMs = performance.now();
        this.#route.worked();
        if (hello.brokers !== undefined) this.#route.learn(hello.brokers);
        this.#hasPinnedKey ||= isFirst;
        const isFirstKey = this.#hasPinnedKey;
        const unclear = defaulted.length > 0 && { defaulted };
        this.#change({ state: "online", hello, features, brokerKey, isFirstKey, ...unclear });
      },
      onPush: (push) => {
        if (push.type === "brokers_changed") this.#route.learn(push.brokers);
        this.#options.onPush(push);
      },
      onEnd: (ended) => this.#connectionEnded(ended),
    });
  }

  describeRoute(): LinkRoute {
    const { current, others } = this.#route;
    return { current, others, nextTryAtMs: this.#nextTryAtMs };
  }

  tryNow(): void {
    if (this.status.state !== "offline") return;
    clearTimeout(this.#reconnectTimer);
    this.#failures = 0;
    this.#reconnect();
  }

  /** In a first round, where there are other brokers, a silent broker is given up sooner. */
  #connectionTo(route: BrokerRoute): ConnectionOptions {
    const { connectTimeoutMs } = this.#connectionOptions;
    const isHasty = route.others.length > 0 && !route.isRoundOver;
    return {
      ...this.#connectionOptions,
      socketUrl: brokerSocketUrl(route.current),
      connectTimeoutMs: isHasty ? Math.min(connectTimeoutMs, hastyConnectMs) : connectTimeoutMs,
    };
  }

  #connectionEnded(ended: EndedStatus): void {
    if (ended.state === "offline") {
      const onlineForMs = this.#onlineAtMs === undefined ? undefined : performance.now() - this.#onlineAtMs;
      const isRoundOver = this.#route.failed();
      // A broker that flaps among others that work is no reason to hurry from one to the next.
      if (isRoundOver || onlineForMs !== undefined) {
        this.#failures = failuresAfterEnd(this.#failures, onlineForMs, this.#steadyMs);
      }
      const random = (this.#options.random ?? Math.random)();
      // The wait is between rounds: where only one of many brokers is up, there must not be a wait for each that is
      // down.
      const isNear = !isRoundOver && (onlineForMs === undefined || this.#failures <= 1);
      const delayMs = isNear ? Math.floor(random * hopMs) : backoffDelayMs(this.#failures, random, this.#backoff);
      this.#nextTryAtMs = Date.now() + delayMs;
      this.#reconnectTimer = setTimeout(() => this.#reconnect(), delayMs);
    }
    this.#change(ended);
  }

  #reconnect(): void {
    this.connection = this.#connect();
    this.#change({ state: "connecting" });
  }

  #change(status: LinkStatus): void {
    this.status = status;
    this.#options.onStatus(status);
  }
}

/**
 * One connection, for a command: resolves once the hello is answered, rejects with `unauthorized` or
 * `broker_unreachable`. After the connection has ended, requests end as not_sent and nothing is tried again.
 */
export function connectOnce(options: Omit<LinkOptions, "onStatus" | "backoff" | "random">): Promise<Link> {
  return new Promise((resolve, reject) => {
    let status: LinkStatus = { state: "connecting" };
    const connection = new Connection(connectionOptions(options, defaultTiming), {
      onOnline: (hello, { features }, { brokerKey, isFirst }) => {
        status = { state: "online", hello, features, brokerKey, isFirstKey: isFirst };
        resolve(link);
      },
      onPush: options.onPush,
      onEnd: (ended) => {
        status = ended;
        reject(connectFailure(ended, options.url));
      },
    });
    const link: Link = {
      status: () => status,
      request: (operation, input, requestOptions) => connection.request(operation, input, requestOptions),
      bufferedBytes: () => connection.bufferedBytes(),
      close: () => {
        connection.close();
        return connection.closed;
      },
    };
  });
}

const formerMember =
  "This member was removed from the mesh. To be a member again, ask an owner for an invite, then: claudemesh daemon remint --invite <invite>";

function connectFailure(ended: EndedStatus, broker: string): MeshError {
  const details = { broker, reason: ended.reason, detail: ended.detail };
  if (ended.reason === "member_revoked") return new MeshError("membership_ended", formerMember, details);
  if (ended.reason === "unauthorized") {
    const why = ended.detail.replace(/\.$/, "");
    return new MeshError("unauthorized", `The broker at ${broker} refuses this member: ${why}.`, details);
  }
  if (ended.reason === "not_our_broker") {
    const keys = { expected_key: ended.keys?.expected, seen_key: ended.keys?.seen };
    const message = `What answers at ${broker} is not our broker: ${ended.detail}. ${notOursAdvice}`;
    return new MeshError("not_our_broker", message, { ...details, ...keys });
  }
  return new MeshError("broker_unreachable", `No connection to the broker at ${broker}: ${ended.detail}.`, details);
}

function connectionOptions(
  options: Omit<LinkOptions, "onStatus" | "backoff" | "random">,
  timing: LinkTiming,
): ConnectionOptions {
  return {
    socketUrl: brokerSocketUrl(options.url),
    identity: options.identity,
    kind: options.kind,
    agent: options.agent,
    trust: options.trust ?? trustInMemory(),
    connectTimeoutMs: options.connectTimeoutMs ?? defaultConnectTimeoutMs,
    pingIdleMs: timing.pingIdleMs,
  };
}
