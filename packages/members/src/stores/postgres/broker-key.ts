// The broker's key on PostgreSQL: one row that the first broker of the store makes and all of them share.
// Why: docs/decisions/0121.
import type { Postgres } from "@claudemesh/storage/postgres";

/** The seed of the store's key in hex. Of several brokers that start at once one makes it, and the others read it. */
export async function ensureBrokerSeed(postgres: Postgres, mint: () => string): Promise<string> {
  const existing = await readSeed(postgres);
  if (existing !== undefined) return existing;
  await postgres.transaction(async (tx) => {
    await tx.execute("INSERT INTO mesh.broker_key (seed) VALUES ($1) ON CONFLICT DO NOTHING", [
      Buffer.from(mint(), "hex"),
    ]);
  });
  const stored = await readSeed(postgres);
  if (stored === undefined) throw new Error("The broker's key was written and cannot be read back.");
  return stored;
}

async function readSeed(postgres: Postgres): Promise<string | undefined> {
  const [row] = await postgres.read<{ seed: string }>("SELECT encode(seed, 'hex') AS seed FROM mesh.broker_key");
  return row?.seed;
}
