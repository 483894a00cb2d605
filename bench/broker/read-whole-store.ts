// Brings a store into the state in which a server that is in use has it. Between the rounds of a long run a machine may
// have given the memory of its pages to something else, and a round would then measure its disk; and processes that were
// killed have left a log on SQLite, all of which the next one would have to move once more.
import { createReadStream } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { pipeline } from "node:stream/promises";
import pg from "pg";
import type { StoreLocation } from "./store-location.ts";

const readBytes = 4 * 1_048_576;

export async function readWholeStore(location: StoreLocation): Promise<void> {
  if (location.kind === "postgres") return readDatabase(location.url);
  moveLog(location.path);
  await pipeline(createReadStream(location.path, { highWaterMark: readBytes }), async (chunks) => {
    for await (const _ of chunks);
  });
}

function moveLog(path: string): void {
  const db = new DatabaseSync(path);
  try {
    const { busy } = db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get() ?? {};
    if (busy !== 0) throw new Error(`another process has ${path} open`);
  } finally {
    db.close();
  }
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
