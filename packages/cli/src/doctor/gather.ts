// Gathers what the doctor judges, and changes nothing: files and modes, the daemon's answers, the broker's. Every
// question has an end, so that a sick machine gets its answer too.
import { existsSync, lstatSync, readFileSync, type Stats, statfsSync } from "node:fs";
import { join } from "node:path";
import { type BrokerCall, BrokerRefusal, withBroker } from "@claudemesh/client/broker";
import { DaemonUnreachable, type Finding } from "@claudemesh/client/daemon";
import { type MeshConfig, type MeshPaths, meshPaths, readMeshConfig } from "@claudemesh/client/home";
import { trustOfHome } from "@claudemesh/client/home-trust";
import { BrokerRoute, brokersMax } from "@claudemesh/client/internal/broker-route";
import { measureClockOffset } from "@claudemesh/client/internal/broker-time";
import { judgeBroker, judgeCertificate } from "@claudemesh/client/internal/findings";
import { askMeshHealth, readCertificateEnd } from "@claudemesh/client/internal/findings-questions";
import { readKnownBrokers } from "@claudemesh/client/internal/known-brokers";
import { readLastRun } from "@claudemesh/client/internal/last-run";
import { probeLoopback } from "@claudemesh/client/internal/loopback-probe";
import { LocalFileError } from "@claudemesh/client/internal/private-files";
import { identityOf, type MemberKeys, readKeyFile } from "@claudemesh/client/keys";
import { examineFolder } from "@claudemesh/daemon/offline";
import { isErrorBody, MeshError } from "@claudemesh/protocol/errors";
import { callDaemon } from "../daemon/daemon-access.ts";
import type { Shell } from "../shell.ts";
import type {
  BrokerFindings,
  DaemonFindings,
  FileFinding,
  HomeFindings,
  MeshFindings,
  PortFindings,
} from "./findings.ts";

const daemonTimeoutMs = 5_000;
const connectTimeoutMs = 5_000;

export function gatherHome(shell: Shell): HomeFindings {
  return {
    commandVersion: shell.version,
    nodeVersion: process.versions.node,
    failpointsInShell: shell.env.CLAUDEMESH_FAILPOINTS || undefined,
    home: shell.home,
    homeFolder: lookAt(shell.home, "folder"),
    freeBytes: readFreeBytes(shell.home),
  };
}

export async function gatherMesh(shell: Shell, mesh: string): Promise<MeshFindings> {
  const paths = meshPaths(shell.home, mesh);
  const files = lookAtFiles(paths);
  const config = attemptFile(() => readMeshConfig(paths));
  const keys = existsSync(paths.keypair) ? attemptFile(() => readKeyFile(paths.keypair)) : undefined;
  const isConfig = !("problem" in config);
  const [folder, daemon, broker, clockAheadMs] = await Promise.all([
    examineFolder(paths, shell.env),
    askDaemon(paths),
    isConfig && keys !== undefined && !("problem" in keys) ? askBrokers(shell, paths, config, keys) : noBroker,
    isConfig ? measureClockOffset(config.broker) : undefined,
  ]);
  return {
    lastRun: readLastRun(paths.lastRun),
    findings: await gatherFindings(paths, daemon, broker, isConfig ? config.broker : undefined),
    platform: process.platform,
    mesh,
    dir: paths.dir,
    files,
    membership: isConfig ? "readable" : config,
    keys: keys === undefined ? "absent" : "problem" in keys ? keys : "readable",
    folder,
    daemon,
    port: daemon.type === "answers" ? await askPort(paths) : { type: "none" },
    brokerUrl: isConfig ? config.broker : undefined,
    broker,
    clockAheadMs,
  };
}

/** The daemon knows more; without one the broker is asked with the keys of this home. */
async function gatherFindings(
  { mesh, sock }: MeshPaths,
  daemon: DaemonFindings,
  broker: BrokerFindings,
  brokerUrl: string | undefined,
): Promise<readonly Finding[]> {
  if (daemon.type === "answers") {
    const { body } = await callDaemon({ sock }, (client) => client.findings(), daemonTimeoutMs);
    return isErrorBody(body) ? [] : body.findings;
  }
  const url = broker.type === "negotiated" ? broker.url : brokerUrl;
  const certificate = url === undefined ? undefined : await readCertificateEnd(url);
  const said = broker.type === "negotiated" ? judgeBroker(mesh, process.platform, broker.said) : [];
  return [...said, ...judgeCertificate(certificate, Date.now())];
}

const noBroker = { type: "not asked" } as const;

function attemptFile<T>(read: () => T): T | { readonly problem: string } {
  try {
    return read();
  } catch (error) {
    if (error instanceof LocalFileError) return { problem: error.message };
    throw error;
  }
}

function lookAtFiles(paths: MeshPaths): FileFinding[] {
  const { keypair, localToken, hostFingerprint, config, outboxDb, inboxDb, log, lock, lastRun, sock } = paths;
  const databases = [outboxDb, inboxDb].flatMap((path) => [path, `${path}-wal`, `${path}-shm`]);
  const files = [keypair, localToken, hostFingerprint, config, ...databases, log, lock, lastRun];
  return [
    lookAt(join(paths.home, "daemon"), "folder"),
    lookAt(paths.dir, "folder"),
    ...files.map((path) => lookAt(path, "file")),
    lookAt(sock, "socket"),
  ].filter((finding) => finding !== undefined);
}

function lookAt(path: string, expectedKind: FileFinding["expectedKind"]): FileFinding | undefined {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return undefined;
  const isOurs = process.getuid === undefined || stats.uid === process.getuid();
  return { path, kind: kindOf(stats), expectedKind, mode: stats.mode & 0o777, isOurs };
}

function kindOf(stats: Stats): FileFinding["kind"] {
  if (stats.isFile()) return "file";
  if (stats.isDirectory()) return "folder";
  if (stats.isSocket()) return "socket";
  return stats.isSymbolicLink() ? "link" : "other";
}

function readFreeBytes(path: string): number | undefined {
  try {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize;
  } catch (error) {
    if (error instanceof Error && "code" in error) return undefined;
    throw error;
  }
}

async function askDaemon(paths: MeshPaths): Promise<DaemonFindings> {
  try {
    return await callDaemon(
      paths,
      async (daemon): Promise<DaemonFindings> => {
        const { body } = await daemon.version();
        if (isErrorBody(body)) return { type: "silent", why: body.message };
        const health = await daemon.health();
        const pid = typeof body.pid === "number" ? body.pid : undefined;
        return { type: "answers", version: String(body.version), pid, health: health.body };
      },
      daemonTimeoutMs,
    );
  } catch (error) {
    if (!(error instanceof DaemonUnreachable)) throw error;
    return error.sent || error.timedOut ? { type: "silent", why: error.message } : { type: "absent" };
  }
}

async function askPort(paths: MeshPaths): Promise<PortFindings> {
  if (!existsSync(paths.httpPort)) return { type: "none" };
  const port = Number(readFileSync(paths.httpPort, "utf8"));
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    return { type: "fails", port: 0, why: "http.port is no port" };
  if (!existsSync(paths.localToken)) return { type: "fails", port, why: "there is no local_token" };
  const answer = await probeLoopback(port, readFileSync(paths.localToken, "utf8").trim());
  if (answer.type === "silent") return { type: "fails", port, why: answer.why };
  return answer.status === 200 ? { type: "answers", port } : { type: "fails", port, why: `status ${answer.status}` };
}

/** As with clients, the first that can be used speaks for its store; the others that cannot be used are named beside it. */
async function askBrokers(
  shell: Shell,
  paths: MeshPaths,
  config: MeshConfig,
  keys: MemberKeys,
): Promise<BrokerFindings> {
  const { current, others } = new BrokerRoute(config.broker, readKnownBrokers(paths, config));
  const urls = [current, ...others].slice(0, brokersMax);
  const answers = await Promise.all(urls.map((url) => askBroker(shell, paths, { ...config, broker: url }, keys)));
  const lost = answers.flatMap((each, at) =>
    each.type === "negotiated" ? [] : [{ url: urls[at] ?? "", why: each.detail }],
  );
  const usable = answers.find((each) => each.type === "negotiated");
  if (usable !== undefined) return { ...usable, lost };
  // One that answers says more than one that is away.
  return answers.find(({ type }) => type !== "away") ?? answers[0] ?? noBroker;
}

/** Beside the daemon's own connection, which is left alone. */
async function askBroker(
  shell: Shell,
  paths: MeshPaths,
  config: MeshConfig,
  keys: MemberKeys,
): Promise<Exclude<BrokerFindings, typeof noBroker>> {
  // The doctor changes nothing: a key that the home does not know yet is not kept.
  const { key } = trustOfHome(paths, config);
  const trust = { key, keep: () => true };
  const agent = `claudemesh-cli/${shell.version}`;
  try {
    const identity = identityOf(keys, config.id);
    const connection = {
      broker: config.broker,
      identity,
      agent,
      trust,
      connectTimeoutMs,
      requestTimeoutMs: daemonTimeoutMs,
    };
    const said = await withBroker(connection, (call) => askMeshHealth(() => callHealth(call)));
    return { type: "negotiated", url: config.broker, said, lost: [] };
  } catch (error) {
    if (!(error instanceof MeshError)) throw error;
    const { reason, detail } = error.details;
    const said = typeof detail === "string" ? detail : error.message;
    if (error.code === "not_our_broker") return { type: "stranger", detail: said };
    if (error.code === "unauthorized" || error.code === "membership_ended") return { type: "refused", detail: said };
    const isIncompatible =
      typeof reason === "string" &&
      (reason.startsWith("feature_") || reason === "protocol_error" || reason === "broker_too_old");
    return { type: isIncompatible ? "incompatible" : "away", detail: said };
  }
}

async function callHealth(call: BrokerCall): Promise<{ readonly status: number; readonly body: unknown } | undefined> {
  try {
    return { status: 200, body: await call("mesh.health", {}) };
  } catch (error) {
    if (error instanceof MeshError && error.code !== "broker_unreachable") {
      return { status: error.status, body: error.toBody() };
    }
    if (error instanceof MeshError || error instanceof BrokerRefusal) return undefined;
    throw error;
  }
}
