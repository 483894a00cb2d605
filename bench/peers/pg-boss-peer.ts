// pg-boss: a job queue in the same PostgreSQL. Every job has an id of its own choosing, so that one sent again is refused.
import { randomBytes } from "node:crypto";
import { createUuidV7Generator } from "@claudemesh/protocol/ids";
import { PgBoss } from "pg-boss";
import { installedVersion } from "./installed-version.ts";
import type { Peer } from "./peer.ts";

const queue = "bench";
const connections = 20;

export async function openPgBoss(url: string): Promise<Peer> {
  // A server takes so many connections in all: between its own segments a peer leaves them to others.
  const pool = { connectionString: url, max: connections, idleTimeoutMillis: 1_000 };
  const boss = new PgBoss({ ...pool, supervise: false, schedule: false });
  boss.on("error", () => undefined);
  await boss.start();
  await boss.createQueue(queue);
  const nextId = createUuidV7Generator({ nowMs: Date.now, randomBytes });
  const job = (body: Buffer) => ({ data: { body: body.toString("latin1") }, id: nextId() });
  return {
    version: installedVersion("pg-boss"),
    durability: `same PostgreSQL, fsync and synchronous_commit on, ${connections} connections; one job row per message`,
    send: async (body) => {
      const { data, id } = job(body);
      if ((await boss.send(queue, data, { id })) === null) throw new Error("pg-boss took no job");
    },
    sendBatch: (bodies) => boss.insert(queue, bodies.map(job)),
    close: () => boss.stop({ graceful: false, close: true }),
  };
}
