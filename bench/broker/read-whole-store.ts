// Brings a store's pages into memory, where a server that is in use has them. Between the rounds of a long run a machine
// may have given that memory to something else, and a round would then measure its disk.
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import pg from "pg";
import type { StorePlace } from "./store-place.ts";

const readBytes = 4 * 1_048_576;

export async function readWholeStore(place: StorePlace): Promise<void> {
  if (place.kind === "postgres") return readDatabase(place.url);
  await pipeline(createReadStream(place.path, { highWaterMark: readBytes }), async (chunks) => {
    for await (const _ of chunks);
  });
}

async function readDatabase(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query("CREATE EXTENSION IF NOT EXISTS pg_prewarm");
    await client.query(
      `SELECT pg_prewarm(c.oid::regclass, 'read') FROM pg_class c
       WHERE c.relnamespace = 'mesh'::regnamespace AND c.relkind IN ('r', 'i') AND c.relpages > 0`,
    );
  } finally {
    await client.end();
  }
}
