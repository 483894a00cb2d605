// Our commits and reads without any transport: the broker's own services on the broker's own backend, called by so many
// sessions in this process, each with one commit outstanding. First argument: the store as JSON; second: mesh and member.
import { randomBytes } from "node:crypto";
import process from "node:process";
import { createUuidV7Generator } from "@claudemesh/protocol/ids";
import type { SpacePorts } from "@claudemesh/spaces/ports";
import type { SpaceRef } from "@claudemesh/spaces/ports/rows";
import { commitToSpace, type Verdict } from "@claudemesh/spaces/services/commit/commit";
import { openSession } from "@claudemesh/spaces/services/open-session";
import { readEntity } from "@claudemesh/spaces/services/query";
import { SessionTurns } from "@claudemesh/spaces/services/session-turns";
import { createSpace } from "@claudemesh/spaces/services/spaces";
import { openStore, type StoreLocation } from "../broker/store-location.ts";
import { Latencies, type LatencyFigures } from "../load/latencies.ts";
import { serveOrders } from "../processes/orders.ts";
import { type BenchSpace, benchSpace, entityOf, patchField, setDocument } from "./bench-commit.ts";

export type CommitsOrder = {
  readonly do: "commit";
  readonly sessions: number;
  /** Each session has an entity of its own, or all of them write one. */
  readonly entities: "own" | "one";
  readonly durationMs: number;
};

export type HistoryOrder =
  /** Gives an entity so many revisions, each with a seq of its own. */
  | { readonly do: "make_history"; readonly id: string; readonly revisions: number }
  /** Reads it as of seqs drawn from its history, one read after the other. */
  | { readonly do: "read_history"; readonly id: string; readonly durationMs: number };

/** A commit that was refused for a conflict is made again until it is accepted: latencies are those of accepted ones. */
export type CommitsResult = LatencyFigures & {
  readonly accepted: number;
  readonly conflicts: number;
  readonly perSecond: number;
};

type Session = { readonly sessionId: string; readonly sessionToken: string; localSeq: number };

const [locationJson, benchJson] = process.argv.slice(2);
if (locationJson === undefined || benchJson === undefined)
  throw new Error("give the store, and mesh and member, as JSON");
const backend = await openStore(JSON.parse(locationJson) as StoreLocation);
const { meshId, member } = JSON.parse(benchJson) as BenchSpace;
const space: SpaceRef = { meshId, spaceId: benchSpace };
const ports: SpacePorts = {
  store: backend.spaces,
  sends: { prepare: async () => [], onAccepted: () => undefined },
  turns: new SessionTurns(),
  nowMs: Date.now,
  nextId: createUuidV7Generator({ nowMs: Date.now, randomBytes }),
  randomBytes,
  onCommitted: () => undefined,
  onSessionTaken: () => undefined,
};
await createSpace(ports, space, { createdBy: member });
const sessions: Session[] = [];
/** The seq of the last write that this process knows of. */
const lastSeqs = new Map<string, number>();

async function addSession(): Promise<void> {
  const opened = await openSession(ports, space, member, { openId: randomBytes(16).toString("hex") });
  const session = { sessionId: opened.sessionId, sessionToken: opened.sessionToken, localSeq: 1 };
  const id = entityOf(sessions.length);
  const verdict = await commit(session, setDocument(session.localSeq, [id]));
  if (verdict.type !== "accepted") throw verdict.error;
  lastSeqs.set(id, verdict.seq);
  sessions.push(session);
}

function commit({ sessionId, sessionToken }: Session, encoded: ReturnType<typeof patchField>): Promise<Verdict> {
  return commitToSpace(ports, space, member, { sessionId, sessionToken, commit: encoded });
}

/** What the refusal says is there now: the next try reads it. */
function seqInConflict(verdict: Verdict): number {
  if (verdict.type === "accepted") return verdict.seq;
  if (verdict.error.code !== "conflict_error") throw verdict.error;
  const [conflict] = verdict.error.details.conflicts as { readonly actual: { readonly seq: number } }[];
  if (conflict === undefined) throw new Error("a conflict names what conflicts");
  return conflict.actual.seq;
}

async function commitForAWhile(order: CommitsOrder): Promise<CommitsResult> {
  while (sessions.length < order.sessions) await addSession();
  const latencies = new Latencies();
  let conflicts = 0;
  const startedAtMs = performance.now();
  const endsAtMs = startedAtMs + order.durationMs;
  const work = sessions.slice(0, order.sessions).map(async (session, at) => {
    const id = entityOf(order.entities === "own" ? at : 0);
    let seq = lastSeqs.get(id) ?? 0;
    for (let begunAtMs = performance.now(); begunAtMs < endsAtMs; ) {
      session.localSeq += 1;
      const verdict = await commit(session, patchField(session.localSeq, id, seq));
      seq = seqInConflict(verdict);
      if (verdict.type === "rejected") {
        conflicts += 1;
        continue;
      }
      lastSeqs.set(id, Math.max(seq, lastSeqs.get(id) ?? 0));
      const answeredAtMs = performance.now();
      latencies.add(answeredAtMs - begunAtMs);
      begunAtMs = answeredAtMs;
    }
  });
  await Promise.all(work);
  const accepted = latencies.count;
  const perSecond = accepted / ((performance.now() - startedAtMs) / 1_000);
  return { accepted, conflicts, perSecond, ...latencies.figures() };
}

type History = { readonly firstSeq: number; lastSeq: number };
const histories = new Map<string, History>();
const pipelined = 256;

async function makeHistory(id: string, revisions: number): Promise<CommitsResult> {
  const opened = await openSession(ports, space, member, { openId: randomBytes(16).toString("hex") });
  const session: Session = { sessionId: opened.sessionId, sessionToken: opened.sessionToken, localSeq: 0 };
  const next = (seq: number) => {
    session.localSeq += 1;
    const { localSeq } = session;
    return commit(session, localSeq === 1 ? setDocument(localSeq, [id]) : { ...patchField(localSeq, id, seq), reads });
  };
  const reads = { confirmed: [], pending: [] };
  const history: History = { firstSeq: seqInConflict(await next(0)), lastSeq: 0 };
  for (let made = 1; made < revisions; ) {
    const count = Math.min(pipelined, revisions - made);
    const verdicts = await Promise.all(Array.from({ length: count }, () => next(0)));
    history.lastSeq = Math.max(...verdicts.map(seqInConflict));
    made += count;
  }
  histories.set(id, history);
  return { accepted: revisions, conflicts: 0, perSecond: 0, p50Ms: 0, p99Ms: 0 };
}

async function readHistory(id: string, durationMs: number): Promise<CommitsResult> {
  const { firstSeq, lastSeq } = histories.get(id) ?? { firstSeq: 0, lastSeq: 0 };
  const latencies = new Latencies();
  const startedAtMs = performance.now();
  for (let begunAtMs = startedAtMs; begunAtMs - startedAtMs < durationMs; ) {
    const atSeq = firstSeq + Math.floor(Math.random() * (lastSeq - firstSeq + 1));
    const { seq } = await readEntity(ports, space, id, { atSeq });
    if (seq !== atSeq) throw new Error(`${id} was read as of ${seq} instead of ${atSeq}`);
    const readAtMs = performance.now();
    latencies.add(readAtMs - begunAtMs);
    begunAtMs = readAtMs;
  }
  const accepted = latencies.count;
  const perSecond = accepted / ((performance.now() - startedAtMs) / 1_000);
  return { accepted, conflicts: 0, perSecond, ...latencies.figures() };
}

serveOrders<CommitsOrder | HistoryOrder, CommitsResult>((order) => {
  if (order.do === "commit") return commitForAWhile(order);
  if (order.do === "make_history") return makeHistory(order.id, order.revisions);
  return readHistory(order.id, order.durationMs);
});
