// Our accept without any transport: the broker's own service on the broker's own backend, called by so many callers in
// this process, each with one send outstanding. First argument: the store as JSON. Orders say how long and what.
import { randomBytes } from "node:crypto";
import process from "node:process";
import { acceptMessage } from "@claudemesh/messages/services/accept";
import { createUuidV7Generator } from "@claudemesh/protocol/ids";
import { limits } from "@claudemesh/protocol/messages/limits";
import { createClientIds, type IdOrder } from "../load/client-ids.ts";
import { Latencies, type LatencyFigures } from "../load/latencies.ts";
import { serveOrders } from "../processes/orders.ts";
import { benchBody, benchTopic } from "./bench-meshes.ts";
import { drawSeededId, type SeededRange } from "./seeded-ids.ts";
import { openStore, type StoreLocation } from "./store-location.ts";

export type InProcessOrder = {
  readonly meshes: readonly { readonly id: string; readonly sender: string }[];
  readonly outstanding: number;
  readonly durationMs: number;
  readonly ids: IdOrder;
  /** Offers ids again that are stored already; without it every id is new. */
  readonly retryAmong?: SeededRange;
};

export type InProcessResult = LatencyFigures & { readonly answered: number; readonly perSecond: number };

const [locationJson] = process.argv.slice(2);
if (locationJson === undefined) throw new Error("give the store as JSON");
const backend = await openStore(JSON.parse(locationJson) as StoreLocation);
const retentionMs = 365 * 86_400_000;
const ports = {
  store: backend.messages.accepts,
  nowMs: Date.now,
  nextId: createUuidV7Generator({ nowMs: Date.now, randomBytes }),
  inlineBytes: limits.inlineBytes,
  takesUnsealed: async () => true,
  dedupeRetentionMs: retentionMs,
  afterLookUp: () => undefined,
  onAccepted: () => undefined,
};

/** More than are accepted in a second. */
const idsPerSecond = 60_000;

/** Ids come from callers: they are made before time is taken, here as for the rows alone. */
function prepareIds({ ids, retryAmong, durationMs }: InProcessOrder): () => string {
  const nextNew = createClientIds(ids);
  if (retryAmong !== undefined) return () => drawSeededId(ids, retryAmong);
  const prepared = Array.from({ length: Math.ceil((durationMs / 1_000) * idsPerSecond) }, nextNew);
  let used = 0;
  return () => prepared[used++] ?? nextNew();
}

async function acceptForAWhile(order: InProcessOrder): Promise<InProcessResult> {
  const { meshes, outstanding, durationMs, retryAmong } = order;
  const nextId = prepareIds(order);
  const expected = retryAmong === undefined ? "accepted" : "duplicate";
  const latencies = new Latencies();
  const startedAtMs = performance.now();
  const endsAtMs = startedAtMs + durationMs;
  const callers = Array.from({ length: outstanding }, async (_, at) => {
    const mesh = meshes[at % meshes.length];
    if (mesh === undefined) throw new Error("an order names at least one mesh");
    const sender = { meshId: mesh.id, pubkey: mesh.sender };
    const destination = { kind: "topic", ref: benchTopic } as const;
    for (let nowMs = performance.now(); nowMs < endsAtMs; ) {
      const request = { client_message_id: nextId(), destination, body: benchBody };
      const { type } = await acceptMessage(ports, sender, request);
      if (type !== expected) throw new Error(`a send was answered ${type} instead of ${expected}`);
      const answeredAtMs = performance.now();
      latencies.add(answeredAtMs - nowMs);
      nowMs = answeredAtMs;
    }
  });
  await Promise.all(callers);
  const elapsedMs = performance.now() - startedAtMs;
  return { answered: latencies.count, perSecond: latencies.count / (elapsedMs / 1_000), ...latencies.figures() };
}

serveOrders<InProcessOrder, InProcessResult>(acceptForAWhile);
