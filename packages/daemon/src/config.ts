// The settings of a daemon: config.toml, then what the command line or the environment puts above it. Read once at
// start and passed down. An unknown key is refused by its name, because a misspelt limit is no limit.
import { readFileSync } from "node:fs";
import { brokersMax } from "@claudemesh/client/internal/broker-route";
import { createSchemaCompiler } from "@claudemesh/http/validation";
import { type BackoffBounds, defaultBackoff, defaultReconnect } from "@claudemesh/protocol/messages/backoff";
import { limits } from "@claudemesh/protocol/messages/limits";
import { parse as parseToml, TomlError } from "smol-toml";
import { type ClonePolicy, clonePolicies } from "./core/host-fingerprint.ts";
import { StartRefused } from "./start-refused.ts";

export type DaemonConfig = {
  readonly outbox: {
    readonly backoff: BackoffBounds;
    readonly requestTimeoutMs: number;
    readonly maxBytes: number;
    readonly maxAgeHoursOverride: number | undefined;
    readonly doneRetentionDays: number;
  };
  /** Between tries to connect to a broker. */
  readonly reconnect: { readonly backoff: BackoffBounds };
  readonly ipc: {
    /** Where this is undefined, TCP is on, except in a container. */
    readonly tcpEnabled: boolean | undefined;
    readonly maxInFlight: number;
    readonly maxStreams: number;
    readonly maxBodyBytes: number;
    readonly allowedOrigins: readonly string[];
    readonly publicHealthCheck: boolean;
  };
  readonly inbox: {
    /** Messages are kept for ever where this is undefined. */
    readonly retentionDays: number | undefined;
  };
  readonly clone: {
    /** What a start does on another host than the one before. */
    readonly policy: ClonePolicy;
  };
};

/** The settings as config.toml spells them. */
export type DaemonSettings = {
  readonly outbox?: {
    readonly backoff_min_ms?: number;
    readonly backoff_max_ms?: number;
    readonly request_timeout_ms?: number;
    readonly max_bytes?: number;
    readonly max_age_hours_override?: number;
    readonly done_retention_days?: number;
  };
  readonly reconnect?: { readonly backoff_min_ms?: number; readonly backoff_max_ms?: number };
  readonly ipc?: {
    readonly tcp_enabled?: boolean;
    readonly max_in_flight?: number;
    readonly max_streams?: number;
    readonly max_body_bytes?: number;
    readonly allowed_origins?: readonly string[];
    readonly public_health_check?: boolean;
  };
  readonly inbox?: { readonly retention_days?: number };
  readonly clone?: { readonly policy?: ClonePolicy };
};

const dayMs = 86_400_000;
const whole = (minimum: number, maximum: number) => ({ type: "integer", minimum, maximum }) as const;
const section = <P extends object>(properties: P) =>
  ({ type: "object", additionalProperties: false, properties }) as const;

const settingsSchema = section({
  outbox: section({
    backoff_min_ms: whole(1, dayMs),
    backoff_max_ms: whole(1, dayMs),
    request_timeout_ms: whole(1, dayMs),
    max_bytes: whole(262_144, Number.MAX_SAFE_INTEGER),
    max_age_hours_override: whole(1, 87_600),
    done_retention_days: whole(1, 36_500),
  }),
  reconnect: section({
    backoff_min_ms: whole(1, defaultReconnect.maxMs),
    backoff_max_ms: whole(1, defaultReconnect.maxMs),
  }),
  ipc: section({
    tcp_enabled: { type: "boolean" },
    max_in_flight: whole(1, 65_536),
    max_streams: whole(1, 1_024),
    max_body_bytes: whole(1_024, limits.requestBytes),
    allowed_origins: { type: "array", items: { type: "string", minLength: 1 } },
    public_health_check: { type: "boolean" },
  }),
  inbox: section({ retention_days: whole(1, 36_500) }),
  clone: section({ policy: { type: "string", enum: clonePolicies } }),
});

/** Which mesh this folder belongs to; read with the home. */
const meshSchema = section({
  id: { type: "string" },
  name: { type: "string" },
  broker: { type: "string" },
  brokers: { type: "array", maxItems: brokersMax, items: { type: "string" } },
  member_name: { type: "string" },
  broker_key: { type: "string", pattern: "^[0-9a-f]{64}$" },
});

const fileSchema = section({ ...settingsSchema.properties, mesh: meshSchema });

const defaults = {
  requestTimeoutMs: 10_000,
  maxBytes: 2 ** 31,
  doneRetentionDays: 30,
  maxInFlight: 64,
  maxStreams: 32,
};

export type ConfigSources = {
  readonly path: string;
  readonly overrides: DaemonSettings;
  readonly env: Readonly<Record<string, string | undefined>>;
};

export function readDaemonConfig(sources: ConfigSources): DaemonConfig {
  const file = readSettings(sources.path);
  const environment = settingsFromEnvironment(sources.env);
  checkSettings(settingsSchema, sources.overrides, "the settings given at start");
  const settings = mergeSettings(mergeSettings(file, environment), sources.overrides);
  const { outbox, ipc, inbox, clone } = settings;
  const minMs = outbox?.backoff_min_ms ?? defaultBackoff.minMs;
  const maxMs = outbox?.backoff_max_ms ?? Math.max(defaultBackoff.maxMs, minMs);
  if (maxMs < minMs) {
    throw new StartRefused("config_invalid", `[outbox] backoff_max_ms (${maxMs}) is below backoff_min_ms (${minMs}).`);
  }
  return {
    outbox: {
      backoff: { minMs, maxMs },
      requestTimeoutMs: outbox?.request_timeout_ms ?? defaults.requestTimeoutMs,
      maxBytes: outbox?.max_bytes ?? defaults.maxBytes,
      maxAgeHoursOverride: outbox?.max_age_hours_override,
      doneRetentionDays: outbox?.done_retention_days ?? defaults.doneRetentionDays,
    },
    reconnect: { backoff: readReconnect(settings, { minMs, maxMs }) },
    ipc: {
      tcpEnabled: ipc?.tcp_enabled,
      maxInFlight: ipc?.max_in_flight ?? defaults.maxInFlight,
      maxStreams: ipc?.max_streams ?? defaults.maxStreams,
      maxBodyBytes: ipc?.max_body_bytes ?? limits.requestBytes,
      allowedOrigins: ipc?.allowed_origins ?? [],
      publicHealthCheck: ipc?.public_health_check ?? false,
    },
    inbox: { retentionDays: inbox?.retention_days },
    clone: { policy: clone?.policy ?? "refuse" },
  };
}

/** What is not said follows the outbox's pauses, and none is longer than a broker that is back should have to wait. */
function readReconnect({ reconnect }: DaemonSettings, outbox: BackoffBounds): BackoffBounds {
  const minMs =
    reconnect?.backoff_min_ms ??
    Math.min(outbox.minMs, defaultReconnect.minMs, reconnect?.backoff_max_ms ?? defaultReconnect.maxMs);
  const maxMs = reconnect?.backoff_max_ms ?? Math.max(minMs, Math.min(outbox.maxMs, defaultReconnect.maxMs));
  if (maxMs >= minMs) return { minMs, maxMs };
  throw new StartRefused("config_invalid", `[reconnect] backoff_max_ms (${maxMs}) is below backoff_min_ms (${minMs}).`);
}

function readSettings(path: string): DaemonSettings {
  let table: unknown;
  try {
    table = parseToml(readFileSync(path, "utf8"));
  } catch (error) {
    const where = error instanceof TomlError ? ` at line ${error.line}, column ${error.column}` : "";
    throw new StartRefused("config_invalid", `${path} cannot be read${where}; correct it there.`, error);
  }
  checkSettings(fileSchema, withoutPlainMesh(table), path);
  return table as DaemonSettings;
}

/** The section as `mesh join` wrote it needs no look, and is all that most files have. */
function withoutPlainMesh(table: unknown): unknown {
  const { mesh, ...rest } = (table ?? {}) as { readonly mesh?: unknown };
  const fields = Object.entries(mesh ?? {});
  const isPlain = fields.every(
    ([key, value]) => Object.hasOwn(meshSchema.properties, key) && typeof value === "string",
  );
  return isPlain && typeof mesh === "object" && !Array.isArray(mesh) ? rest : table;
}

/** Compiling a schema is a good part of a daemon's start, so that nothing is compiled where nothing is set. */
function checkSettings(schema: object, settings: unknown, origin: string): void {
  if (typeof settings === "object" && settings !== null && Object.keys(settings).length === 0) return;
  const error = createSchemaCompiler()(schema)(settings);
  if (error === undefined) return;
  throw new StartRefused("config_invalid", `${origin}: ${error.message}`, error);
}

function settingsFromEnvironment(env: ConfigSources["env"]): DaemonSettings {
  const text = env.CLAUDEMESH_IPC_TCP_ENABLED;
  if (text === undefined || text === "") return {};
  if (text === "true" || text === "false") return { ipc: { tcp_enabled: text === "true" } };
  throw new StartRefused("config_invalid", `CLAUDEMESH_IPC_TCP_ENABLED is "${text}"; it takes true or false.`);
}

function mergeSettings(below: DaemonSettings, above: DaemonSettings): DaemonSettings {
  return {
    outbox: { ...below.outbox, ...above.outbox },
    reconnect: { ...below.reconnect, ...above.reconnect },
    ipc: { ...below.ipc, ...above.ipc },
    inbox: { ...below.inbox, ...above.inbox },
    clone: { ...below.clone, ...above.clone },
  };
}
