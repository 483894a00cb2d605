// The registrar's statements alone on PostgreSQL: those of a registration as the product makes it, one registration after
// the other on each of so many bare connections. No decision, no digest, no pool. Arguments: the store as JSON, and the
// mesh.
import process from "node:process";
import { createPostgresRegistrarStore } from "@claudemesh/registrar/postgres";
import { openPostgres, type Postgres, type PostgresTransaction } from "@claudemesh/storage/postgres";
import pg from "pg";
import type { StoreLocation } from "../broker/store-location.ts";
import { createClientIds } from "../load/client-ids.ts";
import { Latencies } from "../load/latencies.ts";
import { serveOrders } from "../processes/orders.ts";
import { approveAll, type RegistrarMesh, registrarPorts } from "./bench-registration.ts";
import { idsOf } from "./bench-request.ts";
import { RegistrationRecorder, type RegistrationValues, valuesOf } from "./recorded-registration.ts";
import { approvalsPerStep, type RegistrarOrder, type RegistrarResult } from "./registrar-order.ts";

const [locationJson, meshJson] = process.argv.slice(2);
const location = JSON.parse(locationJson ?? "null") as StoreLocation | null;
const mesh = JSON.parse(meshJson ?? "null") as RegistrarMesh | null;
if (location?.kind !== "postgres" || mesh === null)
  throw new Error("give the location of a PostgreSQL store and the mesh");
const owned: RegistrarMesh = mesh;

/** As many as the product has for them. */
const connections = 8;
const postgres = openPostgres({ url: location.url, poolSize: connections, onIdleError: () => undefined });
const recorder = new RegistrationRecorder();
const { steps, bind } = await recorder.record(createPostgresRegistrarStore(recording(postgres)), owned);
const store = createPostgresRegistrarStore(postgres);

/** A pool that reports to the recorder what it is asked. */
function recording(pool: Postgres): Postgres {
  const record = async <R>(
    text: string,
    values: readonly unknown[] = [],
    name: string | undefined,
    ask: () => Promise<R>,
  ) => {
    recorder.sent({ text, name, reads: true, values });
    try {
      return await ask();
    } finally {
      recorder.answered();
    }
  };
  const recorded = (tx: PostgresTransaction): PostgresTransaction => ({
    query: (text, values, name) => record(text, values, name, () => tx.query(text, values, name)),
    execute: (text, values, name) => record(text, values, name, () => tx.execute(text, values, name)),
    script: () => Promise.reject(new Error("no registration runs a script")),
  });
  const read: Postgres["read"] = (text, values, name) =>
    record(text, values, name, () => pool.read(text, values, name));
  const transaction: Postgres["transaction"] = (body) =>
    pool.transaction(async (tx) => {
      recorder.begin(true);
      const result = await body(recorded(tx));
      recorder.end();
      return result;
    });
  return { read, transaction } as unknown as Postgres;
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, pipeline: true } as pg.ClientConfig);
  await client.connect();
  const { rows } = await client.query<{ synchronous_commit: string }>("SHOW synchronous_commit");
  if (rows[0]?.synchronous_commit !== "on") throw new Error("PostgreSQL is not at synchronous_commit on");
  return client;
}

const clients = await Promise.all(Array.from({ length: connections }, () => connect(location.url)));
const prepared = steps.map(({ inTransaction, groups }) => ({
  inTransaction,
  groups: groups.map((group) => group.map((statement) => ({ ...statement, bind: bind(statement) }))),
}));

async function registerOne(client: pg.Client, row: RegistrationValues): Promise<void> {
  for (const { inTransaction, groups } of prepared) {
    // The first statements travel behind BEGIN, as the product's do.
    const begun = inTransaction ? client.query("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE") : undefined;
    for (const group of groups) {
      const sent = group.map(({ text, name, bind: valuesFor }) =>
        client.query({ text, values: valuesFor(row), ...(name === undefined ? {} : { name }) }),
      );
      await Promise.all([begun, ...sent]);
    }
    if (inTransaction) await client.query("COMMIT");
  }
}

const nextId = createClientIds("time_ordered");
const ports = registrarPorts(store);

async function approveSome(): Promise<RegistrationValues[]> {
  const wanted = Array.from({ length: approvalsPerStep }, () => idsOf(nextId()));
  await approveAll({ store, isSignedBy: ports.isSignedBy }, owned, wanted);
  return wanted.map((ids) => valuesOf(ids, owned.keys.ed25519.public_key));
}

async function runForAWhile({ callers, durationMs }: RegistrarOrder): Promise<RegistrarResult> {
  const times = new Latencies();
  let busyMs = 0;
  while (busyMs < durationMs) {
    const rows = await approveSome();
    const startedAtMs = performance.now();
    const endsAtMs = startedAtMs + durationMs - busyMs;
    const work = clients.slice(0, callers).map(async (client) => {
      for (let nowMs = performance.now(); nowMs < endsAtMs; ) {
        const row = rows.pop();
        if (row === undefined) return;
        await registerOne(client, row);
        const answeredAtMs = performance.now();
        times.add(answeredAtMs - nowMs);
        nowMs = answeredAtMs;
      }
    });
    await Promise.all(work);
    busyMs += performance.now() - startedAtMs;
  }
  return { answered: times.count, perSecond: times.count / (busyMs / 1_000), ...times.figures() };
}

serveOrders<RegistrarOrder, RegistrarResult>(runForAWhile);
