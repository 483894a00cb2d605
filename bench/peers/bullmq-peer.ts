// BullMQ: a job queue in the same Redis. Every job has an id of its own choosing; one sent again is not added.

import { randomUUID } from "node:crypto";
import { Queue } from "bullmq";
import { createClient } from "redis";
import { createClientIds } from "../load/client-ids.ts";
import { installedVersion } from "./installed-version.ts";
import type { Peer } from "./peer.ts";
import { describePersistence } from "./redis-peer.ts";

const job = "bench";

export async function openBullMq(url: string): Promise<Peer> {
  const client = createClient({ url, socket: { connectTimeout: 2_000, reconnectStrategy: false } });
  client.on("error", () => undefined);
  await client.connect();
  const queue = new Queue(`bench-${randomUUID()}`, { connection: client });
  queue.on("error", () => undefined);
  await queue.waitUntilReady();
  const nextId = createClientIds("time_ordered");
  const data = (body: Buffer) => ({ body: body.toString("latin1") });
  return {
    version: installedVersion("bullmq"),
    durability: `same Redis: ${await describePersistence(client)}; an id is remembered while its job is there`,
    send: (body) => queue.add(job, data(body), { jobId: nextId() }),
    sendBatch: (bodies) =>
      queue.addBulk(bodies.map((body) => ({ name: job, data: data(body), opts: { jobId: nextId() } }))),
    close: async () => {
      await queue.obliterate({ force: true });
      await queue.close();
      if (client.isOpen) client.destroy();
    },
  };
}
