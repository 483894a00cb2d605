// Starts one daemon and stops it again: takes the folder's lock, opens the stores, wires the services, listens. No
// rules here; each is in the service it belongs to.
import { existsSync, readFileSync, statfsSync } from "node:fs";
import process from "node:process";
import type { BrokerTrust } from "@claudemesh/client/broker-trust";
import { type MeshConfig, type MeshPaths, meshPaths } from "@claudemesh/client/home";
import { trustOfHome } from "@claudemesh/client/home-trust";
import { readKnownBrokers, writeLearnedBrokers } from "@claudemesh/client/internal/known-brokers";
import { type LastRun, writeLastRun } from "@claudemesh/client/internal/last-run";
import type { Link, LinkOptions } from "@claudemesh/client/internal/link-contract";
import { hasCode, LocalFileError } from "@claudemesh/client/internal/private-files";
import { identityOf, type MemberKeys } from "@claudemesh/client/keys";
import { openLink } from "@claudemesh/client/link";
import { isInClear } from "@claudemesh/protocol/wire/in-clear";
import { StorageError } from "@claudemesh/storage/errors";
import { type DaemonConfig, type DaemonSettings, readDaemonConfig } from "./config.ts";
import type { HostFacts } from "./core/host-fingerprint.ts";
import { createShutdownReport, type EphemeralOrder, endAfter } from "./ephemeral.ts";
import { containerSigns, isInContainer } from "./files/container.ts";
import { openLocalTokens } from "./files/local-token.ts";
import { openLogFile } from "./files/log-file.ts";
import { announceFiles, refuseNewerSchema, withdrawFiles } from "./files/running-files.ts";
import { readHostFacts } from "./files/this-host.ts";
import { createDaemonLog, readFailpoints } from "./log.ts";
import { openMember } from "./open-member.ts";
import type { Log } from "./ports.ts";
import { ReleaseStack } from "./release-stack.ts";
import type { LinkEvents } from "./services/broker-link.ts";
import { confirmHost } from "./services/confirm-host.ts";
import { LiveSettings } from "./services/live-settings.ts";
import { StartRefused } from "./start-refused.ts";
import { openStores } from "./stores/sqlite/open-stores.ts";
import { createSystemClock, type SystemClock } from "./system-clock.ts";
import { startLocalServer } from "./transport/server.ts";
import { wireServices } from "./wiring/wire-services.ts";

export type StartOptions = {
  readonly home: string;
  readonly mesh: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What /v1/version and the hello say; the package's own where absent. */
  readonly version?: string;
  /** Above config.toml and the environment. */
  readonly overrides?: DaemonSettings;
  readonly clock?: SystemClock;
  /** How to reach a broker; a link of the client package where absent. */
  readonly connect?: (options: LinkOptions) => Link;
  /** A member for this run alone, instead of the one whose keys lie in the folder. */
  readonly ephemeral?: EphemeralOrder;
  readonly readHost?: () => HostFacts;
};

export type DaemonExit = { readonly reason: string; readonly exitCode: 0 | 1; readonly message: string };

export type RunningDaemon = {
  readonly socket: string;
  /** Undefined where the daemon listens on its Unix socket only. */
  readonly httpPort: number | undefined;
  /** Stops accepting, finishes the open transaction, leaves rows for the next start. Within 5 s; again is harmless. */
  readonly stop: () => Promise<void>;
  /** Resolves once everything is closed, for whatever reason. */
  readonly stopped: Promise<DaemonExit>;
};

/** How long open requests may take to be answered once the daemon stops. */
const requestGraceMs = 2_000;

/** A disk that fails one read may not fail the next, and until a start is through it has changed nothing that counts. */
const startTriesMax = 3;

/** The version of this package. */
function packageVersion(): string {
  const text = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}

/** Rejects with StartRefused, or with what the home has to say about the mesh's name. */
export async function startDaemon(options: StartOptions): Promise<RunningDaemon> {
  // Everything this process ever makes is for its owner alone.
  process.umask(0o077);
  const paths = meshPaths(options.home, options.mesh);
  for (let triesLeft = startTriesMax; ; ) {
    const resources = new ReleaseStack();
    try {
      return await startWith(options, paths, resources);
    } catch (error) {
      await resources.releaseAll();
      triesLeft--;
      // An ephemeral member has used up its invite.
      if (isReadFailure(error) && triesLeft > 0 && options.ephemeral === undefined) continue;
      const refusal = asStartRefused(error, paths);
      noteRefusal(refusal, options, paths);
      throw refusal;
    }
  }
}

async function startWith(options: StartOptions, folder: MeshPaths, resources: ReleaseStack): Promise<RunningDaemon> {
  const { ephemeral } = options;
  const { mesh, keys, paths } = await openMember(ephemeral, folder, resources);
  const logFile = openLogFile({ path: paths.log });
  resources.push(() => logFile.close());
  const log = createDaemonLog(logFile, mesh.name);
  resources.onError = (error) => log.error({ event: "release_failed", err: error }, "something did not close cleanly");
  const readConfig = () =>
    readDaemonConfig({ path: paths.config, overrides: options.overrides ?? {}, env: options.env });
  const config = readConfig();
  const settings = new LiveSettings(config, readConfig, log);
  if (ephemeral === undefined) {
    confirmHost({ paths, facts: (options.readHost ?? readHostFacts)(), policy: config.clone.policy, log });
  }
  const failpoints = readFailpoints(options.env.CLAUDEMESH_FAILPOINTS ?? "", log);
  const clock = options.clock ?? createSystemClock();
  const version = options.version ?? packageVersion();
  const connect = options.connect ?? openLink;
  const stores = await openStores(paths, clock, failpoints, log);
  resources.push(() => stores.close());
  refuseNewerSchema(paths.schemaVersion, stores.schema);
  const shutdownReport = ephemeral === undefined ? undefined : createShutdownReport(stores.outbox);
  resources.push(() => shutdownReport?.countUnsent());

  const where = { brokers: readKnownBrokers(paths, mesh), trust: trustOf(paths, mesh, log) };
  const { promise: exiting, resolve: exit } = Promise.withResolvers<DaemonExit>();
  const services = await wireServices({
    config,
    settings,
    mesh,
    keys,
    clock,
    log,
    failpoints,
    stores,
    openLink: (events) => connect({ ...linkOptions(mesh, keys, version, config, events), ...where }),
    onFatal: ({ reason, message }) => exit({ reason, exitCode: 1, message }),
    onBrokers: (urls) => keepBrokers(paths, urls, log),
  });
  resources.push(() => services.stop());
  resources.push(() => shutdownReport?.waitForDrain());
  const tokens = openLocalTokens(paths.localToken, clock);
  const findings = { folder: paths.dir, brokerUrl: () => services.brokerUrl() ?? mesh.broker };
  const server = await startLocalServer({
    config: config.ipc,
    settings,
    api: services.localApi({ version, rotateToken: tokens.rotate, reload: () => settings.reload(), findings }),
    tokens,
    socketPath: paths.sock,
    tcpEnabled: config.ipc.tcpEnabled ?? !isInContainer(containerSigns(options.env)),
    clock,
    log,
  });
  resources.push(() => server.close(requestGraceMs));
  resources.push(() => withdrawFiles(paths));
  announceFiles(paths, server.httpPort, stores.schema);
  const noteEnd = noteStart(paths, version);
  services.start();
  if (ephemeral !== undefined) {
    const message = "the time to live is over";
    const timer = endAfter(clock, ephemeral.ttlMs, () => exit({ reason: "ttl_over", exitCode: 0, message }));
    resources.push(() => timer.cancel());
  }
  log.info({ event: "daemon_started", version, http_port: server.httpPort ?? null }, "the daemon serves");

  const stopped = exiting.then(async (end) => {
    log.info({ event: "daemon_stopping", reason: end.reason }, end.message);
    // While the folder is still ours: the next daemon writes its own.
    noteEnd(end);
    await resources.releaseAll();
    return shutdownReport?.amend(end) ?? end;
  });
  return {
    socket: paths.sock,
    httpPort: server.httpPort,
    stop: async () => {
      exit({ reason: "stopped", exitCode: 0, message: "stopped as asked" });
      await stopped;
    },
    stopped,
  };
}

/** Tells a later command why no daemon runs. An ephemeral daemon's folder is gone by now; a full disk shows by itself. */
function noteRun(paths: MeshPaths, run: LastRun): void {
  try {
    if (existsSync(paths.dir)) writeLastRun(paths.lastRun, run);
  } catch (error) {
    if (!(error instanceof Error && ("code" in error || error instanceof LocalFileError))) throw error;
  }
}

/** The broker that this home trusts. A connection without TLS is logged once. */
function trustOf(paths: MeshPaths, mesh: MeshConfig, log: Log): BrokerTrust {
  if (isInClear(mesh.broker)) {
    const advice = "others on the way to the broker can read and change what is said; use an address with TLS";
    log.warn({ event: "no_tls", broker: mesh.broker }, advice);
  }
  return trustOfHome(paths, mesh, {
    onUnkept: (broker_key, err) =>
      log.error({ event: "broker_key_not_kept", broker_key, err }, "config.toml cannot be written"),
  });
}

/** Brokers announce their addresses again with the next hello, so a disk that refuses to store them does no harm. */
function keepBrokers(paths: MeshPaths, urls: readonly string[], log: Log): void {
  try {
    writeLearnedBrokers(paths, urls);
  } catch (error) {
    log.warn({ event: "brokers_not_kept", err: error }, "brokers.json cannot be written");
  }
}

function noteStart(paths: MeshPaths, version: string): (end: DaemonExit) => void {
  const run = { version, pid: process.pid, started_at: Date.now() };
  noteRun(paths, { state: "running", ...run });
  return ({ reason, message }) => noteRun(paths, { state: "ended", ...run, ended_at: Date.now(), reason, message });
}

/** A second daemon beside one that runs is no news of that one. */
function noteRefusal(refusal: unknown, { version = packageVersion() }: StartOptions, paths: MeshPaths): void {
  if (!(refusal instanceof Error)) return;
  const reason = refusal instanceof StartRefused ? refusal.reason : "start_failed";
  if (reason === "already_running") return;
  const now = Date.now();
  const { message } = refusal;
  noteRun(paths, { state: "ended", version, pid: process.pid, started_at: now, ended_at: now, reason, message });
}

function linkOptions(
  mesh: MeshConfig,
  keys: MemberKeys,
  version: string,
  { reconnect }: DaemonConfig,
  events: LinkEvents,
): LinkOptions {
  return {
    url: mesh.broker,
    identity: identityOf(keys, mesh.id),
    kind: "daemon",
    agent: `claudemesh-daemon/${version}`,
    backoff: reconnect.backoff,
    ...events,
  };
}

function asStartRefused(error: unknown, paths: MeshPaths): unknown {
  if (isDiskFull(error)) return diskFull(error, paths);
  if (isReadFailure(error)) return readFailure(error, paths);
  if (error instanceof LocalFileError) return new StartRefused("files_unusable", error.message, error);
  if (!(error instanceof StorageError)) return error;
  if (error.kind === "locked") {
    const message = `A daemon for ${paths.mesh} is running already on ${paths.dir}; there is one per folder.`;
    return new StartRefused("already_running", message, error);
  }
  return new StartRefused("storage_unavailable", `The daemon's files cannot be used: ${error.message}.`, error);
}

/** What a start writes: shared memory and log of two databases, a few small files, and the first lines of the log. */
const startRoomBytes = 4 * 1_048_576;

function diskFull(error: unknown, { dir, mesh }: MeshPaths): StartRefused {
  const { bavail, bsize } = statfsSync(existsSync(dir) ? dir : "/");
  const message = [
    `The disk that holds ${dir} is full: ${Math.floor((bavail * bsize) / 1_024)} KiB are free, and a start needs about`,
    `${startRoomBytes / 1_024} KiB. Make room there, then run: claudemesh daemon up --mesh ${mesh}. What is stored is safe.`,
  ].join(" ");
  return new StartRefused("disk_full", message, error);
}

function isDiskFull(error: unknown): boolean {
  return someCause(error, (cause) =>
    cause instanceof StorageError ? cause.kind === "disk_full" : hasCode(cause, "ENOSPC") || hasCode(cause, "EDQUOT"),
  );
}

/** What SQLite calls malformed while it opens a file that was just found sound is a read that failed, too. */
function isReadFailure(error: unknown): boolean {
  return someCause(error, (cause) =>
    cause instanceof StorageError ? cause.kind === "io" || cause.kind === "corrupt" : hasCode(cause, "EIO"),
  );
}

function readFailure(error: unknown, { dir, mesh }: MeshPaths): StartRefused {
  let why = error;
  while (why instanceof Error && why.cause instanceof Error) why = why.cause;
  const message = [
    `The files in ${dir} cannot be read: ${why instanceof Error ? why.message : why}. That alone says nothing about what is in them, and nothing was changed.`,
    `Look after the disk, then run: claudemesh daemon up --mesh ${mesh}.`,
  ].join(" ");
  return new StartRefused("storage_unavailable", message, error);
}

function someCause(error: unknown, test: (cause: Error) => boolean): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) if (test(cause)) return true;
  return false;
}
