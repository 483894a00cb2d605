// A client as the contract describes it: one stable snapshot, a stack of its own unconfirmed commits over it, reads that
// say what they rest on, everything kept until it is answered. What it does when is the schedule's business.
import { applyWithFootprint } from "@claudemesh/protocol/spaces/apply";
import {
  type ConfirmedRead,
  type EncodedCommit,
  encodeCommit,
  type MergeContext,
  type PendingRead,
} from "@claudemesh/protocol/spaces/commit";
import type { EntityDocument } from "@claudemesh/protocol/spaces/entity";
import { type Footprint, footprintOverlaps } from "@claudemesh/protocol/spaces/footprint";
import type { Operation } from "@claudemesh/protocol/spaces/operations";
import { PatchFailure } from "@claudemesh/protocol/spaces/patch-failure";
import { layersRead } from "@claudemesh/protocol/spaces/read-recording";
import { look, type NaiveSpace, type ObservedRead } from "../../../../tests/support/naive-space.ts";
import { entityIds, RandomWork } from "../../../../tests/support/random-space-work.ts";
import type { Random } from "../../../../tests/support/seed.ts";
import type { OpenedSession } from "../services/open-session.ts";

export type Request =
  | { readonly kind: "commit"; readonly commit: EncodedCommit }
  | { readonly kind: "create"; readonly name: string; readonly fromBranch: string; readonly atSeq: number }
  | { readonly kind: "delete"; readonly name: string };

/** What became of a commit, which the client may not have heard. */
type Fate =
  | { readonly type: "accepted"; readonly seq: number }
  | { readonly type: "rejected"; readonly code: string; readonly body: string }
  /** No verdict: it was refused and consumed nothing. */
  | { readonly type: "refused"; readonly code: string };

export type Work = {
  readonly localSeq: number;
  readonly branch: string;
  readonly operations: readonly Operation[];
  readonly request: Request;
  readonly reads: readonly ObservedRead[];
  readonly named: ReadonlySet<number>;
  /** Reads that went through own work, and those of them where it moved content. */
  readonly throughPending: number;
  readonly throughMoves: number;
  readonly isMerge: boolean;
  fate?: Fate;
  heard: boolean;
};

type View = { readonly documents: Map<string, EntityDocument>; readonly stack: StackEntry[] };
type StackEntry = { readonly work: Work; readonly footprints: Map<string, Footprint[]> };

export class SimulatedClient {
  readonly member: string;
  opened: OpenedSession;
  /** The seq of the confirmed state that it works on. */
  basis = 0;
  readonly works: Work[] = [];
  /** How many of `works` were put on the connection. */
  sent = 0;
  connected = true;
  #nextLocalSeq = 1;

  constructor(member: string, opened: OpenedSession) {
    this.member = member;
    this.opened = opened;
  }

  /** Confirmed state with the stack over it; undefined: a layer does not fit any more, and has to be settled first. */
  #view(model: NaiveSpace, branch: string): View | undefined {
    const documents = new Map(model.stateAt(branch, this.basis));
    const stack: StackEntry[] = [];
    const dead = this.#dead();
    for (const work of this.works) {
      const isConfirmed = work.fate?.type === "accepted" && work.fate.seq <= this.basis;
      if (work.branch !== branch || isConfirmed || dead.has(work.localSeq)) continue;
      const footprints = new Map<string, Footprint[]>();
      for (const operation of work.operations) {
        try {
          const { document, footprint } = applyWithFootprint(documents.get(operation.id), operation);
          if (document === undefined) documents.delete(operation.id);
          else documents.set(operation.id, document);
          footprints.set(operation.id, [...(footprints.get(operation.id) ?? []), footprint]);
        } catch (error) {
          if (error instanceof PatchFailure) return undefined;
          throw error;
        }
      }
      stack.push({ work, footprints });
    }
    return { documents, stack };
  }

  /** Commits that it knows will never be, with all that it built on them. */
  #dead(): Set<number> {
    const dead = new Set<number>();
    for (const work of this.works) {
      const isKnown = work.heard && work.fate !== undefined && work.fate.type !== "accepted";
      if (isKnown || [...work.named].some((localSeq) => dead.has(localSeq))) dead.add(work.localSeq);
    }
    return dead;
  }

  build(model: NaiveSpace, random: Random, fresh: () => number): boolean {
    const branch = random.below(3) === 0 ? random.pick(model.branches) : "";
    const view = this.#view(model, branch);
    if (view === undefined) return false;
    const randomWork = new RandomWork(random, fresh);
    const reads = new ReadBuilder(this.basis, branch, view, random);
    for (let count = random.below(4); count > 0; count -= 1) {
      reads.add(random.pick(entityIds), randomWork.read());
    }
    if (random.below(6) === 0) {
      const other = random.pick(model.branches);
      if (other !== branch) reads.addElsewhere(model, other, random.pick(entityIds), randomWork.read());
    }
    const operations = this.#operations(view, random, randomWork);
    this.#enqueue(branch, operations, reads, undefined);
    return true;
  }

  #operations(view: View, random: Random, work: RandomWork): Operation[] {
    const documents = new Map(view.documents);
    const operations: Operation[] = [];
    for (let tries = 1 + random.below(3); tries > 0; tries -= 1) {
      const id = random.pick(entityIds);
      const operation = work.operation(id, documents.get(id));
      try {
        const { document } = applyWithFootprint(documents.get(id), operation);
        if (document === undefined) documents.delete(id);
        else documents.set(id, document);
        operations.push(operation);
      } catch (error) {
        // Now and then it sends what it can not apply itself, and is rejected.
        if (!(error instanceof PatchFailure)) throw error;
        if (random.below(20) === 0) operations.push(operation);
      }
    }
    return operations.length > 0 ? operations : [{ op: "set", id: "e:0", value: { value: { a: 0 } } }];
  }

  /** A merge as it was proposed: its reads are whole documents at the proposal's seq. */
  enqueueMerge(
    model: NaiveSpace,
    proposal: {
      readonly branch: string;
      readonly reads: { readonly confirmed: readonly ConfirmedRead[] };
      readonly operations: readonly Operation[];
      readonly merge: MergeContext;
    },
  ): void {
    const reads = new ReadBuilder(this.basis, proposal.branch, undefined, undefined);
    for (const { id, branch = proposal.branch, path, seq } of proposal.reads.confirmed) {
      const read = { id, branch, path, shallow: false, seq };
      reads.confirmed.push({ id, branch, path, seq });
      reads.observed.push({ ...read, seen: model.seenAt(read, seq) });
    }
    this.#enqueue(proposal.branch, proposal.operations, reads, proposal.merge);
  }

  enqueueLifecycle(request: Exclude<Request, { kind: "commit" }>): void {
    this.works.push({
      localSeq: this.#nextLocalSeq++,
      branch: request.name,
      operations: [],
      request,
      reads: [],
      named: new Set(),
      throughPending: 0,
      throughMoves: 0,
      isMerge: false,
      heard: false,
    });
  }

  #enqueue(
    branch: string,
    operations: readonly Operation[],
    reads: ReadBuilder,
    merge: MergeContext | undefined,
  ): void {
    const localSeq = this.#nextLocalSeq++;
    const commit = encodeCommit({
      localSeq,
      reads: { confirmed: reads.confirmed, pending: reads.pending },
      operations,
      branch,
      ...(merge !== undefined && { merge }),
    });
    this.works.push({
      localSeq,
      branch,
      operations,
      request: { kind: "commit", commit },
      reads: reads.observed,
      named: new Set(reads.pending.map((read) => read.localSeq)),
      throughPending: reads.throughPending,
      throughMoves: reads.throughMoves,
      isMerge: merge !== undefined,
      heard: false,
    });
  }

  /** What must be sent again after a new connection: everything that was not answered. */
  rewind(): void {
    const first = this.works.findIndex(({ heard }) => !heard);
    this.sent = first < 0 ? this.works.length : first;
    this.connected = true;
  }
}

class ReadBuilder {
  readonly confirmed: ConfirmedRead[] = [];
  readonly pending: PendingRead[] = [];
  readonly observed: ObservedRead[] = [];
  throughPending = 0;
  throughMoves = 0;
  readonly #basis: number;
  readonly #branch: string;
  readonly #view: View | undefined;
  readonly #random: Random | undefined;

  constructor(basis: number, branch: string, view: View | undefined, random: Random | undefined) {
    this.#basis = basis;
    this.#branch = branch;
    this.#view = view;
    this.#random = random;
  }

  add(id: string, asked: { readonly path: readonly string[]; readonly shallow: boolean }): void {
    const { documents = new Map<string, EntityDocument>(), stack = [] } = this.#view ?? {};
    const { path, shallow } = asked;
    // One read of a path says all that is known about it.
    if (this.pending.some((read) => read.id === id && read.path.join("/") === path.join("/"))) return;
    const touching = stack.filter(({ footprints }) => footprints.has(id));
    const seen = look(documents.get(id), asked);
    const choice = this.#random?.below(10) ?? 0;
    const layers = touching.map(({ work, footprints }) => ({
      localSeq: work.localSeq,
      footprints: footprints.get(id) ?? [],
    }));
    const pathRead = shallow ? { path, shallow } : { path };
    const named = choice < 5 ? layersRead(pathRead, layers) : layers.map(({ localSeq }) => localSeq);
    if (named.length === 0) {
      this.confirmed.push({ id, branch: this.#branch, seq: this.#basis, ...pathRead });
      this.observed.push({ id, branch: this.#branch, path, shallow, seen, seq: this.#basis });
      return;
    }
    const basis = choice === 9 ? {} : { basisSeq: this.#basis };
    for (const localSeq of named) this.pending.push({ id, localSeq, ...pathRead, ...basis });
    this.observed.push({ id, branch: this.#branch, path, shallow, seen });
    this.throughPending += 1;
    const touches = layers
      .filter(({ localSeq }) => named.includes(localSeq))
      .flatMap(({ footprints }) => footprints.flat());
    const isThroughMove = touches.some((touch) => touch.kind !== "write" && footprintOverlaps([touch], pathRead));
    if (isThroughMove) this.throughMoves += 1;
  }

  addElsewhere(
    model: NaiveSpace,
    branch: string,
    id: string,
    asked: { readonly path: readonly string[]; readonly shallow: boolean },
  ): void {
    const read = { id, branch, ...asked, seq: this.#basis };
    this.confirmed.push({ id, branch, path: asked.path, seq: this.#basis, ...(asked.shallow && { shallow: true }) });
    this.observed.push({ ...read, seen: model.seenAt(read, this.#basis) });
  }
}
