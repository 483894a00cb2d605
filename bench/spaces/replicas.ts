// The process that holds replicas: two of one member whose transactions are timed, one over few entities and one over many,
// or very many that watch one entity. Connects to a broker that is there already.
import { performance } from "node:perf_hooks";
import { identityOf, type MemberKeys } from "@claudemesh/client/keys";
import { connectSpaces, type Space, type SpaceClient } from "@claudemesh/client/space";
import { Latencies, type LatencyFigures } from "../load/latencies.ts";
import { serveOrders } from "../processes/orders.ts";
import { benchDocument, entityOf } from "./bench-commit.ts";

export type ReplicaSize = "small" | "large";

export type ReplicasOrder =
  | { readonly do: "connect"; readonly url: string; readonly meshId: string; readonly keys: MemberKeys }
  /** Makes a space with so many entities and holds all of them. */
  | { readonly do: "fill"; readonly size: ReplicaSize; readonly entities: number }
  /** Transactions on both in turn, each waiting for its verdict before the next one begins. */
  | { readonly do: "transact"; readonly durationMs: number }
  /** So many connections, each with a session that watches one entity. */
  | { readonly do: "watch"; readonly watchers: number }
  /** One commit to that entity, until the last watcher has it. */
  | { readonly do: "tell" };

export type ReplicasResult = {
  /** From the transaction's call to its notification. */
  readonly applied?: Readonly<Record<ReplicaSize, LatencyFigures>>;
  readonly verdictMs?: number;
  readonly lastSyncMs?: number;
};

type Filled = { readonly space: Space; readonly entities: number };
const perCommit = 100;
const connectingAtOnce = 16;
const watched = "note:1";
const clients: SpaceClient[] = [];
const filled = new Map<ReplicaSize, Filled>();
let connect: () => SpaceClient = () => {
  throw new Error("connect first");
};
let onUpdate: (n: number) => void = () => undefined;
let onNotified: () => void = () => undefined;
let updates = 0;

async function fill(size: ReplicaSize, entities: number): Promise<ReplicasResult> {
  const client = connect();
  const space = await client.space(`replica-${size}`, { create: true });
  for (let first = 0; first < entities; first += perCommit) {
    const ids = Array.from({ length: Math.min(perCommit, entities - first) }, (_, at) => entityOf(first + at));
    await space.transact((tx) => {
      for (const id of ids) tx.set(id, benchDocument);
    });
  }
  space.subscribePrefix("task:", (_id, _document, cause) => {
    if (cause === "commit") onNotified();
  });
  await space.get(entityOf(0));
  filled.set(size, { space, entities });
  return {};
}

async function transactForAWhile(durationMs: number): Promise<ReplicasResult> {
  const small = new Latencies();
  const large = new Latencies();
  const startedAtMs = performance.now();
  for (let turn = 0; performance.now() - startedAtMs < durationMs; turn++) {
    await transactOnce(filled.get("small"), small, turn);
    await transactOnce(filled.get("large"), large, turn);
  }
  return { applied: { small: small.figures(), large: large.figures() } };
}

async function transactOnce(on: Filled | undefined, latencies: Latencies, turn: number): Promise<void> {
  if (on === undefined) throw new Error("fill both spaces first");
  const id = entityOf(Math.floor(Math.random() * on.entities));
  let notifiedAtMs = 0;
  onNotified = () => {
    notifiedAtMs = performance.now();
  };
  const startedAtMs = performance.now();
  const settled = on.space.transact((tx) => {
    const n = tx.get<typeof benchDocument>(id)?.value.n ?? 0;
    tx.patch(id, [{ op: "replace", path: "/value/n", value: n + turn + 1 }]);
  });
  if (notifiedAtMs === 0) throw new Error("a transaction's own subscriber was not notified at once");
  latencies.add(notifiedAtMs - startedAtMs);
  await settled;
}

async function watch(watchers: number): Promise<ReplicasResult> {
  let next = clients.length;
  const connecting = Array.from({ length: connectingAtOnce }, async () => {
    while (next < watchers) {
      next += 1;
      const client = connect();
      const space = await client.space("watched", { create: true });
      await space.get(watched);
      space.subscribe(watched, (document) => {
        onUpdate((document as { readonly value: { readonly n: number } } | undefined)?.value.n ?? -1);
      });
    }
  });
  await Promise.all(connecting);
  return {};
}

async function update(): Promise<ReplicasResult> {
  const [first] = clients;
  if (first === undefined) throw new Error("no replica watches");
  const space = await first.space("watched");
  const number = ++updates;
  const { promise: allUpdated, resolve } = Promise.withResolvers<void>();
  let missing = clients.length;
  onUpdate = (n) => {
    if (n !== number) return;
    missing -= 1;
    if (missing === 0) resolve();
  };
  const startedAtMs = performance.now();
  await space.transact((tx) => tx.set(watched, { value: { n: number } }));
  const verdictMs = performance.now() - startedAtMs;
  await allUpdated;
  return { verdictMs, lastSyncMs: performance.now() - startedAtMs };
}

serveOrders<ReplicasOrder, ReplicasResult>((order) => {
  switch (order.do) {
    case "connect":
      connect = () => {
        const identity = identityOf(order.keys, order.meshId);
        const client = connectSpaces({ url: order.url, identity, agent: "bench/1" });
        clients.push(client);
        return client;
      };
      return {};
    case "fill":
      return fill(order.size, order.entities);
    case "transact":
      return transactForAWhile(order.durationMs);
    case "watch":
      return watch(order.watchers);
    case "tell":
      return update();
  }
});
