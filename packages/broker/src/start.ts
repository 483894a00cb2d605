// Starts one broker: opens the store, wires services to transports, listens, and stops in order. No rules here.
import { randomBytes } from "node:crypto";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createHttpServer } from "@claudemesh/http/server";
import { createUuidV7Generator } from "@claudemesh/protocol/ids";
import { limits } from "@claudemesh/protocol/messages/limits";
import { failpointNames } from "@claudemesh/storage/failpoint-names";
import { createFailpoints, parseFailpoints } from "@claudemesh/storage/failpoints";
import { pino } from "pino";
import { ensureAdminToken } from "./admin-token.ts";
import { startBackgroundWork } from "./background/background-work.ts";
import { Housekeeping } from "./background/housekeeping.ts";
import type { BrokerConfig } from "./config.ts";
import type { BrokerContext } from "./context.ts";
import { createBrokerMetrics } from "./metrics.ts";
import { createOperationRunner } from "./operations/run-operation.ts";
import { type JoinedBrokers, joinBrokers } from "./signals/join-brokers.ts";
import type { Backend } from "./stores/backend.ts";
import { openBackend } from "./stores/open-backend.ts";
import { createQuietLog } from "./stores/quiet-log.ts";
import { createSpacePorts } from "./sync/space-ports.ts";
import { SpaceWatchers } from "./sync/space-watchers.ts";
import { registerAdminRoutes } from "./transport/admin-routes.ts";
import type { ConnectionRegistry } from "./transport/connection-registry.ts";
import { registerHttpRoutes } from "./transport/http-routes.ts";
import { attachSocketServer } from "./transport/socket-server.ts";

export type RunningBroker = {
  /** http://host:port; WebSockets connect to the same place. */
  readonly url: string;
  readonly adminTokenFile: string;
  /** The path of the SQLite file, or the address of the database without its password. */
  readonly storePath: string;
  /** Whether this broker's store holds the mesh with this id. */
  readonly hasMesh: (meshId: string) => Promise<boolean>;
  /** Stops accepting, finishes what is in flight, flushes, closes sockets with 1012. Within 10 s. */
  readonly stop: () => Promise<void>;
};

const requestsInFlightMax = 4_096;
const limiterSweepIntervalMs = 10_000;
const limiterSweepRows = 5_000;
const stopGraceMs = 8_000;
/** Between looks for commits that nobody was told of, where no other broker can have made them. */
const lookIntervalMs = 5_000;

export async function startBroker(config: BrokerConfig): Promise<RunningBroker> {
  const log = pino({ level: config.logLevel, base: null, name: "broker" }, pino.destination({ dest: 2, sync: true }));
  const failpoints = createFailpoints(parseFailpoints(config.failpoints, failpointNames));
  if (failpoints.active) log.warn({ event: "failpoints_active" }, `FAULT POINTS ARE SET: ${failpoints.describe()}`);
  const backend = await openBackend({ config, failpoints, log });
  let joined: JoinedBrokers | undefined;
  try {
    const { adminTokenFile, place } = backend;
    const nextId = createUuidV7Generator({ nowMs: Date.now, randomBytes });
    joined = await joinBrokers(backend.sideBySide, { nextId, log });
    const broker = createContext(config, backend, joined.connections, {
      failpoints,
      log,
      nextId,
      adminToken: ensureAdminToken(adminTokenFile),
    });
    const { url, stop } = await serve(broker, place);
    broker.watchers.start(backend.sideBySide?.sweepIntervalMs ?? lookIntervalMs);
    const { leave } = joined;
    return {
      url,
      adminTokenFile,
      storePath: place,
      hasMesh: async (meshId) => (await broker.members.findMesh(meshId))?.id === meshId,
      stop: async () => {
        await stop();
        await broker.watchers.stop();
        await leave();
        await backend.close();
      },
    };
  } catch (error) {
    await joined?.leave();
    await backend.close();
    throw error;
  }
}

type WiredBroker = BrokerContext & { readonly setUrl: (url: string) => void };

function createContext(
  config: BrokerConfig,
  backend: Backend,
  connections: ConnectionRegistry,
  rest: Pick<BrokerContext, "failpoints" | "log" | "nextId" | "adminToken">,
): WiredBroker {
  let url = "";
  const { messages } = backend;
  const nowMs = Date.now;
  const onFailure = createQuietLog((error, times) =>
    rest.log.error({ event: "space_watch_failed", err: error, times }, "looking for changes of spaces failed"),
  );
  const watchers = new SpaceWatchers({ store: backend.spaces, connections, onFailure });
  const spaces = createSpacePorts(backend, { config, connections, watchers, nowMs, nextId: rest.nextId });
  const gauges = { connected: () => connections.size, sessionsHeld: () => watchers.size };
  const metrics = createBrokerMetrics(backend.counts, gauges);
  return {
    ...rest,
    config,
    members: backend.members,
    messages,
    spaces,
    watchers,
    connections,
    checkReady: backend.checkReady,
    metrics,
    housekeeping: new Housekeeping({ config, messages, spaces: backend.spaces, metrics, log: rest.log, nowMs }),
    nowMs,
    publicUrl: () => url,
    setUrl: (bound) => {
      url = bound;
    },
  };
}

async function serve(broker: WiredBroker, place: string): Promise<{ url: string; stop: () => Promise<void> }> {
  const { log, config } = broker;
  const run = createOperationRunner(broker);
  const server = createHttpServer({
    maxBodyBytes: limits.frameBytes,
    maxInFlight: requestsInFlightMax,
    busyCode: "busy",
    onError: (error, request) =>
      log[error.level]({ event: "http_refused", ...request, code: error.code, err: error.cause }, error.message),
  });
  registerHttpRoutes(server, broker, run);
  registerAdminRoutes(server, broker);
  const sockets = attachSocketServer(server.server, broker, run);
  try {
    await server.listen({ host: config.listen.host, port: config.listen.port });
  } catch (error) {
    sockets.stop();
    await server.close();
    throw error;
  }
  const { port } = server.server.address() as AddressInfo;
  const host = config.listen.host.includes(":") ? `[${config.listen.host}]` : config.listen.host;
  const url = `http://${host}:${port}`;
  broker.setUrl(url);
  log.info({ event: "listening", url, store: place }, "the broker serves");
  const background = startBackgroundWork(broker);
  const sweep = setInterval(() => {
    broker.messages.sweepLimiter(broker.nowMs(), limiterSweepRows).catch((error: unknown) => {
      log.error({ event: "limiter_sweep_failed", err: error }, "sweeping the limiter failed");
    });
  }, limiterSweepIntervalMs);
  return {
    url,
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
