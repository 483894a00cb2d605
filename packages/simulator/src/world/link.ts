// A link to the broker over the simulated network: what the client's link promises, without a socket. Hello, requests
// with time-outs and late answers, pings, reconnection with backoff.
// Why: docs/decisions/0045.
import type { Link, LinkOutcome, LinkStatus, RequestOptions } from "@claudemesh/client/internal/link-contract";
import type { Timer } from "@claudemesh/daemon/testing/ports";
import { type AnnouncedFeatures, negotiate } from "@claudemesh/protocol/features";
import { backoffDelayMs } from "@claudemesh/protocol/messages/backoff";
import type { HelloReplyBody, PushFrame } from "@claudemesh/protocol/wire/frames";
import type { Life } from "./host.ts";
import type { End, Frame, Network, Wire } from "./network.ts";

export type SimulatedLinkOptions = {
  readonly life: Life;
  readonly network: Network;
  readonly wire: Wire;
  readonly pubkey: string;
  readonly kind: "daemon" | "client";
  readonly onStatus: (status: LinkStatus) => void;
  readonly onPush: (push: PushFrame) => void;
};

const connectTimeoutMs = 10_000;
const pingIdleMs = 30_000;
const backoff = { minMs: 500, maxMs: 60_000 };
const helloId = 0;
/** Nothing is signed in the simulator, where nothing but the mesh's brokers can be dialled. */
const brokerKey = "0b".repeat(32);

type Open = { readonly settle: (outcome: LinkOutcome) => void; readonly timer: Timer };

export function openSimulatedLink(options: SimulatedLinkOptions): Link {
  const link = new SimulatedLink(options);
  link.connect();
  return link;
}

class SimulatedLink implements Link {
  readonly #options: SimulatedLinkOptions;
  readonly #open = new Map<number, Open>();
  readonly #late = new Map<number, NonNullable<RequestOptions["onLateAnswer"]>>();
  #end: End | undefined;
  #status: LinkStatus = { state: "connecting" };
  #failures = 0;
  #nextId = 1;
  #connectTimer: Timer | undefined;
  #idleTimer: Timer | undefined;
  #pinged = false;
  #generation = 0;

  constructor(options: SimulatedLinkOptions) {
    this.#options = options;
  }

  readonly status = (): LinkStatus => this.#status;
  readonly bufferedBytes = (): number => 0;

  readonly request: Link["request"] = (operation, input, options) => {
    if (this.#status.state !== "online" || this.#end === undefined) return Promise.resolve({ type: "not_sent" });
    const id = this.#nextId++;
    return new Promise((settle) => {
      const timer = this.#options.life.setTimer(options.timeoutMs, () => {
        this.#open.delete(id);
        if (options.onLateAnswer !== undefined) this.#late.set(id, options.onLateAnswer);
        settle({ type: "timed_out" });
      });
      this.#open.set(id, { settle, timer });
      this.#end?.send({ type: operation, id, ...input });
    });
  };

  readonly close = async (): Promise<void> => {
    this.#become({ state: "stopped", reason: "closed", detail: "closed by this side" });
  };

  connect(): void {
    const { life, network, wire } = this.#options;
    const generation = ++this.#generation;
    const isCurrent = () => generation === this.#generation && life.alive;
    this.#nextId = 1;
    this.#connectTimer = life.setTimer(connectTimeoutMs, () => this.#lose("unreachable", "no hello in time"));
    this.#end = network.dial(wire, life, {
      onFrame: (frame) => {
        if (isCurrent()) this.#onFrame(frame);
      },
      onClose: (reason) => {
        if (isCurrent()) this.#lose(reason === "refused" ? "unreachable" : "lost", reason);
      },
    });
  }

  #onFrame(frame: Frame): void {
    this.#heard();
    const { pubkey, kind } = this.#options;
    const { type, id } = frame;
    if (type === "proof") this.#end?.send({ type: "hello", id: helloId, pubkey, kind, features: frame.features });
    else if (type === "reply" && id === helloId) this.#onHello(frame);
    else if (type === "reply") this.#onReply(id as number, { status: frame.status as number, body: frame.body });
    else if (type !== "pong") this.#options.onPush(frame as unknown as PushFrame);
  }

  #onHello({ status, body }: Frame): void {
    if (this.#status.state === "online") return;
    if (status !== 200) {
      this.#lose("unauthorized", "the hello was refused");
      return;
    }
    const { features, ...hello } = body as HelloReplyBody & { features: AnnouncedFeatures };
    const negotiated = negotiate(features);
    if (!negotiated.ok)
      throw new Error(`the simulated broker announces what the link does not take: ${negotiated.detail}`);
    this.#connectTimer?.cancel();
    this.#failures = 0;
    this.#become({ state: "online", hello, features: negotiated.features, brokerKey });
  }

  #onReply(id: number, answer: { readonly status: number; readonly body: unknown }): void {
    const open = this.#open.get(id);
    if (open !== undefined) {
      this.#open.delete(id);
      open.timer.cancel();
      open.settle({ type: "answered", ...answer });
      return;
    }
    const late = this.#late.get(id);
    this.#late.delete(id);
    late?.(answer);
  }

  #heard(): void {
    this.#pinged = false;
    this.#idleTimer?.cancel();
    this.#idleTimer = this.#options.life.setTimer(pingIdleMs, () => this.#heardNothing());
  }

  #heardNothing(): void {
    if (this.#pinged) {
      this.#lose("lost", "the broker answers no pings");
      return;
    }
    this.#pinged = true;
    this.#end?.send({ type: "ping" });
    this.#idleTimer = this.#options.life.setTimer(pingIdleMs, () => this.#heardNothing());
  }

  #lose(reason: "unreachable" | "lost" | "unauthorized", detail: string): void {
    if (this.#status.state === "stopped") return;
    this.#become({ state: "offline", reason, detail });
    const { life } = this.#options;
    life.setTimer(backoffDelayMs(++this.#failures, life.chance.random(), backoff), () => {
      if (this.#status.state !== "stopped") this.connect();
    });
  }

  #become(status: LinkStatus): void {
    this.#status = status;
    if (status.state !== "online") {
      this.#generation++;
      this.#connectTimer?.cancel();
      this.#idleTimer?.cancel();
      this.#end?.close("the link gives it up");
      this.#end = undefined;
      this.#late.clear();
      const open = [...this.#open.values()];
      this.#open.clear();
      for (const { timer, settle } of open) {
        timer.cancel();
        settle({ type: "connection_lost" });
      }
    }
    this.#options.onStatus(status);
  }
}
