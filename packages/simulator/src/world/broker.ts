// The broker as an actor: the real operations, registry, housekeeping and stores on a disk that survives it. Only its
// sockets and its clock are simulated. A planted fault may stand between it and its stores.
import type { BrokerConfig } from "@claudemesh/broker/config";
import { ConnectionRegistry } from "@claudemesh/broker/connection-registry";
import type { BrokerContext } from "@claudemesh/broker/context";
import { Housekeeping } from "@claudemesh/broker/housekeeping";
import { createOperationRunner } from "@claudemesh/broker/run-operation";
import type { Mesh } from "@claudemesh/members/ports";
import { createSqliteMembersStore, membersMigrations } from "@claudemesh/members/sqlite";
import type { MessagesStore } from "@claudemesh/messages/ports";
import type { Limiter } from "@claudemesh/messages/ports/limiter";
import { limitAccepts } from "@claudemesh/messages/services/limit-accepts";
import { createSqliteMessagesStore, messagesMigrations } from "@claudemesh/messages/sqlite";
import { createUuidV7Generator } from "@claudemesh/protocol/ids";
import { limits } from "@claudemesh/protocol/messages/limits";
import { failpointNames } from "@claudemesh/storage/failpoint-names";
import { createFailpoints, parseFailpoints } from "@claudemesh/storage/failpoints";
import { GroupCommit } from "@claudemesh/storage/group-commit";
import type { Settings } from "../core/plan.ts";
import { BrokerConnection, type Served } from "./broker-connection.ts";
import { createDisk, type Disk } from "./disk.ts";
import type { Host, Life } from "./host.ts";
import type { Network } from "./network.ts";

export type BrokerSetup = {
  readonly host: Host;
  readonly network: Network;
  readonly settings: Settings;
  /** What stands between operations and stores; the stores themselves unless a fault is planted. */
  readonly plant?: (stores: MessagesStore, disk: Disk) => MessagesStore;
};

const regularMs = 600_000;
const indexMs = 60_000;
const quiet = () => undefined;

export const noFailpoints = createFailpoints(parseFailpoints("", failpointNames));

export class BrokerActor {
  readonly #setup: BrokerSetup;
  readonly #config: BrokerConfig;
  readonly disk: Disk;
  /** Away: new ids are refused. Slow: they wait between their look-up and their transaction. */
  limiter = { troubledUntilMs: 0, slowMs: 0 };
  mesh: Mesh = { id: "", name: "" };
  #messages: MessagesStore | undefined;

  static async create(setup: BrokerSetup): Promise<BrokerActor> {
    return new BrokerActor(setup, await createDisk("broker", [...membersMigrations(), ...messagesMigrations()]));
  }

  private constructor(setup: BrokerSetup, disk: Disk) {
    this.#setup = setup;
    this.disk = disk;
    this.#config = configOf(setup.settings);
  }

  get host(): Host {
    return this.#setup.host;
  }

  /** Of the life of the moment, for those who look at the store from outside. */
  get messages(): MessagesStore {
    if (this.#messages === undefined) throw new Error("the broker never lived");
    return this.#messages;
  }

  start(): void {
    const { host, network } = this.#setup;
    const life = host.begin();
    const commit = new GroupCommit(this.disk, { nextTurn: life.nextTurn });
    const members = createSqliteMembersStore(this.disk, commit);
    this.#messages = this.#openMessages(life, commit);
    const connections = new ConnectionRegistry();
    const context = this.#createContext(life, members, this.#messages, connections);
    const served: Served = { life, mesh: this.mesh, context, connections, run: createOperationRunner(context) };
    network.listener = { life, accept: (end) => new BrokerConnection(served, end) };
    this.#workRegularly(life, context);
  }

  #openMessages(life: Life, commit: GroupCommit): MessagesStore {
    const { settings, host, plant } = this.#setup;
    const stores = createSqliteMessagesStore(this.disk, commit, settings.rateLimit, { saw: quiet });
    const limiter: Limiter = {
      consume: async () => {
        const { troubledUntilMs, slowMs } = this.limiter;
        if (host.surroundings.scheduler.nowMs >= troubledUntilMs) return { type: "ok", spent: false };
        if (slowMs === 0) return { type: "unavailable" };
        await new Promise<void>((resolve) => life.setTimer(life.chance.random() * slowMs, resolve));
        return { type: "ok", spent: false };
      },
      available: async () => true,
    };
    const options = { whenUnavailable: "refuse", onPassedUncounted: quiet, onSpentThenRefused: quiet } as const;
    const messages = { ...stores, accepts: limitAccepts(stores.accepts, limiter, options) };
    return plant?.(messages, this.disk) ?? messages;
  }

  #createContext(
    life: Life,
    members: BrokerContext["members"],
    messages: MessagesStore,
    connections: ConnectionRegistry,
  ): BrokerContext {
    const { host } = this.#setup;
    const log = { debug: quiet, info: quiet, warn: quiet, error: quiet } as unknown as BrokerContext["log"];
    const metrics: BrokerContext["metrics"] = {
      answered: quiet,
      reused: quiet,
      swept: quiet,
      checked: quiet,
      webhookTried: quiet,
      onceAnswered: quiet,
      registrarAnswered: quiet,
      registrarVerified: quiet,
      registrarOpen: quiet,
      committed: quiet,
      synced: quiet,
      sessionRevoked: quiet,
      contentType: "",
      render: async () => "",
    };
    const nowMs = host.wallMs;
    const config = this.#config;
    return {
      config,
      members,
      messages,
      connections,
      checkReady: async () => undefined,
      failpoints: noFailpoints,
      metrics,
      housekeeping: new Housekeeping({
        config,
        messages,
        spaces: { sweepSessions: async () => 0 },
        metrics,
        log,
        nowMs,
      }),
      once: notSimulated("once"),
      registrar: notSimulated("the registrar"),
      spaces: notSimulated("spaces"),
      watchers: notSimulated("watchers of spaces"),
      log,
      nowMs,
      nextId: createUuidV7Generator({ nowMs, randomBytes: life.chance.randomBytes }),
      adminToken: "",
      publicUrl: () => "",
    };
  }

  #workRegularly(life: Life, { messages, housekeeping, nowMs }: BrokerContext): void {
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
  }
}

/** Members of this mesh send messages and nothing else; whoever asks for more hears of it. */
function notSimulated<T extends object>(what: string): T {
  const refuse = () => {
    throw new Error(`${what} is not simulated`);
  };
  return new Proxy({}, { get: refuse }) as T;
}

function configOf(settings: Settings): BrokerConfig {
  const { dedupeDays, messageDays, rateLimit } = settings;
  return {
    listen: { host: "simulated", port: 1 },
    publicUrl: undefined,
    tlsCert: undefined,
    tlsKey: undefined,
    store: { kind: "sqlite", path: "simulated" },
    redisUrl: undefined,
    limiterOpen: false,
    adminTokenFile: undefined,
    deliverySweepSeconds: undefined,
    rateLimit,
    inlineBytes: limits.inlineBytes,
    dedupe:
      dedupeDays === undefined
        ? { mode: "permanent" }
        : { mode: "retention_scoped", dedupe_retention_days: dedupeDays },
    messageRetention: { days: messageDays },
    nightlyCheck: { minute: undefined },
    connectionPolicy: settings.connectionPolicy,
    webhookAllowPrivate: false,
    webhookTimeoutMs: 1_000,
    webhookAttempts: 1,
    webhookBackoffMinMs: 1_000,
    webhookBackoffMaxMs: 1_000,
    registrarVerifier: undefined,
    logLevel: "silent",
    failpoints: "",
  };
}
