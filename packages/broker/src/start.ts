// Starts one broker: opens the store, wires services to transports, listens, and stops in order. No rules here.
import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { dirname, resolve } from "node:path";
import { createHttpServer } from "@claudemesh/http/server";
import { createSqliteMembersStore, membersMigrations } from "@claudemesh/members/sqlite";
import { createSqliteMessagesStore, messagesMigrations } from "@claudemesh/messages/sqlite";
import { createUuidV7Generator } from "@claudemesh/protocol/ids";
import { limits } from "@claudemesh/protocol/messages/limits";
import { type FailpointName, failpointNames } from "@claudemesh/storage/failpoint-names";
import { createFailpoints, type Failpoints, parseFailpoints } from "@claudemesh/storage/failpoints";
import { GroupCommit } from "@claudemesh/storage/group-commit";
import { acquireInstanceLock } from "@claudemesh/storage/instance-lock";
import { openSqlite, type Sqlite } from "@claudemesh/storage/sqlite";
import { migrateSqlite } from "@claudemesh/storage/sqlite-migrations";
import { type Logger, pino } from "pino";
import { adminTokenPath, ensureAdminToken } from "./admin-token.ts";
import type { BrokerConfig } from "./config.ts";
import type { BrokerContext } from "./context.ts";
import { createOperationRunner } from "./operations/run-operation.ts";
import { ConnectionRegistry } from "./transport/connection-registry.ts";
import { registerHttpRoutes } from "./transport/http-routes.ts";
import { attachSocketServer } from "./transport/socket-server.ts";

export type RunningBroker = {
  /** http://host:port; WebSockets connect to the same place. */
  readonly url: string;
  readonly adminTokenFile: string;
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

export async function startBroker(config: BrokerConfig): Promise<RunningBroker> {
  const log = pino({ level: config.logLevel, base: null, name: "broker" }, pino.destination({ dest: 2, sync: true }));
  const failpoints = createFailpoints(parseFailpoints(config.failpoints, failpointNames));
  if (failpoints.active) log.warn({ event: "failpoints_active" }, `FAULT POINTS ARE SET: ${failpoints.describe()}`);
  const storePath = resolve(config.storePath);
  mkdirSync(dirname(storePath), { recursive: true, mode: 0o700 });
  const lock = await acquireInstanceLock(`${storePath}.lock`);
  let db: Sqlite | undefined;
  try {
    db = openSqlite({ path: storePath });
    await migrateSqlite(db, [...membersMigrations(), ...messagesMigrations()]);
    const adminTokenFile = adminTokenPath(storePath);
    const broker = createContext(config, db, failpoints, log, ensureAdminToken(adminTokenFile));
    const { url, stop } = await serve(broker);
    const opened = db;
    return {
      url,
      adminTokenFile,
      storePath,
      hasMesh: async (meshId) => (await broker.members.findMesh(meshId))?.id === meshId,
      stop: async () => {
        await stop();
        broker.commit.close();
        opened.close();
        lock.release();
      },
    };
  } catch (error) {
    db?.close();
    lock.release();
    throw error;
  }
}

type WiredBroker = BrokerContext & { readonly commit: GroupCommit; readonly setUrl: (url: string) => void };

function createContext(
  config: BrokerConfig,
  db: Sqlite,
  failpoints: Failpoints<FailpointName>,
  log: Logger,
  adminToken: string,
): WiredBroker {
  const { commit, saw } = createCommit(db, failpoints);
  let url = "";
  return {
    config,
    members: createSqliteMembersStore(db, commit),
    messages: createSqliteMessagesStore(db, commit, config.rateLimit, { saw }),
    connections: new ConnectionRegistry(),
    failpoints,
    log,
    nowMs: Date.now,
    nextId: createUuidV7Generator({ nowMs: Date.now, randomBytes }),
    adminToken,
    publicUrl: () => url,
    commit,
    setUrl: (bound) => {
      url = bound;
    },
  };
}

/** Fault points aim at batches that carry the work they are named for. */
function createCommit(db: Sqlite, failpoints: Failpoints<FailpointName>) {
  const seen = { accept: false, fence: false };
  let acceptCommitting = false;
  const commit = new GroupCommit(db, {
    beforeCommit: () => {
      const { accept, fence } = seen;
      seen.accept = false;
      seen.fence = false;
      acceptCommitting = accept;
      if (fence) failpoints.hitSync("fence.before_commit");
      if (accept) failpoints.hitSync("accept.before_commit");
    },
    afterCommit: () => {
      if (acceptCommitting) failpoints.hitSync("accept.after_commit");
    },
  });
  return {
    commit,
    saw: (work: "accept" | "fence") => {
      seen[work] = true;
    },
  };
}

async function serve(broker: WiredBroker): Promise<{ url: string; stop: () => Promise<void> }> {
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
  log.info({ event: "listening", url, store: config.storePath }, "the broker serves");
  const sweep = setInterval(() => {
    broker.messages.sweepLimiter(broker.nowMs(), limiterSweepRows).catch((error: unknown) => {
      log.error({ event: "limiter_sweep_failed", err: error }, "sweeping the limiter failed");
    });
  }, limiterSweepIntervalMs);
  return {
    url,
    stop: async () => {
      clearInterval(sweep);
      sockets.stop();
      const force = setTimeout(() => {
        server.server.closeAllConnections();
        sockets.terminate();
      }, stopGraceMs);
      await server.close();
      clearTimeout(force);
    },
  };
}
