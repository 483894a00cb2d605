// A space as the contract says it, with nothing but a list of what was accepted: every state is the serial replay of it.
// Decides in the plainest way whether an accepted commit's reads were true. Slow on purpose; no assertions.
import { applyOperation } from "@claudemesh/protocol/spaces/apply";
import type { EntityDocument } from "@claudemesh/protocol/spaces/entity";
import { type FabricValue, fabricEqual } from "@claudemesh/protocol/spaces/fabric-value";
import type { Operation } from "@claudemesh/protocol/spaces/operations";
import { shallowAt, valueAt } from "@claudemesh/protocol/spaces/value-at";

type Documents = ReadonlyMap<string, EntityDocument>;
type NaiveBranch = { readonly parent: string; readonly forkSeq: number; deletedSeq?: number };
type Accepted = { readonly branch: string; readonly operations: readonly Operation[] };

export type Seen = { readonly exists: boolean; readonly value?: FabricValue };

/** A read as a client made it, with what it saw. */
export type ObservedRead = {
  readonly id: string;
  readonly branch: string;
  readonly path: readonly string[];
  readonly shallow: boolean;
  readonly seen: Seen;
  /** Of a confirmed read. */
  readonly seq?: number;
};

export class NaiveSpace {
  readonly #accepted: Accepted[] = [];
  readonly #branches = new Map<string, NaiveBranch>();
  readonly #states = new Map<string, Documents>();

  get lastSeq(): number {
    return this.#accepted.length;
  }

  get branches(): string[] {
    return ["", ...this.#branches.keys()];
  }

  get liveBranches(): string[] {
    return this.branches.filter((name) => this.#branches.get(name)?.deletedSeq === undefined);
  }

  accept(branch: string, operations: readonly Operation[]): void {
    this.#accepted.push({ branch, operations });
  }

  acceptBranch(name: string, parent: string, forkSeq: number): void {
    this.accept(name, []);
    this.#branches.set(name, { parent, forkSeq });
  }

  acceptDeletion(name: string): void {
    this.accept(name, []);
    const branch = this.#branches.get(name);
    if (branch !== undefined) branch.deletedSeq = this.lastSeq;
  }

  /** The branch after the commit of that seq. */
  stateAt(branch: string, seq: number): Documents {
    const fork = this.#branches.get(branch);
    if (fork !== undefined && seq <= fork.forkSeq) return this.stateAt(fork.parent, seq);
    if (seq <= 0) return new Map();
    const key = `${branch}@${seq}`;
    const known = this.#states.get(key);
    if (known !== undefined) return known;
    const before = this.stateAt(branch, seq - 1);
    const commit = this.#accepted[seq - 1];
    const state = commit?.branch === branch ? applyAll(before, commit.operations) : before;
    this.#states.set(key, state);
    return state;
  }

  seenAt(read: Omit<ObservedRead, "seen">, seq: number): Seen {
    return look(this.stateAt(read.branch, seq).get(read.id), read);
  }

  /** Why a commit that would get the next seq must not be accepted with this read; undefined: it may. */
  refute(read: ObservedRead): string | undefined {
    const now = this.lastSeq;
    const deletedSeq = this.#branches.get(read.branch)?.deletedSeq;
    const name = `${read.seq === undefined ? "pending" : "confirmed"} read of ${read.id} ${read.path.join("/")}`;
    if (!sameSeen(read.seen, this.seenAt(read, now))) return `${name} on "${read.branch}" is not what is there`;
    if (read.seq === undefined) return undefined;
    if (deletedSeq !== undefined && deletedSeq > read.seq) return `${name}: its branch was deleted since`;
    for (let seq = read.seq; seq < now; seq += 1) {
      if (!sameSeen(this.seenAt(read, seq), this.seenAt(read, seq + 1))) return `${name} changed at ${seq + 1}`;
    }
    return undefined;
  }

  /** Whether the operations can be applied to the branch as it is. */
  fits(branch: string, operations: readonly Operation[]): boolean {
    return tryApply(this.stateAt(branch, this.lastSeq), operations) !== undefined;
  }
}

export function look(
  document: EntityDocument | undefined,
  read: { readonly path: readonly string[]; readonly shallow: boolean },
): Seen {
  return read.shallow ? shallowAt(document, read.path) : valueAt(document, read.path);
}

function sameSeen(a: Seen, b: Seen): boolean {
  return a.exists === b.exists && fabricEqual(a.value, b.value);
}

/** Undefined: a patch does not fit. */
function tryApply(before: Documents, operations: readonly Operation[]): Documents | undefined {
  try {
    return applyAll(before, operations);
  } catch {
    return undefined;
  }
}

function applyAll(before: Documents, operations: readonly Operation[]): Documents {
  if (operations.length === 0) return before;
  const after = new Map(before);
  for (const operation of operations) {
    const document = applyOperation(after.get(operation.id), operation);
    if (document === undefined) after.delete(operation.id);
    else after.set(operation.id, document);
  }
  return after;
}
