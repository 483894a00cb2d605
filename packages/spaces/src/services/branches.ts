// Making and deleting branches: commits of their own, with a localSeq, a seq, a row in the log and a replay.
import { MeshError } from "@claudemesh/protocol/errors";
import type { JsonObject } from "@claudemesh/protocol/json";
import { defaultBranch, isNewBranchName, readBranchId } from "@claudemesh/protocol/spaces/entity";
import {
  type BranchWrite,
  branchCreation,
  branchDeletion,
  signedBranchWrite,
} from "@claudemesh/protocol/spaces/invocation";
import { type Branch, lineageOfFork } from "../core/branch-lineage.ts";
import { verifySigned } from "../core/invocation.ts";
import type { Verdict } from "../core/verdict.ts";
import type { Flow } from "../ports/flow.ts";
import type { SpaceRef } from "../ports/rows.ts";
import type { SpacePorts, SpaceTransaction, SpaceView } from "../ports.ts";
import { type Accepted, fingerprintOf, nothingWritten, record, signedRows } from "./commit/record.ts";
import { beginWrite, type Writer } from "./commit/replay.ts";
import { transact } from "./refusals.ts";

export type BranchWriter = {
  readonly sessionId: string;
  readonly sessionToken: string;
  readonly localSeq: number;
  /** The member's signature under this write. */
  readonly invocation?: object | undefined;
};

export type CreateBranchRequest = BranchWriter & {
  readonly name: string;
  readonly fromBranch?: string | undefined;
  readonly atSeq?: number | undefined;
};

export type DeleteBranchRequest = BranchWriter & { readonly name: string };

export async function createBranch(
  ports: SpacePorts,
  space: SpaceRef,
  memberPubkey: string,
  request: CreateBranchRequest,
): Promise<Verdict> {
  if (!isNewBranchName(request.name)) {
    const isMain = readBranchId(request.name) === defaultBranch;
    const message = isMain ? "The default branch is there already, under this name; choose another." : undefined;
    throw new MeshError("invalid_name", message, { field: "name" });
  }
  return writeLifecycle(ports, space, memberPubkey, request, branchCreation(request), function* (tx, lastSeq) {
    const createdBranch = yield* forkBranch(tx, request, lastSeq);
    return { createdBranch };
  });
}

export function deleteBranch(
  ports: SpacePorts,
  space: SpaceRef,
  memberPubkey: string,
  request: DeleteBranchRequest,
): Promise<Verdict> {
  const { name } = request;
  return writeLifecycle(ports, space, memberPubkey, request, branchDeletion(request), function* (tx) {
    if (readBranchId(name) === defaultBranch)
      throw new MeshError("invalid_request", "The default branch can't be deleted.", { field: "name" });
    const branch = yield* findBranch(tx, name);
    if (branch.deletedSeq !== undefined) throw new MeshError("branch_deleted", undefined, { branch: name });
    return { deletedBranch: name };
  });
}

/** One row, whatever the branch holds. */
function* forkBranch(tx: SpaceTransaction, request: CreateBranchRequest, lastSeq: number): Flow<Branch> {
  const { name, fromBranch = defaultBranch, atSeq = lastSeq } = request;
  if (atSeq > lastSeq) throw new MeshError("seq_out_of_range", undefined, { field: "atSeq", seq: lastSeq });
  const parent = yield* findBranch(tx, fromBranch);
  if (parent.deletedSeq !== undefined) throw new MeshError("branch_deleted", undefined, { branch: fromBranch });
  const [taken] = yield* tx.findBranches([name]);
  if (taken !== undefined) throw new MeshError("branch_exists", undefined, { branch: name });
  const lineage = lineageOfFork(parent, atSeq);
  if (lineage === "too_deep") throw new MeshError("branch_too_deep", undefined, { branch: fromBranch });
  return { name, lineage, createdSeq: lastSeq + 1, deletedSeq: undefined };
}

/** Main is the default branch's other name. */
export function* findBranch(view: SpaceView, name: string): Flow<Branch> {
  const [branch] = yield* view.findBranches([readBranchId(name)]);
  if (branch === undefined) throw new MeshError("branch_not_found", undefined, { branch: name });
  return branch;
}

async function writeLifecycle(
  ports: SpacePorts,
  space: SpaceRef,
  memberPubkey: string,
  { sessionId, sessionToken, localSeq, invocation }: BranchWriter,
  write: BranchWrite,
  decide: (tx: SpaceTransaction, lastSeq: number) => Flow<Partial<Accepted>>,
): Promise<Verdict> {
  const { cmd, payload: original } = signedBranchWrite(write);
  const fingerprint = fingerprintOf(original);
  const writer: Writer = { memberPubkey, sessionId, sessionToken, localSeq, fingerprint, nowMs: ports.nowMs() };
  const scope = { cmd, space, memberPubkey, sessionId, localSeq, payload: original };
  const branch = write.args.name;
  const verdict = await ports.turns.take(
    sessionId,
    async () => undefined,
    () =>
      transact(
        ports.store,
        space,
        function* (tx): Flow<Verdict> {
          const begun = yield* beginWrite(tx, writer);
          if (begun.type === "answered") return begun.verdict;
          const { lastSeq, signedWrites } = begun.space;
          const signed = signedRows(
            verifySigned(invocation as JsonObject | undefined, scope, signedWrites === "required"),
          );
          const decided = yield* decide(tx, lastSeq);
          const accepted = { ...nothingWritten, ...decided, ...signed, seq: lastSeq + 1, branch, original };
          return yield* record(tx, writer, accepted);
        },
        { writer },
      ),
  );
  if (verdict.type === "accepted" && !verdict.replayed) {
    ports.onCommitted({ ...space, branch, seq: verdict.seq, sessionId, localSeq, entityIds: [] });
  }
  return verdict;
}
