// A naive model of pending reads: a client that stacks commits on an old confirmed state and reads the result, and a
// server where writes of others came in between. Reports what a rule decided, and whether the read saw what a serial
// run would have shown. For tests only.

import type { EntityDocument } from "../spaces/entity.ts";
import { fabricEqual } from "../spaces/fabric-value.ts";
import { footprintOverlaps } from "../spaces/footprint.ts";
import type { Operation } from "../spaces/operations.ts";
import type { NamedLayer, PendingReadDecision } from "../spaces/pending-reads.ts";
import { layersRead, type StackLayer } from "../spaces/read-recording.ts";
import type { Footprint, PathRead } from "../spaces/touch.ts";
import { shallowAt, type ValueAt, valueAt } from "../spaces/value-at.ts";
import {
  applyIfFits,
  type Pick,
  randomDocument,
  randomFittingOperation,
  randomRead,
  seededPick,
} from "./random-edits.ts";

export type PendingRule = (
  read: PathRead & { readonly basisSeq?: number },
  layers: readonly NamedLayer[],
) => PendingReadDecision;

export type WorldOutcome =
  /** There was no pending read: a layer was rejected, or the read depends on no layer. */
  | "void"
  | "basis_required"
  | "stale"
  /** Accepted, and a foreign write was among what the server saw. */
  | "sound"
  | "anomaly";

type ServerCommit = { readonly seq: number; readonly localSeq?: number; readonly footprints: readonly Footprint[] };
type ClientLayer = StackLayer & { readonly operations: readonly Operation[] };

const basisSeq = 10;

export type WorldChoice = {
  readonly withBasis: boolean;
  /** Whether the read names the whole stack, or only the layers on which it depends. */
  readonly nameAll: boolean;
};

/** Runs one model per seed; `anomalies` holds the first seeds that show one. */
export function tallyPendingWorlds(rule: PendingRule, choice: WorldChoice, seeds: { from: number; to: number }) {
  const counts: Record<WorldOutcome, number> = { void: 0, basis_required: 0, stale: 0, sound: 0, anomaly: 0 };
  const anomalies: number[] = [];
  for (let seed = seeds.from; seed < seeds.to; seed += 1) {
    const outcome = runPendingWorld(seededPick(seed), rule, choice);
    counts[outcome] += 1;
    if (outcome === "anomaly" && anomalies.length < 5) anomalies.push(seed);
  }
  return { ...counts, anomalies };
}

function runPendingWorld(pick: Pick, rule: PendingRule, { withBasis, nameAll }: WorldChoice): WorldOutcome {
  const base = randomDocument(pick);
  const { stack, seen } = buildStack(pick, base);
  const served = serve(pick, base, stack);
  if (served === undefined) return "void";
  const read = randomRead(pick, seen);
  const named = nameAll ? stack.map(({ localSeq }) => localSeq) : layersRead(read, stack);
  if (named.length === 0) return "void";
  const layers = served.commits.filter(({ localSeq }) => localSeq !== undefined && named.includes(localSeq));
  const decision = rule(withBasis ? { ...read, basisSeq } : read, layers);
  if (decision.kind === "basis_required") return "basis_required";
  const { scan, fromSeq, ignoreSeqs } = decision;
  const isStale = served.commits.some(
    ({ seq, footprints }) =>
      seq > fromSeq &&
      !ignoreSeqs.includes(seq) &&
      footprints.some((one) => scan.some((r) => footprintOverlaps(one, r))),
  );
  if (isStale) return "stale";
  return sameSight(look(seen, read), look(served.document, read)) ? "sound" : "anomaly";
}

function buildStack(pick: Pick, base: EntityDocument | undefined) {
  const stack: ClientLayer[] = [];
  let seen = base;
  const count = 1 + pick(3);
  for (let localSeq = 1; localSeq <= count; localSeq += 1) {
    const operations: Operation[] = [];
    const footprints: Footprint[] = [];
    for (let index = 1 + pick(2); index > 0; index -= 1) {
      const edit = randomFittingOperation(pick, seen);
      if (edit === undefined) continue;
      seen = edit.document;
      operations.push(edit.operation);
      footprints.push(edit.footprint);
    }
    stack.push({ localSeq, operations, footprints });
  }
  return { stack, seen };
}

/**
 * The own layers in order, with foreign commits before, between and after them; undefined where a layer is rejected.
 */
function serve(pick: Pick, base: EntityDocument | undefined, stack: readonly ClientLayer[]) {
  const commits: ServerCommit[] = [];
  let document = base;
  let seq = basisSeq;
  const commitForeign = () => {
    for (let count = pick(2); count > 0; count -= 1) {
      const edit = randomFittingOperation(pick, document);
      if (edit === undefined) continue;
      document = edit.document;
      seq += 1;
      commits.push({ seq, footprints: [edit.footprint] });
    }
  };
  for (const { localSeq, operations } of stack) {
    commitForeign();
    const footprints: Footprint[] = [];
    for (const operation of operations) {
      const edit = applyIfFits(document, operation);
      if (edit === undefined) return undefined;
      document = edit.document;
      footprints.push(edit.footprint);
    }
    seq += 1;
    commits.push({ seq, localSeq, footprints });
  }
  commitForeign();
  return commits.length > stack.length ? { commits, document } : undefined;
}

function look(document: EntityDocument | undefined, read: PathRead): ValueAt {
  return read.shallow === true ? shallowAt(document, read.path) : valueAt(document, read.path);
}

function sameSight(a: ValueAt, b: ValueAt): boolean {
  if (!a.exists || !b.exists) return a.exists === b.exists;
  return fabricEqual(a.value, b.value);
}
