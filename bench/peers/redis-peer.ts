// Redis streams: a Lua script that keeps the id and appends the message in one step, so that an id sent again appends
// nothing.
import { randomUUID } from "node:crypto";
import { createClient, type RedisClientType } from "redis";
import { createClientIds } from "../load/client-ids.ts";
import type { Peer } from "./peer.ts";

const script = `
if redis.call('SET', KEYS[2], '', 'NX', 'EX', 3600) then
  return redis.call('XADD', KEYS[1], '*', 'body', ARGV[1])
end
return false`;

export async function openRedisStream(url: string): Promise<Peer> {
  const client = createClient({ url, socket: { connectTimeout: 2_000, reconnectStrategy: false } });
  client.on("error", () => undefined);
  await client.connect();
  const prefix = `bench:{${randomUUID()}}`;
  const sha = await client.scriptLoad(script);
  const nextId = createClientIds("time_ordered");
  const version = /redis_version:(\S+)/.exec(await client.info("server"))?.[1] ?? "unknown";
  return {
    version,
    durability: `${await describePersistence(client)}; ids are remembered for an hour`,
    send: async (body) => {
      const keys = [`${prefix}:stream`, `${prefix}:id:${nextId()}`];
      const entry = await client.evalSha(sha, { keys, arguments: [body.toString("latin1")] });
      if (typeof entry !== "string") throw new Error("the stream took no entry");
    },
    close: async () => {
      for await (const keys of client.scanIterator({ MATCH: `${prefix}*`, COUNT: 10_000 })) {
        if (keys.length > 0) await client.unlink(keys);
      }
      client.destroy();
    },
  };
}

/** What this server does with what it was given, before and after it answers. */
export async function describePersistence(client: Pick<RedisClientType, "configGet">): Promise<string> {
  const { appendonly = "?" } = await client.configGet("appendonly");
  const { appendfsync = "?" } = await client.configGet("appendfsync");
  const { save = "" } = await client.configGet("save");
  return appendonly === "no" && save === ""
    ? "persistence is off (appendonly no, no save): in memory alone, 0 flushes per operation"
    : `appendonly ${appendonly} (appendfsync ${appendfsync}), save "${save}"`;
}
