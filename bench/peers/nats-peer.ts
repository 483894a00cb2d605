// NATS JetStream: a stream in files, with message ids for its own duplicate window.
import { randomUUID } from "node:crypto";
import { jetstream, jetstreamManager, StorageType } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { createClientIds } from "../load/client-ids.ts";
import type { Peer } from "./peer.ts";

export async function openNats(servers: string): Promise<Peer> {
  const connection = await connect({ servers, timeout: 2_000, reconnect: false });
  const name = `bench_${randomUUID().slice(0, 8)}`;
  const manager = await jetstreamManager(connection);
  await manager.streams.add({ name, subjects: [name], storage: StorageType.File, num_replicas: 1 });
  const stream = jetstream(connection);
  const nextId = createClientIds("time_ordered");
  return {
    version: connection.info?.version ?? "unknown",
    durability:
      "file storage, one replica, sync_interval as the server has it (two minutes unless configured): a publish is acknowledged before it is flushed, 0 flushes per operation; message ids are remembered for two minutes",
    send: (body) => stream.publish(name, body, { msgID: nextId() }),
    close: async () => {
      await manager.streams.delete(name);
      await connection.close();
    },
  };
}
