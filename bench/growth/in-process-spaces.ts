// A space without any transport: the broker's own services on the broker's own backend. First filled to so many revisions,
// then, by this process or a later one, committed to and read at moments of its past. Arguments: the store as JSON, the
// mesh, a member of it, and the revisions that are there or shall be.
import { randomBytes } from "node:crypto";
import process from "node:process";
import { createUuidV7Generator } from "@claudemesh/protocol/ids";
import type { SpacePorts } from "@claudemesh/spaces/ports";
import { commitToSpace } from "@claudemesh/spaces/services/commit/commit";
import { openSession } from "@claudemesh/spaces/services/open-session";
import { readEntity } from "@claudemesh/spaces/services/query";
import { SessionTurns } from "@claudemesh/spaces/services/session-turns";
import { createSpace } from "@claudemesh/spaces/services/spaces";
import { openStore, type StoreLocation } from "../broker/store-location.ts";
import { Latencies, type LatencyFigures } from "../load/latencies.ts";
import { serveOrders } from "../processes/orders.ts";

export type SpaceOrder =
  | { readonly do: "fill" }
  | { readonly do: "commit" | "read"; readonly outstanding: number; readonly durationMs: number };

export type SpaceResult = LatencyFigures & { readonly answered: number; readonly perSecond: number };

/** How often each entity was written before anything is measured. */
const revisionsEach = 10;
const operationsPerCommit = 1_000;
const text = "x".repeat(100);

const [locationJson, meshId, memberPubkey = "", revisions] = process.argv.slice(2);
if (locationJson === undefined || meshId === undefined || revisions === undefined) {
  throw new Error("give the store as JSON, a mesh, a member and how many revisions there are");
}
const entities = Math.ceil(Number(revisions) / revisionsEach);
/** A pass writes every entity once; after the first one all of them are there. */
const commitsPerPass = Math.ceil(entities / operationsPerCommit);
const backend = await openStore(JSON.parse(locationJson) as StoreLocation);
const nextId = createUuidV7Generator({ nowMs: Date.now, randomBytes });
const ports: SpacePorts = {
  store: backend.spaces,
  sends: { prepare: async () => [], onAccepted: () => undefined },
  nowMs: Date.now,
  nextId,
  randomBytes,
  onCommitted: () => undefined,
  onSessionTaken: () => undefined,
  turns: new SessionTurns(),
};
const space = { meshId, spaceId: "growth" };
await createSpace(ports, space, { signedWrites: "optional", createdBy: memberPubkey });

const writers: Writer[] = [];

const entityId = (n: number) => `entity:${String(n).padStart(9, "0")}`;

/** One session and its commits, one after the other. */
class Writer {
  readonly #session: { readonly sessionId: string; readonly sessionToken: string };
  #localSeq = 0;
  #seenSeq: number;

  private constructor(session: { readonly sessionId: string; readonly sessionToken: string }, seenSeq: number) {
    this.#session = session;
    this.#seenSeq = seenSeq;
  }

  static async open(): Promise<Writer> {
    const session = await openSession(ports, space, memberPubkey, { openId: nextId() });
    return new Writer(session, session.seq);
  }

  /** Entities that no other session writes: what was read up to the last own commit still holds. */
  async write(numbers: readonly number[], reads: boolean): Promise<number> {
    const { sessionId, sessionToken } = this.#session;
    this.#localSeq += 1;
    const seq = this.#seenSeq;
    const confirmed = reads ? numbers.map((n) => ({ id: entityId(n), path: ["value"], seq })) : [];
    const value = { value: { written: this.#localSeq, text } };
    const commit = {
      localSeq: this.#localSeq,
      reads: { confirmed, pending: [] },
      operations: numbers.map((n) => ({ op: "set" as const, id: entityId(n), value })),
    };
    const verdict = await commitToSpace(ports, space, memberPubkey, { sessionId, sessionToken, commit });
    if (verdict.type !== "accepted") throw new Error(`a commit was ${verdict.type}`);
    this.#seenSeq = verdict.seq;
    return verdict.seq;
  }
}

/** Through commits like any other, only larger. */
async function fill(): Promise<SpaceResult> {
  const writer = await Writer.open();
  const startedAtMs = performance.now();
  const latencies = new Latencies();
  for (let at = 0; at < revisionsEach * commitsPerPass; at++) {
    const from = (at % commitsPerPass) * operationsPerCommit;
    const count = Math.min(operationsPerCommit, entities - from);
    const numbers = Array.from({ length: count }, (_, each) => from + each);
    const nowMs = performance.now();
    await writer.write(numbers, false);
    latencies.add(performance.now() - nowMs);
  }
  const answered = entities * revisionsEach;
  return { answered, perSecond: answered / ((performance.now() - startedAtMs) / 1_000), ...latencies.figures() };
}

async function measure(order: Extract<SpaceOrder, { outstanding: number }>): Promise<SpaceResult> {
  const { outstanding, durationMs } = order;
  while (writers.length < outstanding) writers.push(await Writer.open());
  const latencies = new Latencies();
  const startedAtMs = performance.now();
  const callers = writers.slice(0, outstanding).map(async (writer, caller) => {
    for (let nowMs = performance.now(); nowMs - startedAtMs < durationMs; ) {
      if (order.do === "commit") await writer.write([ownEntity(caller, outstanding)], true);
      else await readThen();
      const answeredAtMs = performance.now();
      latencies.add(answeredAtMs - nowMs);
      nowMs = answeredAtMs;
    }
  });
  await Promise.all(callers);
  const perSecond = latencies.count / ((performance.now() - startedAtMs) / 1_000);
  return { answered: latencies.count, perSecond, ...latencies.figures() };
}

/** Any of those whose number leaves this caller's number. */
function ownEntity(caller: number, callers: number): number {
  return caller + callers * Math.floor(Math.random() * Math.floor(entities / callers));
}

/** Any entity at any moment at which it was there. */
async function readThen(): Promise<void> {
  const atSeq = commitsPerPass + Math.floor(Math.random() * ((revisionsEach - 1) * commitsPerPass + 1));
  const { document } = await readEntity(ports, space, entityId(Math.floor(Math.random() * entities)), { atSeq });
  if (document === undefined) throw new Error(`an entity was not there at ${atSeq}`);
}

serveOrders<SpaceOrder, SpaceResult>((order) => (order.do === "fill" ? fill() : measure(order)));
