// The services of one life of a broker, wired as the server wires them: real stores on the disk that survives it, real
// operations, watchers, registrar and housekeeping. Limiter trouble and the verifier's moods are what is simulated.

import type { BrokerConfig } from "@claudemesh/broker/config";
import { type BrokerRegistrar, openRegistrar } from "@claudemesh/broker/testing/broker-registrar";
import { ConnectionRegistry } from "@claudemesh/broker/testing/connection-registry";
import type { BrokerContext } from "@claudemesh/broker/testing/context";
import { Housekeeping } from "@claudemesh/broker/testing/housekeeping";
import { MeshCaps } from "@claudemesh/broker/testing/mesh-caps";
import type { RunOperation } from "@claudemesh/broker/testing/run-operation";
import { SharedConnections } from "@claudemesh/broker/testing/shared-connections";
import { createSpacePorts } from "@claudemesh/broker/testing/space-ports";
import { SpaceWatchers } from "@claudemesh/broker/testing/space-watchers";
import { createSqliteSpaces, sqliteRules } from "@claudemesh/broker/testing/sqlite-backend";
import { verifySignature } from "@claudemesh/members/credentials";
import { MeshSettingsService } from "@claudemesh/members/services/mesh-settings";
import { createSqliteMembersStore } from "@claudemesh/members/sqlite";
import type { MessagesStore } from "@claudemesh/messages/ports";
import type { Limiter } from "@claudemesh/messages/ports/limiter";
import { limitAccepts } from "@claudemesh/messages/services/limit-accepts";
import { spendUnit } from "@claudemesh/messages/services/spend-unit";
import { createSqliteMessagesStore } from "@claudemesh/messages/sqlite";
import { createSqliteByteLedger } from "@claudemesh/messages/sqlite-byte-ledger";
import { createSqliteLimiter } from "@claudemesh/messages/sqlite-limiter";
import { createUuidV7Generator } from "@claudemesh/protocol/ids";
import type { OnceStore } from "@claudemesh/registrar/once-ports";
import { createSqliteOnceStore } from "@claudemesh/registrar/once-sqlite";
import type { RegistrarStore } from "@claudemesh/registrar/ports";
import { createSqliteRegistrarStore } from "@claudemesh/registrar/sqlite";
import type { SpacesStore } from "@claudemesh/spaces/ports";
import { failpointNames } from "@claudemesh/storage/failpoint-names";
import { createFailpoints, parseFailpoints } from "@claudemesh/storage/failpoints";
import { GroupCommit } from "@claudemesh/storage/group-commit";
import type { Settings } from "../core/plan.ts";
import type { Disk } from "./disk.ts";
import type { Life } from "./host.ts";
import type { SignalBus } from "./signal-bus.ts";

/** What a planted fault may replace. */
export type StorePlants = {
  readonly broker?: (stores: MessagesStore, disk: Disk) => MessagesStore;
  readonly spaces?: (store: SpacesStore, disk: Disk) => SpacesStore;
  readonly registrar?: (store: RegistrarStore, disk: Disk) => RegistrarStore;
  readonly once?: (store: OnceStore, disk: Disk) => OnceStore;
  /** What is asked, before any of it is looked at. */
  readonly run?: (run: RunOperation, disk: Disk) => RunOperation;
};

/** What is outside of every broker: Redis and the program that verifies. */
export type Redis = { troubledUntilMs: number; slowMs: number; readonly bus: SignalBus };
export type VerifierMood = { silentUntilMs: number };

export type Parts = {
  readonly life: Life;
  readonly disk: Disk;
  readonly settings: Settings;
  readonly config: BrokerConfig;
  readonly redis: Redis;
  readonly verifier: VerifierMood;
  readonly plants: StorePlants;
};

export const quiet = () => undefined;
export const noFailpoints = createFailpoints(parseFailpoints("", failpointNames));
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
/** Registrations of these runs do not pass. */
const failingRun = /-bad$/;
const verifyMs = 2_000;

/** Rejects where the store does. */
export async function openServices(parts: Parts): Promise<BrokerContext> {
  const { life, disk, config, plants } = parts;
  const nowMs = life.host.wallMs;
  const nextId = createUuidV7Generator({ nowMs, randomBytes: life.chance.randomBytes });
  const commit = new GroupCommit(disk, { nextTurn: life.nextTurn });
  const messages = openMessages(parts, commit);
  const spacesStore = createSqliteSpaces(disk, commit);
  const spaces = plants.spaces?.(spacesStore, disk) ?? spacesStore;
  const registrarStore = createSqliteRegistrarStore(disk, commit);
  const connections = connectionsOf(parts, nextId);
  const watchers = new SpaceWatchers({ store: spaces, connections, onFailure: quiet, nextTurn: life.nextTurn });
  const onceStore = createSqliteOnceStore(disk, commit);
  const sendLimits = {
    limiter: inFront(limiterOf(parts), createSqliteLimiter(commit, config.rateLimit)),
    limits: { whenUnavailable: "refuse", onPassedUncounted: quiet } as const,
  };
  const members = createSqliteMembersStore(disk, commit);
  const settings = new MeshSettingsService({ store: members, nowMs, ceilings: config.meshLimits });
  const spaceSurroundings = {
    config,
    connections,
    watchers,
    takesUnsealed: settings.takesUnsealed,
    nowMs,
    nextId,
    randomBytes: life.chance.randomBytes,
    nextTurn: life.nextTurn,
  };
  return {
    config,
    members,
    settings,
    caps: new MeshCaps({ members, messages, spaces, settings, nowMs }),
    messages,
    once: plants.once?.(onceStore, disk) ?? onceStore,
    registrar: await openSimulatedRegistrar(parts, plants.registrar?.(registrarStore, disk) ?? registrarStore, nextId),
    spaces: createSpacePorts(
      { spaces, messages, sendLimits, byteLedger: createSqliteByteLedger(commit) },
      { ...spaceSurroundings, onLedgerFailure: quiet },
    ),
    admitNew: async (meshId, id) => {
      const refusal = await spendUnit(sendLimits, meshId, id, nowMs());
      if (refusal !== undefined) throw refusal;
    },
    watchers,
    connections,
    strangers: { know: quiet, roomOf: () => undefined },
    checkReady: async () => ({ store: "ok", limiter: "ok", refusal: undefined }),
    failpoints: noFailpoints,
    metrics,
    housekeeping: new Housekeeping({ config, messages, spaces, otherRules: sqliteRules(disk), metrics, log, nowMs }),
    log,
    nowMs,
    nextId,
    adminToken: "",
    key: { publicKey: "", prove: () => "", proveOverHttp: () => "" },
    pinnedCertificate: () => undefined,
    publicUrl: () => "",
    brokerUrls: () => [],
  };
}

function openMessages(parts: Parts, commit: GroupCommit): MessagesStore {
  const { disk, config, plants } = parts;
  const stores = createSqliteMessagesStore(disk, commit, config.rateLimit);
  const options = { whenUnavailable: "refuse", onPassedUncounted: quiet, onSpentThenRefused: quiet } as const;
  const messages = { ...stores, accepts: limitAccepts(stores.accepts, limiterOf(parts), options) };
  return plants.broker?.(messages, disk) ?? messages;
}

/** Counts nothing itself: away, new ids are refused; slow, they wait between their look-up and their transaction. */
function limiterOf({ life, redis }: Parts): Limiter {
  return {
    consume: async () => {
      const { troubledUntilMs, slowMs } = redis;
      if (life.host.surroundings.scheduler.nowMs >= troubledUntilMs) return { type: "ok", spent: false };
      if (slowMs === 0) return { type: "unavailable" };
      await new Promise<void>((resolve) => life.setTimer(life.chance.random() * slowMs, resolve));
      return { type: "ok", spent: false };
    },
    available: async () => true,
  };
}

function inFront(first: Limiter, second: Limiter): Limiter {
  return {
    consume: async (...budget) => {
      const outcome = await first.consume(...budget);
      return outcome.type === "ok" ? second.consume(...budget) : outcome;
    },
    available: async () => true,
  };
}

function connectionsOf({ life, settings, redis }: Parts, nextStamp: () => string): ConnectionRegistry {
  if ((settings.brokers ?? 1) < 2) return new ConnectionRegistry();
  const shared = new SharedConnections({ nextStamp, publish: (signal) => redis.bus.publish(life, signal) });
  redis.bus.join({ life, onSignal: (signal) => shared.receive(signal), onListening: () => shared.announceAgain() });
  return shared;
}

/** A pass takes its time, so that a death finds registrations that are committed and not verified. */
function openSimulatedRegistrar(
  { life, config, verifier }: Parts,
  store: RegistrarStore,
  nextId: () => string,
): Promise<BrokerRegistrar> {
  const { scheduler } = life.host.surroundings;
  return openRegistrar({
    store,
    config,
    nowMs: life.host.wallMs,
    nextId,
    metrics,
    log,
    sources: {
      monotonicMs: () => scheduler.nowMs,
      randomBytes: life.chance.randomBytes,
      setTimer: (delayMs, callback) => life.setTimer(delayMs, callback),
      // Threads beside the event loop would finish in an order of their own.
      verifySignature: async (...question) => verifySignature(...question),
      verifier: {
        name: "simulated",
        verify: async (row) => {
          await new Promise<void>((resolve) => life.setTimer(life.chance.random() ** 4 * verifyMs, resolve));
          if (scheduler.nowMs < verifier.silentUntilMs) return { type: "inconclusive", reason: "no answer" };
          const fails = failingRun.test(String(row.run_id));
          return fails ? { type: "failed", reason: "this run does not pass" } : { type: "passed" };
        },
      },
    },
  });
}
