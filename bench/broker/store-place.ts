// Where a broker's data is, for processes of the benchmark that open it the way the broker does: the product's own
// backend with its limiter, the limit raised, and nothing logged.

import { copyFileSync } from "node:fs";
import { readBrokerConfig } from "@claudemesh/broker/config";
import type { Backend, BackendSurroundings } from "@claudemesh/broker/testing/backend";
import { openBackend } from "@claudemesh/broker/testing/open-backend";
import type { FailpointName } from "@claudemesh/storage/failpoint-names";
import type { Failpoints } from "@claudemesh/storage/failpoints";

export type StorePlace =
  | { readonly kind: "sqlite"; readonly path: string }
  | { readonly kind: "postgres"; readonly url: string; readonly redisUrl: string };

export type StoreKind = StorePlace["kind"];

/** On, and never in the way. */
export const raisedLimit = "100000000/60s";

/** For a broker on the rows that another process has open: of a SQLite file a copy, since one process at a time has it. */
export function placeForBroker(place: StorePlace): StorePlace {
  if (place.kind === "postgres") return place;
  const path = `${place.path}-served.db`;
  copyFileSync(place.path, path);
  return { kind: "sqlite", path };
}

/** The flags of `broker serve` that name this store. */
export function storeFlags(place: StorePlace): Readonly<Record<string, string>> {
  if (place.kind === "sqlite") return { store: `sqlite:${place.path}` };
  return { store: place.url, redis: place.redisUrl };
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

export function openStore(place: StorePlace): Promise<Backend> {
  const config = readBrokerConfig({ ...storeFlags(place), "rate-limit": raisedLimit }, {}, undefined);
  return openBackend({ config, failpoints: noFailpoints, log: silentLog() });
}
