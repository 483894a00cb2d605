// Random work of several replicas on a few small documents, over connections that break and frames that come late; and
// the judgement of it: every accepted transaction is replayed serially, and must have seen what was there.
import type { Space, SpaceError, Tx } from "@claudemesh/client/space";
import { applyOperation } from "@claudemesh/protocol/spaces/apply";
import { type EncodedCommit, readCommit } from "@claudemesh/protocol/spaces/commit";
import type { EntityDocument } from "@claudemesh/protocol/spaces/entity";
import { type FabricValue, fabricEqual } from "@claudemesh/protocol/spaces/fabric-value";
import type { Operation, PatchOp } from "@claudemesh/protocol/spaces/operations";
import { PatchFailure } from "@claudemesh/protocol/spaces/patch-failure";
import { shallowAt, valueAt } from "@claudemesh/protocol/spaces/value-at";
import { lookThrough } from "./copy-along.ts";
import { smallPatches } from "./random-space-work.ts";
import { alice, bob, type OpenReplica, ReplicaWorld } from "./replica-world.ts";
import { createRandom, type Random } from "./seed.ts";

const entityIds = ["e:0", "e:1", "e:2", "e:3"] as const;
/** The others are only known once a transaction asks for them, and may be written before that. */
const followedIds = ["e:0", "e:1"] as const;

type Seen = {
  readonly id: string;
  readonly path: readonly string[];
  readonly isShallow: boolean;
  /** How many of the transaction's own operations came before. */
  readonly after: number;
  readonly exists: boolean;
  readonly value: FabricValue;
};

type Accepted = { readonly sessionId: string; readonly localSeq: number; readonly seen: readonly Seen[] };

export type Tally = { accepted: number; rejected: number; rebuilt: number; throughPending: number; cuts: number };

const paths: readonly (readonly string[])[] = [
  [],
  ["value"],
  ["value", "a"],
  ["value", "b"],
  ["value", "b", "x"],
  ["value", "c"],
  ["value", "list"],
  ["value", "list", "0"],
  ["value", "list", "1"],
];

export async function runSchedule(seed: number, tally: Tally): Promise<void> {
  const random = createRandom(seed);
  const world = await ReplicaWorld.start();
  const replicas: OpenReplica[] = [];
  const accepted: Accepted[] = [];
  const waiting: Promise<void>[] = [];
  let fresh = 0;
  const isCut = () => random.below(60) === 0;
  for (const member of [alice, bob, bob]) replicas.push(await world.open(member, isCut));
  const shown = replicas.map(({ space }) => follow(space));
  for (let step = 0; step < 40; step += 1) {
    const { space, wire } = random.pick(replicas);
    const kind = random.below(12);
    if (kind === 0) world.server.isSlow = !world.server.isSlow;
    else if (kind === 1) wire.cut();
    else if (kind === 2) wire.connect();
    else if (kind < 6) await pass(random.below(6));
    else waiting.push(work(space, random, () => ++fresh, accepted, tally));
  }
  for (const { wire } of replicas) wire.connect();
  await world.rest();
  await Promise.all(waiting);
  await world.rest();
  await judge(world, replicas, shown, accepted, tally);
  for (const { wire } of replicas) tally.cuts += wire.labels.filter((label) => label === "cut").length;
  await world.stop();
}

async function pass(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** What a subscriber believes to be there, from its notifications alone. */
function follow(space: Space): Map<string, EntityDocument | undefined> {
  const shown = new Map<string, EntityDocument | undefined>();
  for (const id of followedIds) space.subscribe(id, (document) => shown.set(id, document));
  return shown;
}

async function work(
  space: Space,
  random: Random,
  fresh: () => number,
  accepted: Accepted[],
  tally: Tally,
): Promise<void> {
  // The same each time it runs, as a transaction's function has to be.
  const seed = random.below(2 ** 31);
  let seen: Seen[] = [];
  try {
    const { localSeq, attempts } = await space.transact(
      (tx) => {
        seen = [];
        perform(tx, createRandom(seed), fresh, seen);
      },
      { retries: 2 },
    );
    if (attempts > 1) tally.rebuilt += 1;
    if (localSeq !== undefined) accepted.push({ sessionId: space.sessionId ?? "", localSeq, seen });
  } catch (error) {
    const { name } = error as SpaceError;
    const isExpected = ["ConflictError", "DependencyRejectedError", "PatchError", "LocalSeqPassedError"].includes(name);
    if (!isExpected) throw error;
    tally.rejected += 1;
  }
}

function perform(tx: Tx, random: Random, fresh: () => number, seen: Seen[]): void {
  let operations = 0;
  for (let steps = 1 + random.below(5); steps > 0; steps -= 1) {
    const id = random.pick(entityIds);
    if (random.below(2) === 0) {
      seen.push(look(tx, id, random.pick(paths), random.below(4) === 0, operations));
      continue;
    }
    try {
      write(tx, id, random, fresh());
      operations += 1;
    } catch (error) {
      // It did not fit, and did nothing.
      if (!(error instanceof PatchFailure)) throw error;
    }
  }
  if (operations === 0) tx.set("log:1", { value: fresh() });
}

function look(tx: Tx, id: string, path: readonly string[], isShallow: boolean, after: number): Seen {
  const { exists, value } = { value: undefined, ...lookThrough(tx, id, { path, shallow: isShallow }) };
  return { id, path, isShallow, after, exists, value };
}

function write(tx: Tx, id: string, random: Random, value: number): void {
  const at = random.below(3);
  const kind = random.below(20);
  if (kind < 3) tx.set(id, { value: { a: value, b: { x: value }, list: [value, -value] } });
  else if (kind === 3) tx.delete(id);
  else {
    const patch = random.pick<PatchOp>([
      ...smallPatches(at, value),
      { op: "splice", path: "/value/list", index: at, remove: 1, add: [value, value] },
      { op: "move", from: "/value/b", path: "/value/c" },
      { op: "move", from: "/value/c", path: "/value/b" },
      { op: "move", from: `/value/list/${at}`, path: "/value/a" },
    ]);
    tx.patch(id, [patch]);
  }
}

async function judge(
  world: ReplicaWorld,
  replicas: readonly OpenReplica[],
  shown: readonly Map<string, EntityDocument | undefined>[],
  accepted: readonly Accepted[],
  tally: Tally,
): Promise<void> {
  const bySession = new Map(accepted.map((each) => [`${each.sessionId}/${each.localSeq}`, each]));
  const documents = new Map<string, EntityDocument>();
  for (const { seq, original, sessionId } of await world.server.log()) {
    const { localSeq, reads, operations } = readCommit(original as EncodedCommit);
    const transaction = bySession.get(`${sessionId}/${localSeq}`);
    if (transaction === undefined) throw new Error(`seq ${seq} was accepted, and its transaction did not hear of it`);
    bySession.delete(`${sessionId}/${localSeq}`);
    checkSeen(seq, transaction.seen, documents, operations);
    for (const operation of operations) applyTo(documents, operation);
    tally.accepted += 1;
    if (reads.pending.length > 0) tally.throughPending += 1;
  }
  if (bySession.size > 0) throw new Error("a transaction heard that it was accepted, and the log has no such commit");
  for (const [index, { space }] of replicas.entries()) {
    for (const id of entityIds) {
      const isRight = fabricEqual(await space.get(id), documents.get(id));
      if (!isRight) throw new Error(`replica ${index} shows another ${id} than the space holds`);
    }
    for (const id of followedIds) {
      if (!fabricEqual(shown[index]?.get(id), documents.get(id))) {
        throw new Error(`subscribers of replica ${index} were notified of another ${id} than the space holds`);
      }
    }
  }
}

/** What the transaction saw must be what the state before it, with its own operations up to there, shows. */
function checkSeen(
  seq: number,
  seen: readonly Seen[],
  documents: ReadonlyMap<string, EntityDocument>,
  operations: readonly Operation[],
): void {
  for (const { id, path, isShallow, after, exists, value } of seen) {
    const own = new Map(documents);
    for (const operation of operations.slice(0, after)) applyTo(own, operation);
    const there = { value: undefined, ...(isShallow ? shallowAt : valueAt)(own.get(id), path) };
    if (there.exists !== exists || !fabricEqual(there.value, value)) {
      throw new Error(`seq ${seq} was accepted though it saw another ${id} at /${path.join("/")}`);
    }
  }
}

function applyTo(documents: Map<string, EntityDocument>, operation: Operation): void {
  const document = applyOperation(documents.get(operation.id), operation);
  if (document === undefined) documents.delete(operation.id);
  else documents.set(operation.id, document);
}
