// A daemon as an actor: the real wiring of all its services over disks that survive it. Only its link, its clock and
// its chance are simulated. Local programs call the routes of its API directly; one that waits when it dies is never
// answered. A planted fault may stand between it and its link or its stores.
import type { MeshConfig } from "@claudemesh/client/home";
import type { Link } from "@claudemesh/client/internal/link-contract";
import type { MemberKeys } from "@claudemesh/client/keys";
import type { Sealer } from "@claudemesh/client/seal";
import type { DaemonConfig } from "@claudemesh/daemon/testing/config";
import { inboxMigrations, outboxMigrations } from "@claudemesh/daemon/testing/databases";
import { setRebuildAfter } from "@claudemesh/daemon/testing/rebuild-mark";
import { type LocalApi, routes } from "@claudemesh/daemon/testing/routes";
import { toMeshError } from "@claudemesh/daemon/testing/storage-failure";
import { createStores, type DaemonStores } from "@claudemesh/daemon/testing/stores";
import { createSystemClock } from "@claudemesh/daemon/testing/system-clock";
import { wireServices } from "@claudemesh/daemon/testing/wire-services";
import { defaultBackoff, defaultReconnect } from "@claudemesh/protocol/messages/backoff";
import { StorageError } from "@claudemesh/storage/errors";
import type { Settings } from "../core/plan.ts";
import { noFailpoints } from "./broker-services.ts";
import { createDisk, type Disk } from "./disk.ts";
import type { Host } from "./host.ts";
import { openSimulatedLink } from "./link.ts";
import type { Network, Wire } from "./network.ts";

/** What a planted fault may replace. */
export type DaemonPlant = {
  readonly stores?: (stores: DaemonStores, outbox: Disk) => DaemonStores;
  readonly link?: (link: Link) => Link;
};

export type DaemonSetup = {
  readonly host: Host;
  readonly network: Network;
  readonly wire: Wire;
  readonly settings: Settings;
  readonly mesh: MeshConfig;
  readonly keys: MemberKeys;
  readonly sealer: Sealer;
  readonly plant?: DaemonPlant;
};

export type Answer = { readonly status: number; readonly body: Readonly<Record<string, unknown>> };
/** `away`: the daemon was not up. `unanswered`: it died first, and anything may be true. */
export type CallEnd = Answer | "away" | "unanswered";

export type Call = {
  readonly body?: object;
  readonly params?: object;
  readonly query?: object;
};

const quiet = () => undefined;
const restartMs = 5_000;
const log = { debug: quiet, info: quiet, warn: quiet, error: quiet };

export class DaemonActor {
  readonly #setup: DaemonSetup;
  readonly outbox: Disk;
  inbox: Disk;
  readonly #lost: Disk[] = [];
  #api: LocalApi | undefined;
  readonly #waiting = new Set<() => void>();
  /** Called with every inbox disk that replaces another. */
  onNewInbox: (disk: Disk) => void = quiet;
  /** Why it ended by itself, where it did. */
  fatal: string | undefined;

  static async create(setup: DaemonSetup): Promise<DaemonActor> {
    const outbox = await createDisk("outbox", outboxMigrations());
    return new DaemonActor(setup, outbox, await createDisk("inbox", inboxMigrations()));
  }

  private constructor(setup: DaemonSetup, outbox: Disk, inbox: Disk) {
    this.#setup = setup;
    this.outbox = outbox;
    this.inbox = inbox;
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

  get api(): LocalApi | undefined {
    return this.#api;
  }

  start(): void {
    const { host, settings, plant } = this.#setup;
    const life = host.begin();
    life.onEnd(() => {
      this.#api = undefined;
      for (const giveUp of [...this.#waiting]) giveUp();
    });
    const clock = createSystemClock(host.timeSources(life));
    const opened = createStores(
      { db: this.outbox, schema: 0 },
      { db: this.inbox, schema: 0 },
      clock,
      noFailpoints,
      life.chance,
    );
    const stores = plant?.stores?.(opened, this.outbox) ?? opened;
    const { network, wire, mesh, keys, sealer } = this.#setup;
    const config = configOf(settings);
    const starting = wireServices({
      config,
      settings: { current: config },
      mesh,
      keys,
      clock,
      log,
      failpoints: noFailpoints,
      stores,
      chance: life.chance,
      sealer,
      openLink: (events) => {
        const link = openSimulatedLink({ life, network, wire, pubkey: this.pubkey, kind: "daemon", ...events });
        return plant?.link?.(link) ?? link;
      },
      onFatal: ({ reason }) => {
        this.fatal = reason;
        host.note(`fatal: ${reason}`);
      },
    });
    starting
      .then(
        (services) => {
          if (!life.alive) return;
          this.#api = services.localApi({ version: "simulated", rotateToken: () => "" } as never);
          services.start();
        },
        (error: unknown) => {
          if (!(error instanceof StorageError)) throw error;
          // A disk that refuses the first write ends the start; the operator starts it again.
          host.note(`start failed: ${error.kind}`);
          life.end();
          host.surroundings.scheduler.after(restartMs, () => {
            if (host.life === life) this.start();
          });
        },
      )
      .catch(host.surroundings.onBug);
  }

  /** The inbox is gone, as when a damaged one was set aside; the next start begins an empty one. */
  async loseInbox(): Promise<void> {
    const fresh = await createDisk("inbox", inboxMigrations());
    fresh.transaction(() => setRebuildAfter(fresh, 0));
    this.#lost.push(this.inbox);
    this.inbox = fresh;
    this.onNewInbox(fresh);
  }

  get disks(): readonly Disk[] {
    return [this.outbox, this.inbox, ...this.#lost];
  }

  /** As a local program asks over the socket. Never rejects. */
  call(method: "GET" | "POST", url: string, call: Call = {}): Promise<CallEnd> {
    return this.ask((api) => {
      const route = routes.find((each) => each.method === method && each.url === url);
      if (route === undefined || !("handle" in route)) throw new Error(`there is no route ${method} ${url}`);
      const request = { headers: {}, body: {}, params: {}, query: {}, ...call };
      return Promise.resolve(route.handle(api, request as never, () => undefined)) as Promise<Answer>;
    });
  }

  ask(question: (api: LocalApi) => Promise<Answer>): Promise<CallEnd> {
    const { life } = this.host;
    const api = this.#api;
    if (life?.alive !== true || api === undefined) return Promise.resolve("away");
    return new Promise((resolve) => {
      const end = (answer: CallEnd) => {
        this.#waiting.delete(giveUp);
        resolve(life.alive ? answer : "unanswered");
      };
      const giveUp = () => end("unanswered");
      this.#waiting.add(giveUp);
      // Once more round the loop, as a request from outside comes.
      life.nextTurn(() => {
        new Promise<Answer>((answered) => answered(question(api))).then(end, (error: unknown) => {
          const refusal = toMeshError(error);
          end({ status: refusal.status, body: { ...refusal.toBody(), cause: String(refusal.cause ?? "") } });
        });
      });
    });
  }
}

function configOf(settings: Settings): DaemonConfig {
  return {
    outbox: {
      backoff: defaultBackoff,
      requestTimeoutMs: settings.requestTimeoutMs,
      maxBytes: 2 ** 31,
      maxAgeHoursOverride: undefined,
      doneRetentionDays: settings.outboxDays,
    },
    reconnect: { backoff: defaultReconnect },
    ipc: {
      tcpEnabled: false,
      maxInFlight: 64,
      maxStreams: 32,
      maxBodyBytes: 1_048_576,
      allowedOrigins: [],
      publicHealthCheck: false,
    },
    inbox: { retentionDays: settings.inboxDays },
    clone: { policy: "allow" },
  };
}
