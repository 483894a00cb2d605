// The settings of a running daemon, and reading them again without stopping it. Some take effect at once, because their
// users read them here each time; the others are named in the answer, and wait for a restart. A wrong file changes nothing.
import type { Reloaded } from "@claudemesh/client/daemon";
import { MeshError } from "@claudemesh/protocol/errors";
import type { DaemonConfig } from "../config.ts";
import type { Log } from "../ports.ts";
import { StartRefused } from "../start-refused.ts";

type Reading = (config: DaemonConfig) => unknown;

const live: Readonly<Record<string, Reading>> = {
  "outbox.max_bytes": ({ outbox }) => outbox.maxBytes,
  "outbox.done_retention_days": ({ outbox }) => outbox.doneRetentionDays,
  "inbox.retention_days": ({ inbox }) => inbox.retentionDays,
  "ipc.allowed_origins": ({ ipc }) => ipc.allowedOrigins,
  "ipc.public_health_check": ({ ipc }) => ipc.publicHealthCheck,
};

const fixed: Readonly<Record<string, Reading>> = {
  "outbox.backoff_min_ms": ({ outbox }) => outbox.backoff.minMs,
  "outbox.backoff_max_ms": ({ outbox }) => outbox.backoff.maxMs,
  "outbox.request_timeout_ms": ({ outbox }) => outbox.requestTimeoutMs,
  "outbox.max_age_hours_override": ({ outbox }) => outbox.maxAgeHoursOverride,
  "reconnect.backoff_min_ms": ({ reconnect }) => reconnect.backoff.minMs,
  "reconnect.backoff_max_ms": ({ reconnect }) => reconnect.backoff.maxMs,
  "ipc.tcp_enabled": ({ ipc }) => ipc.tcpEnabled,
  "ipc.max_in_flight": ({ ipc }) => ipc.maxInFlight,
  "ipc.max_streams": ({ ipc }) => ipc.maxStreams,
  "ipc.max_body_bytes": ({ ipc }) => ipc.maxBodyBytes,
  "clone.policy": ({ clone }) => clone.policy,
};

export class LiveSettings {
  /** What the parts that wait for a restart were started with. */
  readonly #atStart: DaemonConfig;
  readonly #read: () => DaemonConfig;
  readonly #log: Log;
  #current: DaemonConfig;

  constructor(config: DaemonConfig, read: () => DaemonConfig, log: Log) {
    this.#atStart = config;
    this.#current = config;
    this.#read = read;
    this.#log = log;
  }

  get current(): DaemonConfig {
    return this.#current;
  }

  /** Throws when the file cannot be understood; then everything stays as it is. */
  reload(): Reloaded {
    const next = this.#readAgain();
    const applied = differences(live, this.#current, next);
    const needs_restart = differences(fixed, this.#atStart, next);
    this.#current = next;
    this.#log.info({ event: "settings_reloaded", applied, needs_restart }, "the settings were read again");
    return { applied, needs_restart };
  }

  #readAgain(): DaemonConfig {
    try {
      return this.#read();
    } catch (error) {
      if (!(error instanceof StartRefused)) throw error;
      const message = `${error.message} The settings stay as they were.`;
      throw new MeshError("invalid_request", message, {}, error);
    }
  }
}

function differences(readings: Readonly<Record<string, Reading>>, before: DaemonConfig, after: DaemonConfig): string[] {
  const text = (value: unknown) => JSON.stringify(value) ?? "";
  return Object.entries(readings)
    .filter(([, read]) => text(read(before)) !== text(read(after)))
    .map(([name]) => name);
}
