// Where a user's meshes are on this machine: the home folder, the files of one mesh's daemon, and the list of meshes.
// Each file belongs to the code that reads it, except the `[mesh]` section of config.toml, which is read and written
// here: it says which mesh and broker the folder belongs to.
import { chmodSync, closeSync, fchmodSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { MeshError } from "@claudemesh/protocol/errors";
import { isName, isPublicKey } from "@claudemesh/protocol/messages/names";
import { parse as parseToml, TomlError, type TomlTable } from "smol-toml";
import { brokerHttpUrl } from "../broker/broker-url.ts";
import { checkOurs, fsyncDir, hasCode, LocalFileError, openPrivately, replacePrivateFile } from "./private-files.ts";
import { setTomlSection } from "./toml-section.ts";
import { readUsedMesh } from "./used-mesh.ts";

export type MeshPaths = {
  readonly home: string;
  readonly mesh: string;
  readonly dir: string;
  readonly sock: string;
  readonly httpPort: string;
  readonly localToken: string;
  readonly keypair: string;
  readonly hostFingerprint: string;
  readonly config: string;
  readonly outboxDb: string;
  readonly inboxDb: string;
  readonly schemaVersion: string;
  readonly log: string;
  readonly pid: string;
  readonly lock: string;
  /** How the last daemon of this folder started, and how it ended. */
  readonly lastRun: string;
  /** The addresses of brokers that the brokers themselves announced. */
  readonly brokers: string;
};

/** The `[mesh]` section of config.toml, key by key. */
export type MeshConfig = {
  readonly id: string;
  readonly name: string;
  readonly broker: string;
  /** Other brokers of the same store. */
  readonly brokers?: readonly string[];
  readonly member_name: string;
  /** The trusted key of the broker, in hex. A home from before 0.2 has none until it meets a broker with one. */
  readonly broker_key?: string;
};

/** The longest address of a Unix socket, without its final NUL. */
const socketPathBytesMax = { linux: 107, others: 103 };

export function homeDir(env: Readonly<Record<string, string | undefined>>): string {
  const chosen = env.CLAUDEMESH_HOME;
  if (chosen !== undefined && chosen !== "") return resolve(chosen);
  return join(env.HOME || homedir(), ".claudemesh");
}

/** Throws when the mesh's name is not valid, or when a socket in its folder would have too long a path. */
export function meshPaths(home: string, mesh: string, platform: NodeJS.Platform = process.platform): MeshPaths {
  if (!isName(mesh)) throw notAName(mesh);
  const dir = join(home, "daemon", mesh);
  const sock = join(dir, "sock");
  checkSocketPath(sock, platform);
  return {
    home,
    mesh,
    dir,
    sock,
    httpPort: join(dir, "http.port"),
    localToken: join(dir, "local_token"),
    keypair: join(dir, "keypair.json"),
    hostFingerprint: join(dir, "host_fingerprint.json"),
    config: join(dir, "config.toml"),
    outboxDb: join(dir, "outbox.db"),
    inboxDb: join(dir, "inbox.db"),
    schemaVersion: join(dir, "schema_version"),
    log: join(dir, "daemon.log"),
    pid: join(dir, "pid"),
    lock: join(dir, "lock.db"),
    lastRun: join(dir, "last_run.json"),
    brokers: join(dir, "brokers.json"),
  };
}

function notAName(mesh: string): MeshError {
  const message = `"${mesh}" is not a mesh's name, which is 1–64 letters, digits, '.', '_' and '-', beginning with a letter or digit.`;
  return new MeshError("invalid_name", message, { field: "mesh" });
}

/** The kernel would truncate a longer path, or refuse it with an error that names no cause. */
function checkSocketPath(path: string, platform: NodeJS.Platform): void {
  const limitBytes = platform === "linux" ? socketPathBytesMax.linux : socketPathBytesMax.others;
  const bytes = Buffer.byteLength(path);
  if (bytes <= limitBytes) return;
  throw new MeshError(
    "invalid_request",
    `The socket's path has ${bytes} bytes and this system allows ${limitBytes}: ${path}. Set CLAUDEMESH_HOME to a shorter folder.`,
    { path, limit_bytes: limitBytes },
  );
}

/** Creates the mesh's folder and those above it, up to the home, with mode 0700. */
export function ensureMeshDir(paths: MeshPaths): void {
  ensurePrivateDir(paths.home);
  ensurePrivateDir(join(paths.home, "daemon"));
  ensurePrivateDir(paths.dir);
}

/** Creates the folder and its missing parents with mode 0700, or restricts an existing folder of ours to that. */
export function ensurePrivateDir(path: string): void {
  if (!makeDir(path)) {
    const parent = dirname(path);
    if (parent === path) throw new LocalFileError("missing", path, `${path} cannot be made: it has no parent folder.`);
    ensureParentDir(parent);
    makeDir(path);
  }
  const dir = openPrivately(path, "folder");
  try {
    const { mode } = checkOurs(dir, path, "folder");
    if ((mode & 0o777) !== 0o700) fchmodSync(dir, 0o700);
  } finally {
    closeSync(dir);
  }
}

/** Existing parents are left alone: a home may be inside folders that are open to others. */
function ensureParentDir(path: string): void {
  if (makeDir(path)) return;
  ensureParentDir(dirname(path));
  makeDir(path);
}

/** True when the folder exists afterwards; false when its parent is missing. */
function makeDir(path: string): boolean {
  try {
    mkdirSync(path, 0o700);
    // A umask can only have removed permissions.
    chmodSync(path, 0o700);
    fsyncDir(dirname(path));
    return true;
  } catch (error) {
    if (hasCode(error, "EEXIST")) return true;
    if (hasCode(error, "ENOENT") && dirname(path) !== path) return false;
    throw error;
  }
}

/** The meshes that this home belongs to, by name. A folder counts once its config.toml exists. */
export function listMeshes(home: string): string[] {
  return namesIn(join(home, "daemon"))
    .filter((name) => isName(name) && namesIn(join(home, "daemon", name)).includes("config.toml"))
    .sort();
}

function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch (error) {
    if (hasCode(error, "ENOENT") || hasCode(error, "ENOTDIR")) return [];
    throw error;
  }
}

/** The mesh of a command: the one asked for, that of the environment, that of `mesh use`, or the only one. */
export function chooseMesh(
  home: string,
  wanted?: string,
  env: Readonly<Record<string, string | undefined>> = {},
): string {
  const meshes = listMeshes(home);
  const details = { home, meshes };
  const named = namedMesh(home, wanted, env);
  const listed = meshes.join(", ");
  if (meshes.length === 0) {
    const next = "start one with `claudemesh up`, or join one with `claudemesh mesh join <invite>`";
    const what = named === undefined ? "no mesh" : `no mesh "${named.mesh}"`;
    throw new MeshError("not_found", `There is ${what} in ${home}; ${next}.`, details);
  }
  if (named !== undefined) {
    if (meshes.includes(named.mesh)) return named.mesh;
    if (!isName(named.mesh)) throw notAName(named.mesh);
    const though = named.source === undefined ? "" : `, though ${named.source}`;
    const message = `There is no mesh "${named.mesh}" in ${home}${though}; it holds ${listed}.`;
    throw new MeshError("not_found", message, details);
  }
  const [only, ...others] = meshes;
  if (only !== undefined && others.length === 0) return only;
  const next = "say which with --mesh <name> or CLAUDEMESH_MESH, or choose one with `claudemesh mesh use <name>`";
  throw new MeshError("not_found", `${home} holds several meshes (${listed}); ${next}.`, details);
}

/** `source`: where a name comes from that the command itself does not contain; shown where there is no such mesh. */
type NamedMesh = { readonly mesh: string; readonly source?: string };

/** An empty variable counts as unset. */
function namedMesh(
  home: string,
  wanted: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): NamedMesh | undefined {
  if (wanted !== undefined) return { mesh: wanted };
  const ofEnvironment = env.CLAUDEMESH_MESH;
  if (ofEnvironment) return { mesh: ofEnvironment, source: "CLAUDEMESH_MESH names it" };
  const used = readUsedMesh(home);
  return used === undefined
    ? undefined
    : {
        mesh: used,
        source: "`claudemesh mesh use` chose it (`claudemesh mesh use --none` forgets it)",
      };
}

/** Undefined where the folder belongs to no mesh yet. Settings may have been written before it does. */
export function findMeshConfig(paths: MeshPaths): MeshConfig | undefined {
  const text = readConfigText(paths.config);
  if (text === undefined || parseConfig(text, paths.config).mesh === undefined) return undefined;
  return readMeshConfig(paths);
}

export function readMeshConfig(paths: MeshPaths): MeshConfig {
  const text = readConfigText(paths.config);
  if (text === undefined) {
    const message = `There is no ${paths.config}; join the mesh with \`claudemesh mesh join <invite>\`.`;
    throw new LocalFileError("missing", paths.config, message);
  }
  const section = parseConfig(text, paths.config).mesh;
  const { broker_key } = (section ?? {}) as TomlTable;
  return {
    id: readText(section, "id", paths.config),
    name: readText(section, "name", paths.config),
    broker: checkBroker(readText(section, "broker", paths.config), paths.config),
    member_name: readText(section, "member_name", paths.config),
    ...(broker_key !== undefined && { broker_key: checkBrokerKey(broker_key, paths.config) }),
    ...readBrokers(section, paths.config),
  };
}

/** Writes the `[mesh]` section atomically, with mode 0600; everything else in the file stays as it is. */
export function writeMeshConfig(paths: MeshPaths, config: MeshConfig): void {
  const text = readConfigText(paths.config) ?? "";
  parseConfig(text, paths.config);
  const { id, name, broker, member_name, broker_key, brokers = [] } = config;
  const values = {
    ...{ id, name, broker, member_name },
    ...(broker_key !== undefined && { broker_key }),
    ...(brokers.length > 0 && { brokers }),
  };
  replacePrivateFile(paths.config, setTomlSection(text, "mesh", values));
}

function readConfigText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

function parseConfig(text: string, path: string): TomlTable {
  try {
    return parseToml(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const where = `line ${error.line}, column ${error.column}`;
    throw new LocalFileError("unreadable", path, `${path} is not valid TOML at ${where}; correct it there.`, error);
  }
}

/** Checked here, where the error can name the file: later code does not know where the address comes from. */
function checkBroker(address: string, path: string): string {
  try {
    brokerHttpUrl(address, "");
    return address;
  } catch (error) {
    if (!(error instanceof MeshError)) throw error;
    throw new LocalFileError("unreadable", path, `[mesh] broker in ${path}: ${error.message}`, error);
  }
}

function checkBrokerKey(value: unknown, path: string): string {
  if (typeof value === "string" && isPublicKey(value)) return value;
  const message = `${path} says a [mesh] broker_key that is not 64 characters of lower-case hex; correct it there.`;
  throw new LocalFileError("unreadable", path, message);
}

function readBrokers(section: unknown, path: string): { readonly brokers?: readonly string[] } {
  const { brokers } = (section ?? {}) as TomlTable;
  if (brokers === undefined) return {};
  if (Array.isArray(brokers) && brokers.every((each) => typeof each === "string")) return { brokers };
  const message = `${path} says [mesh] brokers that are no list of addresses; correct it there.`;
  throw new LocalFileError("unreadable", path, message);
}

function readText(section: unknown, key: string, path: string): string {
  const value = typeof section === "object" && section !== null ? (section as TomlTable)[key] : undefined;
  if (typeof value === "string" && value !== "") return value;
  throw new LocalFileError("unreadable", path, `${path} says no [mesh] ${key}; it must be a text.`);
}
