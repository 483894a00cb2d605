// Where a broker's data is, for processes of the benchmark that open it the way the broker does: the product's own
// backend with its limiter, the limit raised, and nothing logged.

import { copyFileSync } from "node:fs";
import { readBrokerConfig } from "@claudemesh/broker/config";
import type { Backend, BackendSurroundings } from "@claudemesh/broker/testing/backend";
import { openBackend } from "@claudemesh/broker/testing/open-backend";
import type { FailpointName } from "@claudemesh/storage/failpoint-names";
import type { Failpoints } from "@claudemesh/storage/failpoints";

export type StoreLocation =
  | { readonly kind: "sqlite"; readonly path: string }
  | { readonly kind: "postgres"; readonly url: string; readonly redisUrl: string };

export type StoreKind = StoreLocation["kind"];

/** On, and never in the way. */
export const raisedLimit = "100000000/60s";

/** For a broker on the rows that another process has open: of a SQLite file a copy, since one process at a time has it. */
export function locationForBroker(location: StoreLocation): StoreLocation {
  if (location.kind === "postgres") return location;
  const path = `${location.path}-served.db`;
  copyFileSync(location.path, path);
  return { kind: "sqlite", path };
}

/** The flags of `broker serve` that name this store. */
export function storeFlags(location: StoreLocation): Readonly<Record<string, string>> {
  if (location.kind === "sqlite") return { store: `sqlite:${location.path}` };
  return { store: location.url, redis: location.redisUrl };
}

const noFailpoints: Failpoints<FailpointName> = {
  active: false,
  hit: () => undefined,
  hitSync: () => undefined,
  describe: () => "",
};

function silentLog(): BackendSurroundings["log"] {
  const silent = () => undefined;
  const levels = { trace: silent, debug: silent, info: silent, warn: silent, error: silent, fatal: silent, silent };
  return levels as unknown as BackendSurroundings["log"];
}

export function openStore(location: StoreLocation): Promise<Backend> {
  const config = readBrokerConfig({ ...storeFlags(location), "rate-limit": raisedLimit }, {}, undefined);
  return openBackend({ config, failpoints: noFailpoints, log: silentLog() });
}
