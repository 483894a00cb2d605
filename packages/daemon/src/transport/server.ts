// The local API on its two doors: a Unix socket that only the owner can open, and the loopback where it is wanted. Both
// feed one HTTP server, so that the bound on requests in flight holds over both.
import { lstatSync, unlinkSync } from "node:fs";
import type { Server as HttpServer } from "node:http";
import { createServer, type Server, type Socket } from "node:net";
import process from "node:process";
import { createHttpServer } from "@claudemesh/http/server";
import type { MeshError } from "@claudemesh/protocol/errors";
import type { DaemonConfig } from "../config.ts";
import { createLogLimiter } from "../core/log-limiter.ts";
import type { LocalTokens } from "../files/local-token.ts";
import type { Clock, Log } from "../ports.ts";
import type { LiveSettings } from "../services/live-settings.ts";
import { StartRefused } from "../start-refused.ts";
import { addGuards } from "./guards.ts";
import { type LocalApi, registerRoutes } from "./routes.ts";

export type LocalServerOptions = {
  readonly config: DaemonConfig["ipc"];
  /** Asked at each request for what may change meanwhile. */
  readonly settings: Pick<LiveSettings, "current">;
  readonly api: LocalApi;
  readonly tokens: LocalTokens;
  readonly socketPath: string;
  readonly tcpEnabled: boolean;
  readonly clock: Pick<Clock, "nowMs">;
  readonly log: Log;
};

export type LocalServer = {
  /** Undefined where the daemon listens on its Unix socket only. */
  readonly httpPort: number | undefined;
  /** Takes no new request and resolves when the open ones are answered, or at the latest after the time given. */
  readonly close: (graceMs: number) => Promise<void>;
};

export async function startLocalServer(options: LocalServerOptions): Promise<LocalServer> {
  const { config, log, clock } = options;
  const loopbackSockets = new WeakSet<Socket>();
  let stopping = false;
  const onError = createErrorLog(log, clock);

  const app = createHttpServer({
    maxBodyBytes: config.maxBodyBytes,
    maxInFlight: config.maxInFlight,
    busyCode: "daemon_busy",
    onError,
  });
  addGuards(app, {
    tokens: options.tokens,
    openings: () => options.settings.current.ipc,
    log,
    isLoopback: (socket) => loopbackSockets.has(socket) || socket.remoteAddress !== undefined,
    isStopping: () => stopping,
  });
  registerRoutes(app, options.api, onError);
  await app.ready();

  await listenPrivately(app.server, options.socketPath);
  let loopback: { readonly server: Server; readonly port: number } | undefined;
  if (options.tcpEnabled) {
    loopback = await listenOnLoopback((socket) => {
      loopbackSockets.add(socket);
      app.server.emit("connection", socket);
    });
  }
  return {
    httpPort: loopback?.port,
    close: async (graceMs) => {
      stopping = true;
      options.api.events.close();
      await closeConnections(app.server, [app.server, ...(loopback === undefined ? [] : [loopback.server])], graceMs);
      await app.close();
    },
  };
}

/** Connections end as soon as they carry no request; at the end of the time those that still do are cut. */
async function closeConnections(http: HttpServer, listeners: readonly Server[], graceMs: number): Promise<void> {
  const closed = Promise.all(listeners.map((server) => new Promise((resolve) => server.close(resolve))));
  const idle = setInterval(() => http.closeIdleConnections(), 20);
  const limit = setTimeout(() => http.closeAllConnections(), graceMs);
  await closed;
  clearInterval(idle);
  clearTimeout(limit);
}

/** Binding makes the file, so the umask of that moment is its mode: never wider, not even for an instant. */
async function listenPrivately(server: Server, path: string): Promise<void> {
  removeStaleSocket(path);
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => {
      reject(new StartRefused("cannot_listen", `The socket ${path} cannot be opened: ${error.message}.`, error));
    });
    const before = process.umask(0o177);
    try {
      server.listen({ path }, resolve);
    } finally {
      process.umask(before);
    }
  });
}

/** Called with the instance lock held, so the process that made the socket is gone. */
function removeStaleSocket(path: string): void {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (!stats.isSocket()) {
    throw new StartRefused("cannot_listen", `${path} is in the way and is not a socket; move it away.`);
  }
  unlinkSync(path);
}

async function listenOnLoopback(onConnection: (socket: Socket) => void): Promise<{ server: Server; port: number }> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, onConnection);
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => {
      reject(new StartRefused("cannot_listen", `The loopback cannot be listened on: ${error.message}.`, error));
    });
    server.listen({ host: "127.0.0.1", port: 0 }, resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string")
    throw new StartRefused("cannot_listen", "The loopback gave no port.");
  return { server, port: address.port };
}

/** Refusals are mistakes of callers and can come in any number, so they are limited; each failure of our own is logged. */
function createErrorLog(log: Log, clock: Pick<Clock, "nowMs">) {
  const refusals = createLogLimiter(60, 60_000);
  return (error: MeshError, request: { readonly method: string; readonly route: string }) => {
    const fields = { event: "request_failed", code: error.code, status: error.status, ...request };
    if (error.status >= 500 && error.code !== "stopping") {
      log[error.level]({ ...fields, err: error.cause ?? error }, error.message);
      return;
    }
    const admission = refusals.admit(clock.nowMs());
    if (admission.type === "leave_out") return;
    log[error.level]({ ...fields, left_out: admission.leftOut }, "a request was refused");
  };
}
