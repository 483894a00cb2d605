// RabbitMQ: one quorum queue and publisher confirms. It has no memory for ids: a message sent again is there twice.
import { randomUUID } from "node:crypto";
import { connect } from "amqplib";
import { createClientIds } from "../load/client-ids.ts";
import type { Peer } from "./peer.ts";

export async function openRabbitMq(url: string): Promise<Peer> {
  const connection = await connect(url, { timeout: 2_000 });
  connection.on("error", () => undefined);
  const channel = await connection.createConfirmChannel();
  const queue = `bench-${randomUUID()}`;
  await channel.assertQueue(queue, { durable: true, arguments: { "x-queue-type": "quorum" } });
  const nextId = createClientIds("time_ordered");
  const { version } = connection.connection.serverProperties as { version?: unknown };
  return {
    version: String(version),
    durability:
      "one quorum queue of one member, persistent messages, publisher confirms: a confirm follows the write to the Raft log, whose flushes are shared by what is in flight; no memory for ids",
    send: (body) =>
      new Promise<void>((resolve, reject) => {
        const options = { persistent: true, messageId: nextId() };
        channel.sendToQueue(queue, body, options, (error: unknown) => (error ? reject(error) : resolve()));
      }),
    close: async () => {
      await channel.deleteQueue(queue);
      await connection.close();
    },
  };
}
