// The options of a broker: each option's flag, environment variable and broker.toml key, in that order of precedence.
// They are read here once at start and passed down.
import { lstatSync, readFileSync, type Stats, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import process from "node:process";
import { parseRateLimit, type RateLimit } from "@claudemesh/messages/rate-limit";
import {
  type ConnectionPolicy,
  connectionPolicies,
  type DedupeParameters,
  dedupeRetentionDaysFloor,
} from "@claudemesh/protocol/features";
import { limits } from "@claudemesh/protocol/messages/limits";
import { type MeshCeilings, meshCountKeys } from "@claudemesh/protocol/messages/mesh-settings";
import { isLoopbackHost } from "@claudemesh/protocol/wire/in-clear";
import { parse as parseToml, TomlError } from "smol-toml";
import { isUnspecified } from "./public-url.ts";
import { withoutSecret } from "./shown-address.ts";

export const logLevels = ["trace", "debug", "info", "warn", "error", "silent"] as const;
export type BrokerLogLevel = (typeof logLevels)[number];

export type StoreConfig =
  | { readonly kind: "sqlite"; readonly path: string }
  /** With its password, where it has one: never to be logged. */
  | { readonly kind: "postgres"; readonly url: string };

export type BrokerConfig = {
  readonly listen: { readonly host: string; readonly port: number };
  /** Where clients reach this broker, where that is not where it listens; goes into invites. */
  readonly publicUrl: string | undefined;
  /** PEM files; both or neither. */
  readonly tlsCert: string | undefined;
  readonly tlsKey: string | undefined;
  /** Off loopback without TLS: tokens and topic messages travel in clear. */
  readonly plainHttp: boolean;
  readonly store: StoreConfig;
  /** For the limiter and signals between brokers; goes with PostgreSQL. */
  readonly redisUrl: string | undefined;
  /** New sends pass while Redis is away, instead of being refused. */
  readonly limiterOpen: boolean;
  /** Where it is undefined: beside the SQLite file, or ./broker.admin-token. */
  readonly adminTokenFile: string | undefined;
  /** How often deliveries are looked for whose signal from another broker was lost; goes with PostgreSQL. */
  readonly deliverySweepSeconds: number | undefined;
  readonly rateLimit: RateLimit;
  /** Bytes of commits to spaces, per mesh. */
  readonly commitRateLimit: RateLimit;
  readonly inlineBytes: number;
  readonly dedupe: DedupeParameters;
  /** Where days are undefined, messages are kept for ever. */
  readonly messageRetention: { readonly days: number | undefined };
  /** Minutes after midnight, UTC, from when on the store is looked through each night; undefined: never. */
  readonly nightlyCheck: { readonly minute: number | undefined };
  readonly connectionPolicy: ConnectionPolicy;
  /** Connections, and requests waiting, of one address that has not shown who it is. */
  readonly strangersPerAddress: number;
  /** The most that owners may set for their mesh. */
  readonly meshLimits: MeshCeilings;
  /** Webhooks may go to loopback, private and link-local addresses as well. */
  readonly webhookAllowPrivate: boolean;
  /** For one try, from the look-up of the name to the end of the answer. */
  readonly webhookTimeoutMs: number;
  /** After so many tries a delivery is parked. */
  readonly webhookAttempts: number;
  readonly webhookBackoffMinMs: number;
  readonly webhookBackoffMaxMs: number;
  /** The program that verifies registrations after the built-in checks; undefined: those alone. */
  readonly registrarVerifier: string | undefined;
  readonly logLevel: BrokerLogLevel;
  /** The settings file that was read. */
  readonly configFile: string | undefined;
  /** Text of CLAUDEMESH_FAILPOINTS; empty when unset. */
  readonly failpoints: string;
};

/** A setting that cannot be used; the message names where it came from and what would do. */
export class BrokerConfigError extends Error {
  override readonly name = "BrokerConfigError";
}

type Option<T> = {
  readonly flag: string;
  readonly key: string;
  readonly env: string;
  /** Undefined where the option may be absent. */
  readonly fallback: string | undefined;
  readonly expects: string;
  readonly parse: (text: string) => T | undefined;
  /** A flag that needs no value: its being there means true. */
  readonly isSwitch: boolean;
};

const named = (flag: string) => ({
  flag,
  key: flag.replaceAll("-", "_"),
  env: `CLAUDEMESH_${flag.replaceAll("-", "_").toUpperCase()}`,
});

const option = <T>(
  flag: string,
  fallback: string,
  expects: string,
  parse: (text: string) => T | undefined,
): Option<T> & { readonly fallback: string } => ({ ...named(flag), fallback, expects, parse, isSwitch: false });

const optional = <T>(flag: string, expects: string, parse: (text: string) => T | undefined): Option<T> => ({
  ...named(flag),
  fallback: undefined,
  expects,
  parse,
  isSwitch: false,
});

const onOff = (flag: string, expects: string): Option<boolean> & { readonly fallback: string } => ({
  ...option(flag, "false", expects, (text) => ({ true: true, false: false })[text]),
  isSwitch: true,
});

const oneOf =
  <T extends string>(values: readonly T[]) =>
  (text: string): T | undefined =>
    values.find((value) => value === text);

/** In the order that help shows them. */
export const brokerOptions = {
  listen: option("listen", "127.0.0.1:7600", "host:port, port 0 picks a free one", parseListen),
  publicUrl: optional(
    "public-url",
    "https://<host> or http://<host>, where clients reach this broker; goes into invites",
    parsePublicUrl,
  ),
  tlsCert: optional("tls-cert", "path of a PEM file, the certificate and its chain; goes with --tls-key", parsePath),
  tlsKey: optional("tls-key", "path of a PEM file, the certificate's key", parsePath),
  plainHttp: onOff(
    "plain-http",
    "true: listen beyond loopback without TLS, so that tokens and topic messages can be read on the way",
  ),
  store: option("store", "sqlite:./broker.db", "sqlite:<path> or postgres://<user>@<host>/<database>", parseStore),
  redisUrl: optional("redis", "redis://<host>[:<port>], needed with PostgreSQL", parseRedis),
  limiterOpen: onOff("limiter-open", "true: while Redis is away new sends pass uncounted, instead of being refused"),
  adminTokenFile: optional(
    "admin-token-file",
    "path; by default beside the SQLite file, or ./broker.admin-token. Brokers side by side share one file's content",
    parsePath,
  ),
  deliverySweepSeconds: optional(
    "delivery-sweep-seconds",
    "seconds between looks for deliveries whose signal from another broker was lost, 1–86400; 5 with PostgreSQL",
    parseBetween(1, 86_400),
  ),
  rateLimit: option("rate-limit", "6000/60s", "<messages>/<seconds>s, per mesh", parseRateLimit),
  commitRateLimit: option(
    "commit-rate-limit",
    "268435456/60s",
    "<bytes>/<seconds>s, of commits to spaces, per mesh",
    parseRateLimit,
  ),
  inlineBytes: option(
    "max-inline-bytes",
    String(limits.inlineBytes),
    `bytes of a message body, ${limits.inlineBytesMin}–${limits.inlineBytesMax}`,
    parseInlineBytes,
  ),
  dedupe: option(
    "dedupe-retention-days",
    "365",
    `days, at least ${dedupeRetentionDaysFloor}, or permanent`,
    parseDedupe,
  ),
  messageRetention: option(
    "message-retention-days",
    "permanent",
    "days that a message can be read, 1–36500, or permanent; its id is remembered as long as --dedupe-retention-days says",
    parseMessageRetention,
  ),
  nightlyCheck: option(
    "nightly-check",
    "03:00",
    "hh:mm, UTC: within the hour from then the store is looked through for rows that do not fit together; or off",
    parseNightlyCheck,
  ),
  connectionPolicy: option(
    "connection-policy",
    "prefer_newest",
    connectionPolicies.join(", "),
    oneOf(connectionPolicies),
  ),
  strangersPerAddress: option(
    "strangers-per-address",
    "1024",
    "connections, and as many requests, that one address may have open before it shows who it is, 1–16384",
    parseBetween(1, 16_384),
  ),
  meshLimits: option(
    "mesh-limits",
    "",
    `<key>:<number>,…, the most that owners may set for their mesh; keys are ${meshCountKeys.join(", ")}`,
    parseMeshLimits,
  ),
  webhookAllowPrivate: onOff(
    "webhook-allow-private",
    "true: webhooks may go to loopback, private and link-local addresses",
  ),
  webhookTimeoutMs: option("webhook-timeout-ms", "10000", "ms for one try, 100–60000", parseBetween(100, 60_000)),
  webhookAttempts: option(
    "webhook-attempts",
    "16",
    "tries of one delivery before it is parked, 1–100",
    parseBetween(1, 100),
  ),
  webhookBackoffMinMs: option(
    "webhook-backoff-min-ms",
    "1000",
    "shortest pause between tries in ms, 10–3600000",
    parseBetween(10, 3_600_000),
  ),
  webhookBackoffMaxMs: option(
    "webhook-backoff-max-ms",
    "3600000",
    "longest pause between tries in ms, 10–86400000",
    parseBetween(10, 86_400_000),
  ),
  registrarVerifier: optional(
    "registrar-verifier",
    "exec:<path>, a program that gets each registration as JSON on its input and passes it by ending with 0",
    (text) => (/^exec:./.test(text) ? text.slice("exec:".length) : undefined),
  ),
  logLevel: option("log-level", "info", logLevels.join(", "), oneOf(logLevels)),
} as const;

export type BrokerFlags = { readonly [flag: string]: string | undefined };

/** The name under which a settings file is found in the working folder. */
export const configFileName = "broker.toml";

/**
 * The settings file to be read: the one that is named, or broker.toml in the working folder. That folder may be one that
 * others write to, and a setting names programs to be run, so that a file which is only found there has to be this user's own
 * (or root's), and none that others may write, exchange, or lead to by a link of theirs.
 */
export function chooseConfigFile(named: string | undefined, found: string = configFileName): string | undefined {
  if (named !== undefined) return named;
  const file = statSync(found, { throwIfNoEntry: false });
  if (file === undefined) return undefined;
  const why = whyNotObeyed({ file, name: lstatSync(found), folder: statSync(dirname(found)) });
  if (why === undefined) return found;
  throw new BrokerConfigError(
    `${resolve(found)} is not obeyed, because ${why}. Name it with --config ${found} if you mean it, or make the file and its folder yours alone, with chmod go-w.`,
  );
}

function whyNotObeyed({ file, name, folder }: Readonly<Record<"file" | "name" | "folder", Stats>>): string | undefined {
  const user = process.getuid?.();
  const isOurs = ({ uid }: Stats) => user === undefined || uid === user || uid === 0;
  if (!isOurs(file)) return "it belongs to another user";
  if (!isOurs(name)) return "another user's link leads to it";
  if ((file.mode & 0o022) !== 0) return "others may write to it";
  // Where a folder has the sticky bit, others may add files to it and exchange none.
  return (folder.mode & 0o1002) === 0o002 ? "others may put another file in its place" : undefined;
}

export function readBrokerConfig(
  flags: BrokerFlags,
  env: Readonly<Record<string, string | undefined>>,
  tomlPath: string | undefined,
): BrokerConfig {
  const toml = tomlPath === undefined ? {} : readToml(tomlPath);
  const readOptional = <T>(known: Option<T>): T | undefined => {
    const [text, origin] = sourceOf(known, flags, env, toml);
    if (text === undefined) return undefined;
    const value = known.parse(text);
    if (value === undefined) throw new BrokerConfigError(`${origin} ${describe(text)}; it takes ${known.expects}.`);
    return value;
  };
  const read = <T>(known: Option<T> & { readonly fallback: string }): T => {
    const value = readOptional(known);
    if (value === undefined) throw new BrokerConfigError(`--${known.flag} is missing; it takes ${known.expects}.`);
    return value;
  };
  const config: BrokerConfig = {
    listen: read(brokerOptions.listen),
    publicUrl: readOptional(brokerOptions.publicUrl),
    tlsCert: readOptional(brokerOptions.tlsCert),
    tlsKey: readOptional(brokerOptions.tlsKey),
    plainHttp: read(brokerOptions.plainHttp),
    store: read(brokerOptions.store),
    redisUrl: readOptional(brokerOptions.redisUrl),
    limiterOpen: read(brokerOptions.limiterOpen),
    adminTokenFile: readOptional(brokerOptions.adminTokenFile),
    deliverySweepSeconds: readOptional(brokerOptions.deliverySweepSeconds),
    rateLimit: read(brokerOptions.rateLimit),
    commitRateLimit: read(brokerOptions.commitRateLimit),
    inlineBytes: read(brokerOptions.inlineBytes),
    dedupe: read(brokerOptions.dedupe),
    messageRetention: read(brokerOptions.messageRetention),
    nightlyCheck: read(brokerOptions.nightlyCheck),
    connectionPolicy: read(brokerOptions.connectionPolicy),
    strangersPerAddress: read(brokerOptions.strangersPerAddress),
    meshLimits: read(brokerOptions.meshLimits),
    webhookAllowPrivate: read(brokerOptions.webhookAllowPrivate),
    webhookTimeoutMs: read(brokerOptions.webhookTimeoutMs),
    webhookAttempts: read(brokerOptions.webhookAttempts),
    webhookBackoffMinMs: read(brokerOptions.webhookBackoffMinMs),
    webhookBackoffMaxMs: read(brokerOptions.webhookBackoffMaxMs),
    registrarVerifier: readOptional(brokerOptions.registrarVerifier),
    logLevel: read(brokerOptions.logLevel),
    configFile: tomlPath === undefined ? undefined : resolve(tomlPath),
    failpoints: env.CLAUDEMESH_FAILPOINTS ?? "",
  };
  refuseClearText(config);
  return config;
}

/** With a public https:// address a proxy ends TLS, and what reaches this broker comes from that proxy. */
function refuseClearText({ listen, publicUrl, tlsCert, plainHttp }: BrokerConfig): void {
  const endsTls = tlsCert !== undefined || (publicUrl !== undefined && /^(?:https|wss):/.test(publicUrl));
  if (plainHttp || endsTls || isLoopbackHost(listen.host)) return;
  throw new BrokerConfigError(
    `--listen ${listen.host}:${listen.port} is open to other machines, and without TLS tokens and topic messages can be read on the way. \`claudemesh up --share\` brings a certificate of its own; a broker takes one with --tls-cert and --tls-key, or --public-url https://… where a proxy ends TLS; in a network that you trust, --plain-http allows it.`,
  );
}

function describe(text: string): string {
  const shown = withoutSecret(text);
  if (shown !== undefined) return `is "${shown}"`;
  return "cannot be read, and is not shown as it may hold a password (whose special characters are encoded: / is %2F)";
}

function sourceOf(
  known: Option<unknown>,
  flags: BrokerFlags,
  env: Readonly<Record<string, string | undefined>>,
  toml: Readonly<Record<string, string>>,
): [text: string | undefined, origin: string] {
  const flag = flags[known.flag];
  if (flag !== undefined) return [flag, `--${known.flag}`];
  const variable = env[known.env];
  if (variable !== undefined && variable !== "") return [variable, known.env];
  const setting = toml[known.key];
  if (setting !== undefined) return [setting, `${known.key} in broker.toml`];
  return [known.fallback, `--${known.flag}`];
}

function readToml(path: string): Record<string, string> {
  let table: Record<string, unknown>;
  try {
    table = parseToml(readFileSync(path, "utf8"));
  } catch (error) {
    throw new BrokerConfigError(`${path} cannot be read: ${describeTomlFailure(error)}`);
  }
  const known = new Map<string, Option<unknown>>(Object.values(brokerOptions).map((each) => [each.key, each]));
  const settings: Record<string, string> = {};
  for (const [key, value] of Object.entries(table)) {
    const option = known.get(key);
    if (option === undefined) {
      throw new BrokerConfigError(`${path} has the unknown key ${key}; it takes ${[...known.keys()].join(", ")}.`);
    }
    const fits = typeof value === "string" || typeof value === "number";
    if (!fits && !(option.isSwitch && typeof value === "boolean")) {
      throw new BrokerConfigError(`${key} in ${path} must be a string or a number.`);
    }
    settings[key] = String(value);
  }
  return settings;
}

/** The parser quotes the lines around a mistake, and the store's password may be in one of them. */
function describeTomlFailure(error: unknown): string {
  if (error instanceof TomlError) return `it is not valid TOML at line ${error.line}, column ${error.column}`;
  return error instanceof Error ? error.message : String(error);
}

/** Where the store is, as it may be shown. */
export function locationOf(store: StoreConfig): string {
  return store.kind === "sqlite" ? resolve(store.path) : (withoutSecret(store.url) ?? "postgres://…");
}

function parseListen(text: string): BrokerConfig["listen"] | undefined {
  const match = /^(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):([0-9]{1,5})$/.exec(text);
  if (match?.[1] === undefined) return undefined;
  const port = Number(match[2]);
  if (port > 65_535) return undefined;
  return { host: match[1].replace(/^\[|\]$/g, ""), port };
}

function parsePath(text: string): string | undefined {
  return text === "" ? undefined : text;
}

function parsePublicUrl(text: string): string | undefined {
  const url = parseUrl(text, ["https:", "http:", "wss:", "ws:"]);
  const plain = url !== undefined && url.username === "" && url.password === "" && url.search === "" && url.hash === "";
  return plain && !isUnspecified(url.hostname) ? text.replace(/\/+$/, "") : undefined;
}

function parseStore(text: string): StoreConfig | undefined {
  if (text.startsWith("sqlite:") && text.length > 7) return { kind: "sqlite", path: text.slice(7) };
  const url = parseUrl(text, ["postgres:", "postgresql:"]);
  // The server would take the user's name for a database that is not named, which is never meant.
  return url === undefined || url.pathname.length < 2 ? undefined : { kind: "postgres", url: text };
}

function parseRedis(text: string): string | undefined {
  return parseUrl(text, ["redis:", "rediss:"]) && text;
}

function parseUrl(text: string, protocols: readonly string[]): URL | undefined {
  const url = URL.parse(text);
  if (url === null || !protocols.includes(url.protocol)) return undefined;
  // A socket in the file system is named by a parameter.
  return url.hostname !== "" || url.searchParams.has("host") ? url : undefined;
}

function parseBetween(min: number, max: number): (text: string) => number | undefined {
  return (text) => {
    const value = /^[0-9]{1,8}$/.test(text) ? Number(text) : Number.NaN;
    return value >= min && value <= max ? value : undefined;
  };
}

function parseMeshLimits(text: string): MeshCeilings | undefined {
  const ceilings: Record<string, number> = {};
  for (const part of text === "" ? [] : text.split(",")) {
    const [, key = "", digits = ""] = /^ *([a-z_]+):([0-9]{1,9}) *$/.exec(part) ?? [];
    if (!meshCountKeys.some((known) => known === key)) return undefined;
    ceilings[key] = Number(digits);
  }
  return ceilings;
}

function parseInlineBytes(text: string): number | undefined {
  const bytes = /^[0-9]{1,9}$/.test(text) ? Number(text) : Number.NaN;
  return bytes >= limits.inlineBytesMin && bytes <= limits.inlineBytesMax ? bytes : undefined;
}

function parseDedupe(text: string): DedupeParameters | undefined {
  if (text === "permanent") return { mode: "permanent" };
  const days = /^[0-9]{1,5}$/.test(text) ? Number(text) : Number.NaN;
  return days >= dedupeRetentionDaysFloor ? { mode: "retention_scoped", dedupe_retention_days: days } : undefined;
}

function parseMessageRetention(text: string): BrokerConfig["messageRetention"] | undefined {
  if (text === "permanent") return { days: undefined };
  const days = /^[0-9]{1,5}$/.test(text) ? Number(text) : Number.NaN;
  return days >= 1 && days <= 36_500 ? { days } : undefined;
}

function parseNightlyCheck(text: string): BrokerConfig["nightlyCheck"] | undefined {
  if (text === "off") return { minute: undefined };
  const match = /^([01][0-9]|2[0-3]):([0-5][0-9])$/.exec(text);
  return match === null ? undefined : { minute: Number(match[1]) * 60 + Number(match[2]) };
}

const dayMs = 86_400_000;

/** Undefined means for ever. */
export function dedupeRetentionMs({ dedupe }: Pick<BrokerConfig, "dedupe">): number | undefined {
  return dedupe.mode === "permanent" ? undefined : dedupe.dedupe_retention_days * dayMs;
}

/** Undefined means for ever. */
export function messageRetentionMs({ messageRetention }: Pick<BrokerConfig, "messageRetention">): number | undefined {
  return messageRetention.days && messageRetention.days * dayMs;
}
