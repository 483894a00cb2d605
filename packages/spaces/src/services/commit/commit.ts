// One commit, from request to verdict: steps 1 to 8 in one transaction. Only says what comes after what; each step is in
// a file of its own.
import { MeshError } from "@claudemesh/protocol/errors";
import { writeStrictJson } from "@claudemesh/protocol/json";
import {
  type ClientCommit,
  canonicalCommitPayload,
  type EncodedCommit,
  readCommit,
} from "@claudemesh/protocol/spaces/commit";
import { fitsBytes, readBranchId, spaceLimits } from "@claudemesh/protocol/spaces/entity";
import { PatchFailure } from "@claudemesh/protocol/spaces/patch-failure";
import { commitWorkMax, Work } from "@claudemesh/protocol/spaces/work";
import { type SignedPlace, type VerifiedInvocation, verifySigned } from "../../core/invocation.ts";
import type { Verdict } from "../../core/verdict.ts";
import type { SpaceRef } from "../../ports/rows.ts";
import type { Steps } from "../../ports/steps.ts";
import type { PreparedSends, SpacePorts, SpaceTransaction } from "../../ports.ts";
import { transact } from "../refusals.ts";
import { type AppliedCommit, applyOperations } from "./apply.ts";
import { expectedOf } from "./expected.ts";
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
  readonly commit: ClientCommit;
  readonly encoded: EncodedCommit;
  readonly place: SignedPlace;
  readonly sends: PreparedSends;
};

type Decided = { readonly verdict: Verdict; readonly receipt: unknown };

/** Resolves with a verdict, which is durable; throws what is no verdict and has consumed nothing. */
export async function commitToSpace(
  ports: SpacePorts,
  space: SpaceRef,
  memberPubkey: string,
  request: CommitRequest,
): Promise<Verdict> {
  const { commit: encoded, sessionId, sessionToken } = request;
  const commit = nameBranches(readCommit(encoded));
  const payload = canonicalCommitPayload(encoded);
  if (!fitsBytes(payload, spaceLimits.commitBytes)) {
    throw new MeshError("payload_too_large", "A commit is at most 4 MiB.", { limit_bytes: spaceLimits.commitBytes });
  }
  const { localSeq, sends: messages = [] } = commit;
  const fingerprint = fingerprintOf(payload);
  const writer: Writer = { memberPubkey, sessionId, sessionToken, localSeq, fingerprint, nowMs: ports.nowMs() };
  const place: SignedPlace = { cmd: "/memory/commit", space, memberPubkey, sessionId, localSeq, payload };
  const decided = await ports.turns.take(
    sessionId,
    () => (messages.length === 0 ? nothingToSend : prepareSends(ports, space, writer, messages)),
    async (prepared): Promise<Decided & { readonly sends: PreparedSends }> => {
      if (prepared.type === "answered") return { verdict: prepared.verdict, receipt: undefined, sends: [] };
      const { sends } = prepared;
      const toDecide: CommitToDecide = { writer, commit, encoded, place, sends };
      const alone = sends.length > 0;
      const hints = { writer, alone, expects: () => expectedOf(commit) };
      const decided = await transact(ports.store, space, (tx) => decideCommit(tx, toDecide), hints);
      return { ...decided, sends };
    },
  );
  announce(ports, space, writer, commit, decided);
  return decided.verdict;
}

/** The default branch has one name inside; clients may call it main. */
function nameBranches(commit: ClientCommit): ClientCommit {
  const { reads, merge } = commit;
  const confirmed = reads.confirmed.map((read) =>
    read.branch === undefined ? read : { ...read, branch: readBranchId(read.branch) },
  );
  return {
    ...commit,
    branch: readBranchId(commit.branch),
    reads: { ...reads, confirmed },
    ...(merge !== undefined && {
      merge: {
        ...merge,
        sourceBranch: readBranchId(merge.sourceBranch),
        baseBranch: readBranchId(merge.baseBranch),
      },
    }),
  };
}

type Prepared =
  | { readonly type: "ready"; readonly sends: PreparedSends }
  | { readonly type: "answered"; readonly verdict: Verdict };

const nothingToSend: Prepared = { type: "ready", sends: [] };

/** What is decided already is answered before a unit of budget is spent on it. */
async function prepareSends(
  ports: SpacePorts,
  space: SpaceRef,
  writer: Writer,
  sends: NonNullable<ClientCommit["sends"]>,
): Promise<Prepared> {
  const known = await ports.store.read(space, (view) => lookUpWrite(view, writer));
  if (known !== undefined) return { type: "answered", verdict: known };
  const sender = { meshId: space.meshId, pubkey: writer.memberPubkey };
  return { type: "ready", sends: await ports.sends.prepare(sender, sends) };
}

function* decideCommit(tx: SpaceTransaction, toDecide: CommitToDecide): Steps<Decided> {
  const { writer, commit, encoded, sends } = toDecide;
  const begun = yield* beginWrite(tx, writer);
  if (begun.type === "answered") return { verdict: begun.verdict, receipt: undefined };
  const { session, space } = begun;
  const signed = verifySigned(commit.invocation, toDecide.place, space.signedWrites === "required");
  const branchName = commit.branch ?? "";
  const work = new Work(commitWorkMax);
  const validated = yield* validate(tx, session, space.lastSeq, commit, work);
  if (validated.type === "rejected") {
    return { verdict: yield* reject(tx, writer, branchName, validated.error), receipt: undefined };
  }
  const { branch, resolved } = validated;
  const applied = yield* applyOperations(tx, branch, space.lastSeq, commit.operations, encoded.operations, work);
  if (applied instanceof PatchFailure) {
    return { verdict: yield* reject(tx, writer, branchName, applied), receipt: undefined };
  }
  const accepted = acceptedRows(toDecide, applied, signed, space.lastSeq + 1);
  return yield* writeWithSends(tx, writer, { ...accepted, resolved }, sends);
}

function acceptedRows(
  { commit, encoded }: CommitToDecide,
  applied: AppliedCommit,
  signed: VerifiedInvocation | undefined,
  seq: number,
): Accepted {
  const { invocation: _, ...original } = encoded;
  const { merge } = commit;
  const branch = commit.branch ?? "";
  return {
    ...nothingWritten,
    ...applied,
    seq,
    branch,
    original: writeStrictJson(original),
    ...signedRows(signed),
    merge: merge && { seq, sourceBranch: merge.sourceBranch, sourceSeq: merge.sourceSeq, targetBranch: branch },
  };
}

/** SPC-6: the sends are accepted with the commit or not at all; they come last, since they wait for the mesh's lock. */
function* writeWithSends(
  tx: SpaceTransaction,
  writer: Writer,
  accepted: Accepted,
  sends: PreparedSends,
): Steps<Decided> {
  if (sends.length === 0) return { verdict: yield* record(tx, writer, accepted), receipt: undefined };
  yield* tx.mark();
  const verdict = yield* record(tx, writer, accepted);
  const outcome = yield* tx.acceptSends(sends);
  if (outcome.type === "accepted") return { verdict, receipt: outcome.receipt };
  yield* tx.undoToMark();
  tx.known.forget();
  const { index, code } = outcome;
  const error = new MeshError("send_rejected_error", undefined, { index, code });
  return { verdict: yield* reject(tx, writer, accepted.branch, error), receipt: undefined };
}

function announce(
  ports: SpacePorts,
  space: SpaceRef,
  { sessionId, localSeq }: Writer,
  commit: ClientCommit,
  { verdict, receipt, sends }: Decided & { readonly sends: PreparedSends },
): void {
  if (verdict.type === "rejected" || verdict.replayed) return;
  const entityIds = [...new Set(commit.operations.map(({ id }) => id))];
  ports.onCommitted({ ...space, branch: commit.branch ?? "", seq: verdict.seq, sessionId, localSeq, entityIds });
  if (sends.length > 0) ports.sends.onAccepted(space.meshId, receipt);
}
