// The commit service: one commit, from request to verdict. Each step is in a file of its own; here stands their order.
//
// Before the transaction, in the order in which the session's requests came:
//   1. read       the commit is parsed and fingerprinted, a large one in parts, so that other requests have a turn;
//   2. budget     its bytes are taken from the mesh's budget;
//   3. prepare    its sends are fingerprinted, looked up and limited. Where there are sends, or where the budget is spent, a
//                 commit that was decided before is answered from its verdict first.
// In one transaction, under the space's lock and then the session's (`decideCommit`):
//   4. replay     member, session, token and localSeq; a retry gets the stored verdict (replay.ts);
//   5. signature  what was signed is this write (core/invocation.ts);
//   6. validate   branches, seqs, reads against later writes, pending reads, the merge (validate.ts);
//   7. apply      the operations, to the present documents (apply.ts);
//   8. record     everything that the commit leaves behind; its sends last, since they wait for the mesh's lock (record.ts).
// After COMMIT, watchers and recipients are woken.
//
// The outcomes:
//   accepted      the commit has a seq, and everything of step 8 is durable;
//   rejected      steps 6 to 8 found why it can't be accepted, now or later. The verdict is durable and the localSeq is used
//                 up; nothing else is written, not even sends in front of the refused one;
//   refused       an error is thrown: nothing is written, and the same commit may be sent again.
//
// The body of the transaction may run several times: on the cache alone, then with reads, then by itself after a neighbour in
// its transaction failed. It therefore decides before it writes, and has no effect outside the transaction.
import { MeshError } from "@claudemesh/protocol/errors";
import type { SendToAccept } from "@claudemesh/protocol/messages/commit-sends";
import type { EncodedCommit } from "@claudemesh/protocol/spaces/commit";
import { PatchFailure } from "@claudemesh/protocol/spaces/patch-failure";
import { commitWorkMax, Work } from "@claudemesh/protocol/spaces/work";
import { type SignedScope, type VerifiedInvocation, verifySigned } from "../../core/invocation.ts";
import type { Verdict } from "../../core/verdict.ts";
import type { Flow } from "../../ports/flow.ts";
import type { SpaceRef } from "../../ports/rows.ts";
import type { SpacePorts, SpaceTransaction, TakenBytes } from "../../ports.ts";
import { transact } from "../refusals.ts";
import { type AppliedCommit, applyOperations } from "./apply.ts";
import { prefetchHintsOf, type ReadCommit, readCommitInParts } from "./read-commit.ts";
import { type Accepted, fingerprintOf, nothingWritten, record, reject, signedRows } from "./record.ts";
import { beginWrite, lookUpWrite, type Writer } from "./replay.ts";
import { validate } from "./validate.ts";

export type { Verdict } from "../../core/verdict.ts";

export type CommitRequest = {
  readonly sessionId: string;
  readonly sessionToken: string;
  readonly commit: EncodedCommit;
};

type CommitToDecide = {
  readonly writer: Writer;
  readonly read: ReadCommit;
  readonly scope: SignedScope;
  readonly sends: readonly SendToAccept[];
};

type Decided = { readonly verdict: Verdict; readonly recipients: readonly string[] };

/** Resolves with a verdict, which is durable; throws where the commit gets none and has consumed nothing. */
export async function commitToSpace(
  ports: SpacePorts,
  space: SpaceRef,
  memberPubkey: string,
  request: CommitRequest,
): Promise<Verdict> {
  const { sessionId } = request;
  return ports.turns.take(
    sessionId,
    () => prepare(ports, space, memberPubkey, request),
    async (prepared) => {
      if (prepared.type === "answered") return prepared.verdict;
      const { writer, read, sends } = prepared.toDecide;
      const alone = sends.length > 0;
      const hints = { writer, alone, prefetch: () => prefetchHintsOf(read.commit) };
      const deciding = transact(ports.store, space, (tx) => decideCommit(tx, prepared.toDecide), hints);
      settleBytes(prepared.taken, deciding);
      const decided = await deciding;
      announce(ports, space, prepared.toDecide, decided);
      return decided.verdict;
    },
  );
}

type Prepared =
  /** It was decided before. */
  | { readonly type: "answered"; readonly verdict: Verdict }
  /** `taken`: out of the mesh's budget, where one is counted. */
  | { readonly type: "ready"; readonly toDecide: CommitToDecide; readonly taken: TakenBytes | undefined };

/** At once for a small commit without sends, which waits for nothing. */
function prepare(
  ports: SpacePorts,
  space: SpaceRef,
  memberPubkey: string,
  request: CommitRequest,
): Prepared | Promise<Prepared> {
  const { commit: encoded, sessionId, sessionToken } = request;
  const finish = (read: ReadCommit): Prepared | Promise<Prepared> => {
    const { payload, commit } = read;
    const { localSeq, sends = [] } = commit;
    const fingerprint = fingerprintOf(payload);
    const writer: Writer = { memberPubkey, sessionId, sessionToken, localSeq, fingerprint, nowMs: ports.nowMs() };
    const scope: SignedScope = { cmd: "/memory/commit", space, memberPubkey, sessionId, localSeq, payload };
    const taken = ports.budget?.take(space.meshId, Buffer.byteLength(payload));
    const toDecide = { writer, read, scope, sends: [] };
    if (sends.length === 0 && !(taken instanceof Promise) && taken?.type !== "denied") {
      return { type: "ready", toDecide, taken };
    }
    return prepareAsking(ports, space, toDecide, taken);
  };
  const parts = readCommitInParts(encoded);
  const first = parts.next();
  return first.done === true ? finish(first.value) : readOn(ports, parts).then(finish);
}

/** For a large commit: other requests have a turn between its parts. */
async function readOn(
  { nextTurn = setImmediate }: SpacePorts,
  parts: Generator<void, ReadCommit>,
): Promise<ReadCommit> {
  for (;;) {
    await new Promise<void>((resolve) => nextTurn(resolve));
    const next = parts.next();
    if (next.done === true) return next.value;
  }
}

/** What is decided already is answered before a unit of budget is spent on it, and however much of it is spent. */
async function prepareAsking(
  ports: SpacePorts,
  space: SpaceRef,
  toDecide: CommitToDecide,
  taking: TakenBytes | undefined | Promise<TakenBytes>,
): Promise<Prepared> {
  const { writer } = toDecide;
  const { sends = [] } = toDecide.read.commit;
  const taken = await taking;
  let isReady = false;
  try {
    if (sends.length > 0 || taken?.type === "denied") {
      const verdict = await ports.store.read(space, (view) => lookUpWrite(view, writer));
      if (verdict !== undefined) return { type: "answered", verdict };
    }
    if (taken?.type === "denied") throw overBudget(taken.retryAfterSeconds);
    const sender = { meshId: space.meshId, pubkey: writer.memberPubkey };
    const prepared = sends.length === 0 ? [] : await ports.sends.prepare(sender, sends);
    isReady = true;
    return { type: "ready", toDecide: { ...toDecide, sends: prepared }, taken };
  } finally {
    if (!isReady) settle(taken, false);
  }
}

function overBudget(retryAfterSeconds: number): MeshError {
  const message =
    "The mesh has committed as many bytes as it may in this window; wait, then send the same commit again.";
  return new MeshError("rate_limited", message, { retry_after_s: retryAfterSeconds });
}

function settle(taken: TakenBytes | undefined, isCounted: boolean): void {
  if (taken?.type === "taken") taken.settle(isCounted);
}

/** A verdict counts once, when it is made; a refusal does only where it made as much work as a commit may. */
function settleBytes(taken: TakenBytes | undefined, deciding: Promise<Decided>): void {
  deciding.then(
    ({ verdict }) => settle(taken, !verdict.replayed),
    (error: unknown) => settle(taken, error instanceof MeshError && error.code === "commit_too_expensive"),
  );
}

function* decideCommit(tx: SpaceTransaction, toDecide: CommitToDecide): Flow<Decided> {
  const { writer, sends } = toDecide;
  const { commit, bodies } = toDecide.read;
  const begun = yield* beginWrite(tx, writer);
  if (begun.type === "answered") return { verdict: begun.verdict, recipients: [] };
  const { session, space } = begun;
  const signed = verifySigned(commit.invocation, toDecide.scope, space.signedWrites === "required");
  const branchName = commit.branch ?? "";
  const work = new Work(commitWorkMax, tx.worked);
  const validated = yield* validate(tx, session, space.lastSeq, commit, work);
  if (validated.type === "rejected") {
    return { verdict: yield* reject(tx, writer, branchName, validated.error), recipients: [] };
  }
  const { branch, resolved } = validated;
  const applied = yield* applyOperations(tx, branch, space.lastSeq, commit.operations, bodies, work);
  if (applied instanceof PatchFailure) {
    return { verdict: yield* reject(tx, writer, branchName, applied), recipients: [] };
  }
  const accepted = acceptedRows(toDecide, applied, signed, space.lastSeq + 1);
  return yield* writeWithSends(tx, writer, { ...accepted, resolved }, sends);
}

function acceptedRows(
  { read: { commit, original } }: CommitToDecide,
  applied: AppliedCommit,
  signed: VerifiedInvocation | undefined,
  seq: number,
): Accepted {
  const { merge } = commit;
  const branch = commit.branch ?? "";
  return {
    ...nothingWritten,
    ...applied,
    seq,
    branch,
    original,
    ...signedRows(signed),
    merge: merge && { seq, sourceBranch: merge.sourceBranch, sourceSeq: merge.sourceSeq, targetBranch: branch },
  };
}

/** SPC-6: the sends are accepted with the commit or not at all; they come last, since they wait for the mesh's lock. */
function* writeWithSends(
  tx: SpaceTransaction,
  writer: Writer,
  accepted: Accepted,
  sends: readonly SendToAccept[],
): Flow<Decided> {
  if (sends.length === 0) return { verdict: yield* record(tx, writer, accepted), recipients: [] };
  yield* tx.mark();
  const verdict = yield* record(tx, writer, accepted);
  const outcome = yield* tx.acceptSends(sends);
  if (outcome.type === "accepted") return { verdict, recipients: outcome.recipients };
  yield* tx.undoToMark();
  const { index, code } = outcome;
  const error = new MeshError("send_rejected_error", undefined, { index, code });
  return { verdict: yield* reject(tx, writer, accepted.branch, error), recipients: [] };
}

function announce(
  ports: SpacePorts,
  space: SpaceRef,
  { writer, read, sends }: CommitToDecide,
  { verdict, recipients }: Decided,
): void {
  if (verdict.type === "rejected" || verdict.replayed) return;
  const { sessionId, localSeq } = writer;
  const { operations, branch = "" } = read.commit;
  const entityIds = [...new Set(operations.map(({ id }) => id))];
  ports.onCommitted({ ...space, branch, seq: verdict.seq, sessionId, localSeq, entityIds });
  if (sends.length > 0) ports.sends.onAccepted(space.meshId, recipients);
}
