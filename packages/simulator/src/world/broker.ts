// A broker as an actor: the real services on a disk that survives it, and that a second one may share. Only its sockets
// and its clock are simulated. A planted fault may stand between it and its stores.
import type { BrokerConfig } from "@claudemesh/broker/config";
import type { BrokerContext } from "@claudemesh/broker/testing/context";
import { compileInputs, createOperationRunner, type RunOperation } from "@claudemesh/broker/testing/run-operation";
import { SharedConnections } from "@claudemesh/broker/testing/shared-connections";
import type { Mesh } from "@claudemesh/members/ports";
import type { MessagesStore } from "@claudemesh/messages/ports";
import { limits } from "@claudemesh/protocol/messages/limits";
import { StorageError } from "@claudemesh/storage/errors";
import type { Settings } from "../core/plan.ts";
import { BrokerConnection, type Served } from "./broker-connection.ts";
import { openServices, quiet, type Redis, type StorePlants, type VerifierMood } from "./broker-services.ts";
import type { Disk } from "./disk.ts";
import type { Host, Life } from "./host.ts";
import type { Network } from "./network.ts";

/** Hears what is asked of a broker and what it answers, as it leaves the process. */
export type Edge = (
  type: Parameters<RunOperation>[0],
  pubkey: string,
  input: object,
) => (answer: { readonly status: number; readonly body: unknown }) => void;

export type BrokerSetup = {
  readonly host: Host;
  readonly network: Network;
  readonly settings: Settings;
  readonly disk: Disk;
  readonly redis: Redis;
  readonly verifier: VerifierMood;
  readonly plants: StorePlants;
  readonly edge: () => Edge;
};

const inputs = compileInputs();
const regularMs = 600_000;
const indexMs = 60_000;
const registrarMs = 30_000;
/** How often a broker looks for commits, and beside another one for deliveries, that no signal announced to it. */
const lookMs = 15_000;
const restartMs = 2_000;

export class BrokerActor {
  readonly #setup: BrokerSetup;
  readonly #config: BrokerConfig;
  mesh: Mesh = { id: "", name: "" };
  #context: BrokerContext | undefined;

  constructor(setup: BrokerSetup) {
    this.#setup = setup;
    this.#config = configOf(setup.settings);
  }

  get host(): Host {
    return this.#setup.host;
  }

  get disk(): Disk {
    return this.#setup.disk;
  }

  /** Of the last life that got so far, for those who look at the stores from outside. */
  get context(): BrokerContext {
    if (this.#context === undefined) throw new Error("the broker never lived");
    return this.#context;
  }

  get messages(): MessagesStore {
    return this.context.messages;
  }

  start(): void {
    const { host, disk, settings, redis, verifier, plants } = this.#setup;
    const life = host.begin();
    const parts = { life, disk, settings, config: this.#config, redis, verifier, plants };
    openServices(parts)
      .then(
        (context) => {
          if (life.alive) this.#serve(life, context);
        },
        (error: unknown) => {
          if (!(error instanceof StorageError)) throw error;
          this.#startAgain(life, error.kind);
        },
      )
      .catch(host.surroundings.onBug);
  }

  /** A disk that refuses what a start reads or writes ends the start; the operator starts it again. */
  #startAgain(life: Life, why: string): void {
    const { host } = this.#setup;
    if (!life.alive) return;
    host.note(`start failed: ${why}`);
    life.end();
    host.surroundings.scheduler.after(restartMs, () => {
      if (host.life === life) this.start();
    });
  }

  #serve(life: Life, context: BrokerContext): void {
    this.#context = context;
    const right = createOperationRunner(context, inputs);
    const run = this.#setup.plants.run?.(right, this.disk) ?? right;
    const heard: RunOperation = async (type, caller, input) => {
      const tell = this.#setup.edge()(type, caller.member.pubkey, input);
      const answer = await run(type, caller, input);
      if (life.alive) tell(answer);
      return answer;
    };
    const served: Served = { life, mesh: this.mesh, context, run: heard };
    this.#setup.network.listen({ life, accept: (end) => new BrokerConnection(served, end) });
    this.#workRegularly(life, context);
  }

  #workRegularly(life: Life, { messages, housekeeping, registrar, watchers, connections, nowMs }: BrokerContext): void {
    const regularly = (everyMs: number, work: () => Promise<unknown>) => {
      const next = () => {
        // What the disk refuses is done another time.
        void work()
          .catch(quiet)
          .then(() => life.setTimer(everyMs, next));
      };
      life.setTimer(everyMs * life.chance.random(), next);
    };
    regularly(regularMs, async () => {
      while (await housekeeping.sweepNext());
    });
    regularly(indexMs, async () => {
      while (await messages.search.indexNext(nowMs()));
      while (await messages.housekeeping.countNext());
    });
    regularly(registrarMs, async () => {
      while (await registrar.tidyUp());
    });
    regularly(lookMs, async () => {
      if (watchers.size > 0) await watchers.look();
      if (connections instanceof SharedConnections) this.#sweepDeliveries(connections);
    });
  }

  #sweepDeliveries(connections: SharedConnections): void {
    const waiting = this.disk.sql(
      "SELECT 1 FROM delivery_queue WHERE mesh_id = ? AND recipient_pubkey = ? AND settled_at IS NULL LIMIT 1",
    );
    for (const recipient of connections.recipients()) {
      if (waiting.get(recipient.meshId, recipient.pubkey) !== undefined) connections.wakeHere(recipient);
    }
  }
}

function configOf(settings: Settings): BrokerConfig {
  const { dedupeDays, messageDays, rateLimit } = settings;
  return {
    listen: { host: "simulated", port: 1 },
    publicUrl: undefined,
    tlsCert: undefined,
    tlsKey: undefined,
    plainHttp: false,
    store: { kind: "sqlite", path: "simulated" },
    redisUrl: undefined,
    limiterOpen: false,
    adminTokenFile: undefined,
    deliverySweepSeconds: undefined,
    rateLimit,
    commitRateLimit: { limit: 1_073_741_824, windowSeconds: 60 },
    inlineBytes: limits.inlineBytes,
    dedupe:
      dedupeDays === undefined
        ? { mode: "permanent" }
        : { mode: "retention_scoped", dedupe_retention_days: dedupeDays },
    messageRetention: { days: messageDays },
    nightlyCheck: { minute: undefined },
    connectionPolicy: settings.connectionPolicy,
    strangersPerAddress: 1,
    meshLimits: {},
    webhookAllowPrivate: false,
    webhookTimeoutMs: 1_000,
    webhookAttempts: 1,
    webhookBackoffMinMs: 1_000,
    webhookBackoffMaxMs: 1_000,
    registrarVerifier: undefined,
    logLevel: "silent",
    configFile: undefined,
    failpoints: "",
  };
}
