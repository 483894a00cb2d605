// An agent as an actor: a program with a replica of the space, a registrar client and `once`, all of the SDK, over
// simulated links. It keeps nothing on disk: a new process begins with a new session, and what the old one had under
// way may have been carried out or not.
// Why: docs/decisions/0060.
import { callOver } from "@claudemesh/client/broker";
import type { Link } from "@claudemesh/client/internal/link-contract";
import { wireOver } from "@claudemesh/client/internal/link-wire";
import { type MemberKeys, signerOf } from "@claudemesh/client/keys";
import { createOnce, type Once } from "@claudemesh/client/once";
import { createRegistrarClient, type RegistrarClient } from "@claudemesh/client/registrar";
import { type Space, type SpaceClient, type SpaceWire, spacesOver } from "@claudemesh/client/space";
import { createUlidGenerator } from "@claudemesh/protocol/ids";
import type { EncodedCommit } from "@claudemesh/protocol/spaces/commit";
import type { EntityDocument } from "@claudemesh/protocol/spaces/entity";
import type { OperationName } from "@claudemesh/protocol/wire/operations";
import { type Settings, spaceName } from "../core/plan.ts";
import type { Host, Life } from "./host.ts";
import { openSimulatedLink } from "./link.ts";
import type { Network, Wire } from "./network.ts";

export type AgentSetup = {
  readonly host: Host;
  readonly network: Network;
  readonly wire: Wire;
  readonly settings: Settings;
  readonly meshId: string;
  readonly keys: MemberKeys;
};

/** How something that an agent was asked for ended. `away`, `unanswered`: as for a daemon. */
export type AgentEnd<T> =
  | { readonly type: "value"; readonly value: T }
  | { readonly type: "error"; readonly error: unknown }
  | { readonly type: "away" }
  | { readonly type: "unanswered" };

export type Session = { readonly sessionId: string; readonly sessionToken: string };
/** What this process has put on the wire under a localSeq. */
export type SentCommit = { readonly sessionId: string; readonly commit: EncodedCommit };

const retryMs = 2_000;
const lookMs = 10_000;
const callTimeoutMs = 20_000;
/** Commits that are remembered, for sending them again. */
const sentMax = 60;

export class AgentActor {
  readonly #setup: AgentSetup;
  readonly #waiting = new Set<() => void>();
  #process: AgentProcess | undefined;

  constructor(setup: AgentSetup) {
    this.#setup = setup;
  }

  get host(): Host {
    return this.#setup.host;
  }

  get wire(): Wire {
    return this.#setup.wire;
  }

  get pubkey(): string {
    return this.#setup.keys.ed25519.public_key;
  }

  /** Undefined while the agent is down. */
  get process(): AgentProcess | undefined {
    return this.#process?.life.alive === true ? this.#process : undefined;
  }

  start(): void {
    const life = this.host.begin();
    life.onEnd(() => {
      for (const giveUp of [...this.#waiting]) giveUp();
    });
    this.#process = new AgentProcess(life, this.#setup);
  }

  /** Never rejects. */
  ask<T>(work: (process: AgentProcess) => Promise<T>): Promise<AgentEnd<T>> {
    const { process } = this;
    if (process === undefined) return Promise.resolve({ type: "away" });
    return new Promise((resolve) => {
      const end = (outcome: AgentEnd<T>) => {
        this.#waiting.delete(giveUp);
        resolve(process.life.alive ? outcome : { type: "unanswered" });
      };
      const giveUp = () => end({ type: "unanswered" });
      this.#waiting.add(giveUp);
      process.life.nextTurn(() => {
        new Promise<T>((done) => done(work(process))).then(
          (value) => end({ type: "value", value }),
          (error: unknown) => end({ type: "error", error }),
        );
      });
    });
  }
}

export class AgentProcess {
  readonly life: Life;
  readonly registrar: RegistrarClient;
  readonly once: Once;
  readonly sent: SentCommit[] = [];
  /** What the subscriber of the whole space believes to be there. */
  readonly shown = new Map<string, EntityDocument | undefined>();
  readonly #calls: Link;
  readonly #client: SpaceClient;
  /** Undefined until the session stands for the first time. */
  space: Space | undefined;
  session: Session | undefined;
  /** Sessions that were lost and opened anew. */
  reopened = 0;

  constructor(life: Life, { network, wire, keys, meshId, settings }: AgentSetup) {
    this.life = life;
    const { random, randomBytes } = life.chance;
    const pubkey = keys.ed25519.public_key;
    const open = (events: Pick<Parameters<typeof openSimulatedLink>[0], "onStatus" | "onPush">) =>
      openSimulatedLink({ life, network, wire, pubkey, kind: "client", ...events });
    this.#calls = open({ onStatus: () => undefined, onPush: () => undefined });
    const nextId = createUlidGenerator({ nowMs: life.host.wallMs, randomBytes });
    const { monotonicMs } = life.host.timeSources(life);
    const sleep = (ms: number, signal?: AbortSignal) => this.sleep(ms, signal);
    this.registrar = createRegistrarClient({ call: this.call, sign: signerOf(keys), meshId, sleep, random, nextId });
    this.once = createOnce({
      call: this.call,
      clock: { monotonicMs, wallMs: life.host.wallMs, sleep },
      random,
      nextClaimId: nextId,
    });
    this.#client = spacesOver(this.#heard(wireOver(open, settings.requestTimeoutMs * 3)), {
      sleep,
      random,
      newOpenId: nextId,
      onError: life.host.surroundings.onBug,
    });
    this.#open();
  }

  readonly call = (operation: OperationName, input: object): Promise<unknown> =>
    callOver(this.#calls, "simulated", operation, input, callTimeoutMs);

  get isOnline(): boolean {
    return this.#calls.status().state === "online";
  }

  /** Also over when the signal is aborted; never, when the process dies first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = this.life.setTimer(ms, resolve);
      signal?.addEventListener("abort", () => {
        timer.cancel();
        resolve();
      });
    });
  }

  #open(): void {
    this.#client.space(spaceName, { create: true }).then(
      (space) => {
        this.space = space;
        space.subscribePrefix("e:", (id, document) => this.shown.set(id, document));
        this.#lookAfter(space);
      },
      () => this.life.setTimer(retryMs, () => this.#open()),
    );
  }

  /** A session that another took, or that was forgotten, is opened anew, as a program would. */
  #lookAfter(space: Space): void {
    this.life.setTimer(lookMs, () => {
      void space
        .transact(() => undefined)
        .catch(async () => {
          this.reopened += 1;
          await space.reopen();
        })
        .catch(() => undefined)
        .then(() => this.#lookAfter(space));
    });
  }

  /** The same wire; what goes over it is remembered, so that it can be sent again. */
  #heard(wire: SpaceWire): SpaceWire {
    return {
      ...wire,
      request: async (type, input) => {
        const { commit, sessionId } = input as { readonly commit?: EncodedCommit; readonly sessionId?: string };
        if (type === "space.commit" && commit !== undefined && sessionId !== undefined) {
          this.sent.push({ sessionId, commit });
          if (this.sent.length > 2 * sentMax) this.sent.splice(0, sentMax);
        }
        const outcome = await wire.request(type, input);
        if (type === "space.open" && outcome.type === "answered" && outcome.status === 200) {
          this.session = outcome.body as Session;
        }
        return outcome;
      },
    };
  }
}
