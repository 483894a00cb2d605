// What a broker can be told, once: each option's flag, environment variable and broker.toml key, in that order of
// precedence. Read in one place at start and passed down.
import { readFileSync } from "node:fs";
import { parseRateLimit, type RateLimit } from "@claudemesh/messages/rate-limit";
import {
  type ConnectionPolicy,
  connectionPolicies,
  type DedupeParameters,
  dedupeRetentionDaysFloor,
} from "@claudemesh/protocol/features";
import { limits } from "@claudemesh/protocol/messages/limits";
import { parse as parseToml } from "smol-toml";

export const logLevels = ["trace", "debug", "info", "warn", "error", "silent"] as const;
export type BrokerLogLevel = (typeof logLevels)[number];

export type BrokerConfig = {
  readonly listen: { readonly host: string; readonly port: number };
  /** Path of the SQLite file. */
  readonly storePath: string;
  readonly rateLimit: RateLimit;
  readonly inlineBytes: number;
  readonly dedupe: DedupeParameters;
  readonly connectionPolicy: ConnectionPolicy;
  readonly logLevel: BrokerLogLevel;
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
  readonly fallback: string;
  readonly expects: string;
  readonly parse: (text: string) => T | undefined;
};

const option = <T>(
  flag: string,
  fallback: string,
  expects: string,
  parse: (text: string) => T | undefined,
): Option<T> => ({
  flag,
  key: flag.replaceAll("-", "_"),
  env: `CLAUDEMESH_${flag.replaceAll("-", "_").toUpperCase()}`,
  fallback,
  expects,
  parse,
});

const oneOf =
  <T extends string>(values: readonly T[]) =>
  (text: string): T | undefined =>
    values.find((value) => value === text);

/** In the order that help shows them. */
export const brokerOptions = {
  listen: option("listen", "127.0.0.1:7600", "host:port, port 0 picks a free one", parseListen),
  storePath: option("store", "sqlite:./broker.db", "sqlite:<path>", parseStore),
  rateLimit: option("rate-limit", "6000/60s", "<messages>/<seconds>s, per mesh", parseRateLimit),
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
  connectionPolicy: option(
    "connection-policy",
    "prefer_newest",
    connectionPolicies.join(", "),
    oneOf(connectionPolicies),
  ),
  logLevel: option("log-level", "info", logLevels.join(", "), oneOf(logLevels)),
} as const;

export type BrokerFlags = { readonly [flag: string]: string | undefined };

export function readBrokerConfig(
  flags: BrokerFlags,
  env: Readonly<Record<string, string | undefined>>,
  tomlPath: string | undefined,
): BrokerConfig {
  const toml = tomlPath === undefined ? {} : readToml(tomlPath);
  const read = <T>(known: Option<T>): T => {
    const [text, origin] = sourceOf(known, flags, env, toml);
    const value = known.parse(text);
    if (value === undefined) throw new BrokerConfigError(`${origin} is "${text}"; it takes ${known.expects}.`);
    return value;
  };
  return {
    listen: read(brokerOptions.listen),
    storePath: read(brokerOptions.storePath),
    rateLimit: read(brokerOptions.rateLimit),
    inlineBytes: read(brokerOptions.inlineBytes),
    dedupe: read(brokerOptions.dedupe),
    connectionPolicy: read(brokerOptions.connectionPolicy),
    logLevel: read(brokerOptions.logLevel),
    failpoints: env.CLAUDEMESH_FAILPOINTS ?? "",
  };
}

function sourceOf(
  known: Option<unknown>,
  flags: BrokerFlags,
  env: Readonly<Record<string, string | undefined>>,
  toml: Readonly<Record<string, string>>,
): [text: string, origin: string] {
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
    throw new BrokerConfigError(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  const keys = new Set<string>(Object.values(brokerOptions).map((known) => known.key));
  const settings: Record<string, string> = {};
  for (const [key, value] of Object.entries(table)) {
    if (!keys.has(key)) {
      throw new BrokerConfigError(`${path} has the unknown key ${key}; it takes ${[...keys].join(", ")}.`);
    }
    if (typeof value !== "string" && typeof value !== "number") {
      throw new BrokerConfigError(`${key} in ${path} must be a string or a number.`);
    }
    settings[key] = String(value);
  }
  return settings;
}

function parseListen(text: string): BrokerConfig["listen"] | undefined {
  const match = /^(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):([0-9]{1,5})$/.exec(text);
  if (match?.[1] === undefined) return undefined;
  const port = Number(match[2]);
  if (port > 65_535) return undefined;
  return { host: match[1].replace(/^\[|\]$/g, ""), port };
}

function parseStore(text: string): string | undefined {
  return text.startsWith("sqlite:") && text.length > 7 ? text.slice(7) : undefined;
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
