// Starts one broker: opens the store, wires services to transports, listens, and stops in order. No rules here.
import { randomBytes } from "node:crypto";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Server as TlsServer } from "node:tls";
import { createHttpServer, type TlsIdentity } from "@claudemesh/http/server";
import { Strangers } from "@claudemesh/http/strangers";
import { tlsBounds } from "@claudemesh/http/tls-bounds";
import { MeshSettingsService } from "@claudemesh/members/services/mesh-settings";
import { spendUnit } from "@claudemesh/messages/services/spend-unit";
import { errorCatalogue } from "@claudemesh/protocol/error-catalogue";
import { createUuidV7Generator } from "@claudemesh/protocol/ids";
import { limits } from "@claudemesh/protocol/messages/limits";
import { isInClear } from "@claudemesh/protocol/wire/in-clear";
import { failpointNames } from "@claudemesh/storage/failpoint-names";
import { createFailpoints, parseFailpoints } from "@claudemesh/storage/failpoints";
import { type Logger, pino } from "pino";
import { ensureAdminToken } from "./admin-token.ts";
import { startBackgroundWork } from "./background/background-work.ts";
import { BrokerDirectory } from "./background/broker-directory.ts";
import { Housekeeping } from "./background/housekeeping.ts";
import { brokerKeyOf } from "./broker-key.ts";
import type { BrokerConfig } from "./config.ts";
import type { BrokerContext } from "./context.ts";
import { createBrokerMetrics } from "./metrics.ts";
import { MeshCaps } from "./operations/mesh-caps.ts";
import { createOperationRunner } from "./operations/run-operation.ts";
import { isUnspecified, reachableHost } from "./public-url.ts";
import { type BrokerRegistrar, openRegistrar } from "./registrar/broker-registrar.ts";
import { type JoinedBrokers, joinBrokers } from "./signals/join-brokers.ts";
import type { Backend } from "./stores/backend.ts";
import { openBackend } from "./stores/open-backend.ts";
import { createQuietLog } from "./stores/quiet-log.ts";
import { createReadiness, type Readiness } from "./stores/readiness.ts";
import type { TimeSources } from "./stores/store-clock.ts";
import { createSpacePorts } from "./sync/space-ports.ts";
import { SpaceWatchers } from "./sync/space-watchers.ts";
import { readTlsIdentity, selfSignedFingerprint } from "./tls-identity.ts";
import { registerAdminRoutes } from "./transport/admin-routes.ts";
import type { ConnectionRegistry } from "./transport/connection-registry.ts";
import { registerHealthRoutes } from "./transport/health-routes.ts";
import { registerHttpRoutes } from "./transport/http-routes.ts";
import { registerDescription } from "./transport/openapi.ts";
import { attachSocketServer } from "./transport/socket-server.ts";

export type RunningBroker = {
  /** http://host:port or https://host:port; WebSockets connect to the same address. */
  readonly url: string;
  /** What invites say: `--public-url`, else the address above, or one of this host that others can reach. */
  readonly publicUrl: string;
  readonly adminTokenFile: string;
  /** By which members know this broker, in hex. */
  readonly brokerKey: string;
  /** The path of the SQLite file, or the address of the database without its password. */
  readonly storePath: string;
  /** Whether this broker's store holds the mesh with this id. */
  readonly hasMesh: (meshId: string) => Promise<boolean>;
  /** Reads certificate and key again, for connections from now on; what cannot be used is logged and changes nothing. */
  readonly reloadTls: () => void;
  /** Stops accepting, finishes what is in flight, flushes, closes sockets with 1012. Within 10 s. */
  readonly stop: () => Promise<void>;
};

const requestsInFlightMax = 4_096;
/** Sockets and HTTP together; the sockets have a bound of their own below it. */
const connectionsMax = 16_384;
/** Not taken yet: a burst of peers that come back together is let in one by one, and a busy loop takes its time. */
const connectionsWaitingMax = 4_096;
const limiterSweepIntervalMs = 10_000;
const limiterSweepRows = 5_000;
const stopGraceMs = 8_000;
/** Between checks for commits whose notice was lost, where no other broker can have made them. */
const lookIntervalMs = 5_000;

/** How often a broker says that it lives: to the others on its store, or to its own next start. */
const announceBesideMs = 5_000;
const announceAloneMs = 30_000;

export type StartBrokerOptions = {
  /** How long a stop leaves HTTP connections open for what is on its way to them. */
  readonly lingerMs?: number;
  /** The clocks to use, where the store is this broker's alone; the system's own where absent. */
  readonly time?: TimeSources;
};

export async function startBroker(config: BrokerConfig, options: StartBrokerOptions = {}): Promise<RunningBroker> {
  const { lingerMs = 0, time } = options;
  const log = pino({ level: config.logLevel, base: null, name: "broker" }, pino.destination({ dest: 2, sync: true }));
  const failpoints = createFailpoints(parseFailpoints(config.failpoints, failpointNames));
  if (failpoints.active) log.warn({ event: "failpoints_active" }, `FAULT POINTS ARE SET: ${failpoints.describe()}`);
  const backend = await openBackend({ config, failpoints, log, ...(time === undefined ? {} : { time }) });
  let joined: JoinedBrokers | undefined;
  let registrar: BrokerRegistrar | undefined;
  let directory: BrokerDirectory | undefined;
  try {
    const { adminTokenFile, location } = backend;
    const key = brokerKeyOf(backend.brokerSeed);
    const { nowMs } = backend;
    const nextId = createUuidV7Generator({ nowMs, randomBytes });
    joined = await joinBrokers(backend.sideBySide, { nextId, log });
    const { connections } = joined;
    const watchers = createWatchers(backend, connections, log);
    const announced = createDirectory(backend, config, connections, nextId, log);
    directory = announced;
    const checkReady = createCheckReady(backend, announced, config, log);
    const strangers = new Strangers(config.strangersPerAddress);
    const metrics = createBrokerMetrics({
      strangers,
      counts: backend.counts,
      checkReady,
      connected: () => connections.size,
      signalsForged: joined.forged,
      sessionsHeld: () => watchers.size,
      webhookCounts: () => backend.messages.webhooks.counts(),
      onFailure: createQuietLog((error, times) =>
        log.error({ event: "metrics_incomplete", err: error, times }, "counting rows for /metrics failed"),
      ),
    });
    const opened = await openRegistrar({ store: backend.registrar, config, nowMs, nextId, metrics, log });
    registrar = opened;
    const broker = createContext(config, backend, connections, {
      failpoints,
      registrar,
      watchers,
      strangers,
      metrics,
      log,
      nextId,
      adminToken: ensureAdminToken(adminTokenFile),
      checkReady,
      key,
      brokerUrls: announced.urls,
    });
    await announced.start();
    const { url, reloadTls, stop } = await serve(broker, { location, lingerMs, strangers });
    broker.watchers.start(backend.sideBySide?.sweepIntervalMs ?? lookIntervalMs);
    const { leave } = joined;
    return {
      url,
      publicUrl: broker.publicUrl(),
      adminTokenFile,
      brokerKey: key.publicKey,
      storePath: location,
      reloadTls,
      hasMesh: async (meshId) => (await broker.members.findMesh(meshId))?.id === meshId,
      stop: async () => {
        await stop();
        await broker.watchers.stop();
        await announced.stop();
        await leave();
        await opened.close();
        await backend.close();
      },
    };
  } catch (error) {
    await directory?.stop();
    await joined?.leave();
    await registrar?.close();
    await backend.close();
    throw error;
  }
}

function createDirectory(
  { brokers, nowMs, sideBySide }: Backend,
  { publicUrl }: BrokerConfig,
  connections: ConnectionRegistry,
  nextId: () => string,
  log: Logger,
): BrokerDirectory {
  const isAlone = sideBySide === undefined;
  return new BrokerDirectory({
    store: brokers,
    brokerId: isAlone ? "alone" : nextId(),
    publicUrl,
    nowMs,
    intervalMs: isAlone ? announceAloneMs : announceBesideMs,
    onFailure: createQuietLog((error, times) =>
      log.warn({ event: "announce_failed", err: error, times }, "the store did not take this broker's row"),
    ),
    onChange: (brokers) => {
      log.info({ event: "brokers_changed", brokers }, "the brokers on this store changed");
      connections.brokersChanged(brokers);
    },
  });
}

function createCheckReady(
  backend: Backend,
  directory: BrokerDirectory,
  { limiterOpen }: BrokerConfig,
  log: Logger,
): () => Promise<Readiness> {
  return createReadiness({
    writeStore: async () => {
      await directory.announce();
      await backend.proveRoom();
    },
    writeLimiter: backend.writeLimiter,
    limiterOpen,
    onFailure: createQuietLog((error, times) =>
      log.warn({ event: "not_ready", err: error, times }, "store or limiter take no writes"),
    ),
  });
}

function createWatchers(backend: Backend, connections: ConnectionRegistry, log: Logger): SpaceWatchers {
  const onFailure = createQuietLog((error, times) =>
    log.error({ event: "space_watch_failed", err: error, times }, "looking for changes of spaces failed"),
  );
  return new SpaceWatchers({ store: backend.spaces, connections, onFailure });
}

type WiredBroker = BrokerContext & {
  readonly setUrl: (url: string) => void;
  readonly setTls: (tls: TlsIdentity) => void;
};

function createContext(
  config: BrokerConfig,
  backend: Backend,
  connections: ConnectionRegistry,
  rest: Pick<
    BrokerContext,
    | "failpoints"
    | "registrar"
    | "watchers"
    | "strangers"
    | "metrics"
    | "log"
    | "nextId"
    | "adminToken"
    | "checkReady"
    | "key"
    | "brokerUrls"
  >,
): WiredBroker {
  let url = "";
  let pinnedCertificate: string | undefined;
  const { messages } = backend;
  const { nowMs } = backend;
  const { watchers, nextId } = rest;
  const settings = new MeshSettingsService({ store: backend.members, nowMs, ceilings: config.meshLimits });
  const onLedgerFailure = createQuietLog((error, times) =>
    rest.log.warn({ event: "byte_ledger_unavailable", err: error, times }, "commits are counted by this broker alone"),
  );
  const spaces = createSpacePorts(backend, {
    config,
    connections,
    watchers,
    takesUnsealed: settings.takesUnsealed,
    nowMs,
    nextId,
    onLedgerFailure,
  });
  return {
    ...rest,
    config,
    members: backend.members,
    settings,
    caps: new MeshCaps({ ...backend, settings, nowMs }),
    messages,
    once: backend.once,
    spaces,
    admitNew: async (meshId, id) => {
      const refusal = await spendUnit(backend.sendLimits, meshId, id, nowMs());
      if (refusal !== undefined) throw refusal;
    },
    connections,
    housekeeping: new Housekeeping({
      config,
      messages,
      spaces: backend.spaces,
      otherRules: backend.otherRules,
      metrics: rest.metrics,
      log: rest.log,
      nowMs,
    }),
    nowMs,
    publicUrl: () => config.publicUrl ?? withReachableHost(url, config),
    pinnedCertificate: () => pinnedCertificate,
    setTls: (tls) => {
      pinnedCertificate = selfSignedFingerprint(tls);
    },
    setUrl: (bound) => {
      url = bound;
    },
  };
}

type Serving = Pick<RunningBroker, "url" | "reloadTls" | "stop">;

type ServingOptions = { readonly location: string; readonly lingerMs: number; readonly strangers: Strangers };

async function serve(broker: WiredBroker, { location, lingerMs, strangers }: ServingOptions): Promise<Serving> {
  const { log, config } = broker;
  const tls = readTlsIdentity(config);
  if (tls !== undefined) broker.setTls(tls);
  const run = createOperationRunner(broker);
  const server = createHttpServer({
    ...(tls === undefined ? {} : { tls }),
    maxBodyBytes: limits.frameBytes,
    maxInFlight: requestsInFlightMax,
    maxConnections: connectionsMax,
    strangers,
    lingerMs,
    busyCode: "busy",
    nextTurn: (run) => broker.watchers.nextTurn("", "http", run),
    // In the catalogue's words, for the same reason as in run-operation.ts.
    onError: ({ level, code, status, cause }, request) => {
      const err = status >= 500 ? cause : undefined;
      log[level]({ event: "http_refused", ...request, code, err }, errorCatalogue[code].meaning);
    },
  });
  registerHttpRoutes(server, broker, run);
  registerAdminRoutes(server, broker);
  registerHealthRoutes(server, broker);
  registerDescription(server);
  const sockets = attachSocketServer(server.server, broker, run);
  try {
    await server.listen({ host: config.listen.host, port: config.listen.port, backlog: connectionsWaitingMax });
  } catch (error) {
    sockets.stop();
    await server.close();
    throw explainListening(error, config);
  }
  const url = urlOf(config, (server.server.address() as AddressInfo).port);
  broker.setUrl(url);
  sayWhatInvitesSay(broker);
  const { publicKey: broker_key } = broker.key;
  log.info({ event: "listening", url, store: location, config: config.configFile, broker_key }, "the broker serves");
  warnOfClearText(broker);
  const background = startBackgroundWork(broker);
  const sweep = setInterval(() => {
    broker.messages.sweepLimiter(broker.nowMs(), limiterSweepRows).catch((error: unknown) => {
      log.error({ event: "limiter_sweep_failed", err: error }, "sweeping the limiter failed");
    });
  }, limiterSweepIntervalMs);
  return {
    url,
    reloadTls: () => reloadTls(broker, server.server),
    stop: async () => {
      clearInterval(sweep);
      // A step ends by itself; one that hangs with its store must not keep the process from ending.
      const ended = Promise.race([background.stop(), sleep(stopGraceMs, undefined, { ref: false })]);
      sockets.stop();
      const force = setTimeout(() => {
        server.server.closeAllConnections();
        sockets.terminate();
      }, stopGraceMs);
      await server.close();
      clearTimeout(force);
      await ended;
    },
  };
}

const listenProblems: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program has it",
  EADDRNOTAVAIL: "this host has no such address",
  EACCES: "this user may not",
};

function explainListening(error: unknown, { listen }: BrokerConfig): unknown {
  const { code } = error as NodeJS.ErrnoException;
  const problem = listenProblems[code ?? ""];
  if (problem === undefined) return error;
  const advice = "Choose another with --listen; port 0 picks a free one.";
  const message = `Cannot listen on ${listen.host}:${listen.port}: ${problem}. ${advice}`;
  // The code stays: a caller that starts a broker on a port of its own choice tries another one.
  return Object.assign(new Error(message, { cause: error }), { code });
}

function urlOf({ listen, tlsCert }: BrokerConfig, port: number): string {
  const host = listen.host.includes(":") ? `[${listen.host}]` : listen.host;
  return `${tlsCert === undefined ? "http" : "https"}://${host}:${port}`;
}

/** An invite that named every address of this host would name none that another host could connect to. */
function withReachableHost(url: string, { listen }: BrokerConfig): string {
  if (!isUnspecified(listen.host)) return url;
  return `${url.slice(0, url.indexOf("//"))}//${reachableHost()}:${url.slice(url.lastIndexOf(":") + 1)}`;
}

function sayWhatInvitesSay({ config, log, publicUrl }: BrokerContext): void {
  if (config.publicUrl !== undefined || !isUnspecified(config.listen.host)) return;
  const advice = `invites say ${publicUrl()}; where other hosts reach this broker at another address, give --public-url`;
  log.warn({ event: "no_public_url", public_url: publicUrl() }, advice);
}

/** Members prove who they are all the same, but messages, tokens and invites can be read on the way. */
function warnOfClearText({ log, publicUrl }: BrokerContext): void {
  if (!isInClear(publicUrl())) return;
  const advice =
    "others on the network can read and change what members say; give --tls-cert, or put TLS in front and name it in --public-url";
  log.warn({ event: "no_tls", public_url: publicUrl() }, advice);
}

function reloadTls({ config, log, setTls }: WiredBroker, server: object): void {
  try {
    const tls = readTlsIdentity(config);
    if (tls === undefined || !(server instanceof TlsServer)) return;
    server.setSecureContext({ ...tls, ...tlsBounds });
    setTls(tls);
    log.info({ event: "tls_reloaded" }, "new connections get the certificate as it is now");
  } catch (error) {
    log.error({ event: "tls_reload_failed", err: error }, "the certificate stays as it was");
  }
}
