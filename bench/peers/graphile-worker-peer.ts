// graphile-worker: a job queue in the same PostgreSQL. Every job has a key, so that one sent again replaces the first while
// that waits.

import { randomBytes } from "node:crypto";
import { createUlidGenerator } from "@claudemesh/protocol/ids";
import { Logger, makeWorkerUtils } from "graphile-worker";
import pg from "pg";
import { installedVersion } from "./installed-version.ts";
import type { Peer } from "./peer.ts";

const task = "bench";
const connections = 20;

export async function openGraphileWorker(url: string): Promise<Peer> {
  // A server takes so many connections in all: between its own segments a peer leaves them to others.
  const pgPool = new pg.Pool({ connectionString: url, max: connections, idleTimeoutMillis: 1_000 });
  pgPool.on("error", () => undefined);
  pgPool.on("connect", (client) => client.on("error", () => undefined));
  const utils = await makeWorkerUtils({ pgPool, logger: new Logger(() => () => undefined) });
  await utils.migrate();
  const nextKey = createUlidGenerator({ nowMs: Date.now, randomBytes });
  const payload = (body: Buffer) => ({ body: body.toString("latin1") });
  return {
    version: installedVersion("graphile-worker"),
    durability: `same PostgreSQL, fsync and synchronous_commit on, ${connections} connections; one job row per message, found again by its key while it is there`,
    send: (body) => utils.addJob(task, payload(body), { jobKey: nextKey() }),
    sendBatch: (bodies) =>
      utils.addJobs(bodies.map((body) => ({ identifier: task, payload: payload(body), jobKey: nextKey() }))),
    close: async () => {
      await utils.release();
      await pgPool.end();
    },
  };
}
