// What the space has ever accepted, held against the naive space as it comes: every commit's reads were true just before
// it, those that it declared and those that its author really made; nothing is accepted twice; and messages that a commit
// carries are there with it or not at all.
// Why: docs/decisions/0060.
import { parseOwnJsonText } from "@claudemesh/protocol/json";
import { type ClientCommit, type EncodedCommit, readCommit } from "@claudemesh/protocol/spaces/commit";
import { NaiveSpace, type ObservedRead } from "../../../../tests/support/naive-space.ts";
import { Violation } from "./violation.ts";

/** One submission of a transaction, known by its mark: a number that no other transaction writes. */
export type Attempt = {
  readonly transaction: number;
  readonly branch: string;
  readonly reads: readonly ObservedRead[];
};

export type LogRow = {
  readonly seq: number;
  readonly branch: string;
  readonly session_id: string;
  readonly local_seq: number;
  readonly member_pubkey: string;
  readonly original: string;
};

type Lifecycle = {
  readonly cmd: string;
  readonly args: { readonly name: string; readonly fromBranch?: string; readonly atSeq?: number };
};

export const markPath = ["value", "m"] as const;
/** Ids of messages that commits carry begin with it. */
export const sendPrefix = "space-";

export class SpaceLedger {
  readonly model = new NaiveSpace();
  readonly #attempts = new Map<number, Attempt>();
  /** Marks that were accepted, with their seq. */
  readonly #accepted = new Map<number, number>();
  readonly #rejected = new Set<number>();
  readonly #transactions = new Map<number, number>();
  readonly #commitIds = new Set<string>();
  readonly #sends = new Map<string, number>();
  readonly tally = { commits: 0, throughPending: 0, merges: 0, branches: 0, sends: 0 };

  expect(mark: number, attempt: Attempt): void {
    this.#attempts.set(mark, attempt);
  }

  /** Called when the author of a transaction hears that it was not accepted. */
  reject(mark: number): void {
    const seq = this.#accepted.get(mark);
    if (seq !== undefined)
      throw new Violation("verdict_wrong", `seq ${seq} was accepted, and its author heard otherwise`);
    this.#rejected.add(mark);
  }

  seqOf(mark: number): number | undefined {
    return this.#accepted.get(mark);
  }

  /** The seq of the commit that carried the message. */
  carrierOf(clientMessageId: string): number | undefined {
    return this.#sends.get(clientMessageId);
  }

  /** In the order of seq. `isStored`: whether the broker has a message of this sender with this id. */
  note(row: LogRow, isStored: (sender: string, clientMessageId: string) => boolean): void {
    const { seq, branch, session_id, local_seq } = row;
    if (seq !== this.model.lastSeq + 1) refuse(`seq ${seq} came after ${this.model.lastSeq}`);
    const commit = `${session_id}/${local_seq}`;
    if (this.#commitIds.has(commit)) refuse(`${commit} was accepted twice`);
    this.#commitIds.add(commit);
    this.tally.commits += 1;
    const original = parseOwnJsonText(row.original) as unknown as EncodedCommit | Lifecycle;
    if ("cmd" in original) this.#noteBranch(original, seq);
    else this.#noteCommit(row, readCommit(original), branch, isStored);
  }

  #noteBranch({ cmd, args: { name, fromBranch = "", atSeq } }: Lifecycle, seq: number): void {
    this.tally.branches += 1;
    if (cmd.endsWith("delete")) this.model.acceptDeletion(name);
    else this.model.acceptBranch(name, fromBranch === "main" ? "" : fromBranch, atSeq ?? seq - 1);
  }

  #noteCommit(
    row: LogRow,
    commit: ClientCommit,
    branch: string,
    isStored: (sender: string, clientMessageId: string) => boolean,
  ): void {
    const { seq, session_id, member_pubkey } = row;
    const { model } = this;
    if (!model.liveBranches.includes(branch)) refuse(`seq ${seq} is on "${branch}", which is no live branch`);
    this.#checkReads(seq, commit, branch);
    for (const { localSeq } of commit.reads.pending) {
      if (!this.#commitIds.has(`${session_id}/${localSeq}`)) refuse(`seq ${seq} rests on ${localSeq}, not accepted`);
    }
    if (!model.fits(branch, commit.operations)) refuse(`seq ${seq} has a patch that does not fit`);
    if (commit.reads.pending.length > 0) this.tally.throughPending += 1;
    for (const { client_message_id: id } of commit.sends ?? []) {
      this.tally.sends += 1;
      if (this.#sends.has(id)) throw new Violation("sends_torn", `${id} was carried by two commits`);
      if (!isStored(member_pubkey, id)) throw new Violation("sends_torn", `seq ${seq} was accepted without ${id}`);
      this.#sends.set(id, seq);
    }
    // What a merge brings over has marks of its own, which were counted on the branch that they come from.
    if (commit.merge === undefined) this.#noteMark(seq, commit, branch);
    else this.tally.merges += 1;
    model.accept(branch, commit.operations);
  }

  /** What it says that it read. */
  #checkReads(seq: number, { reads }: ClientCommit, branch: string): void {
    for (const { id, path, seq: readSeq, branch: readBranch = branch, shallow = false } of reads.confirmed) {
      const read = { id, branch: readBranch, path, shallow, seq: readSeq };
      const objection = this.model.refute({ ...read, seen: this.model.seenAt(read, readSeq) });
      if (objection !== undefined) refuse(`seq ${seq} was accepted, but its ${objection}`);
    }
  }

  /** What it really saw, and that no other try of the same transaction was accepted. */
  #noteMark(seq: number, commit: ClientCommit, branch: string): void {
    const mark = markOf(commit);
    if (mark === undefined) return;
    if (this.#accepted.has(mark)) refuse(`seq ${seq} has the mark ${mark} of seq ${this.#accepted.get(mark)}`);
    this.#accepted.set(mark, seq);
    if (this.#rejected.has(mark)) throw new Violation("verdict_wrong", `seq ${seq} was accepted after its rejection`);
    const attempt = this.#attempts.get(mark);
    if (attempt === undefined) return;
    if (attempt.branch !== branch) refuse(`seq ${seq} is on "${branch}" and was built on "${attempt.branch}"`);
    for (const read of attempt.reads) {
      const objection = this.model.refute(read);
      if (objection !== undefined) refuse(`seq ${seq} was accepted, but what its author saw is not so: ${objection}`);
    }
    const before = this.#transactions.get(attempt.transaction);
    if (before !== undefined) {
      throw new Violation("verdict_wrong", `transaction ${attempt.transaction} was accepted as ${before} and ${seq}`);
    }
    this.#transactions.set(attempt.transaction, seq);
  }
}

function refuse(message: string): never {
  throw new Violation("not_serializable", message);
}

/** The mark that the commit's own operations write. */
function markOf({ operations }: Pick<ClientCommit, "operations">): number | undefined {
  for (const operation of operations.toReversed()) {
    if (operation.op === "patch") {
      const patch = operation.patches.find((each) => each.op === "add" && each.path === `/${markPath.join("/")}`);
      if (patch?.op === "add") return Number(patch.value);
    }
    if (operation.op !== "set") continue;
    const { m } = (operation.value.value ?? {}) as { readonly m?: number };
    if (m !== undefined) return m;
  }
  return undefined;
}
