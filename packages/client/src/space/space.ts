// A space for its user: everything of its default branch, other branches, merges, history, and the life of its session.
import { readCommit } from "@claudemesh/protocol/spaces/commit";
import { type BranchId, defaultBranch, readBranchId } from "@claudemesh/protocol/spaces/entity";
import type { BranchDiff, MergeConflict } from "@claudemesh/protocol/spaces/merge";
import { BranchHandle } from "./branch-handle.ts";
import { type LogPage, type LogQuery, type Proposal, Reader, type Resolutions } from "./reader.ts";
import { Replica, type ReplicaPorts } from "./replica.ts";
import { isRebuildable } from "./session/commit-answer.ts";
import type { Verdict } from "./session/integration.ts";
import type { Draft } from "./session/session-state.ts";
import type { LayerRequest } from "./tiers/layer.ts";
import { afterAttempts, defaultRetries, resultOf } from "./transact.ts";

export type CommitResult = ReturnType<typeof resultOf>;

export type MergeRequest = {
  readonly source: BranchId;
  readonly target?: BranchId;
  readonly resolutions?: Resolutions;
  /** How often it is proposed again when a commit came in between. */
  readonly retries?: number;
};

export type MergeResult =
  | { readonly status: "merged"; readonly seq: number; readonly merged: readonly string[] }
  /** Call again with a resolution for each. */
  | { readonly status: "conflict"; readonly conflicts: readonly MergeConflict[] }
  | { readonly status: "up_to_date" };

export class Space extends BranchHandle {
  readonly space: string;
  readonly #replica: Replica;
  readonly #reader: Reader;
  readonly #ports: ReplicaPorts;

  constructor(space: string, ports: ReplicaPorts) {
    const replica = new Replica(space, ports);
    const reader = new Reader((type, input) => replica.ask(type, input));
    super(defaultBranch, replica, reader, ports.sleep);
    this.space = space;
    this.#replica = replica;
    this.#reader = reader;
    this.#ports = ports;
  }

  /** Resolves when the session is open; rejects when the broker refuses it for good. */
  opened(): Promise<void> {
    return this.#replica.until(() => this.#replica.state.phase === "open");
  }

  /** The id of the session; undefined until the first one is opened. */
  get sessionId(): string | undefined {
    return this.#replica.state.sessionId;
  }

  /** How many commits have no verdict. */
  get pending(): number {
    return this.#replica.pending;
  }

  /** Resolves once every commit has its verdict. */
  settled(): Promise<void> {
    return this.#replica.until(() => this.#replica.pending === 0);
  }

  /** "" and "main" are the default branch. */
  branch(name: BranchId): BranchHandle {
    const id = readBranchId(name);
    return id === defaultBranch ? this : new BranchHandle(id, this.#replica, this.#reader, this.#ports.sleep);
  }

  /** Starts from the present state of the default branch unless another start is given. Each name can be used once. */
  async createBranch(
    name: BranchId,
    from: { readonly branch?: BranchId; readonly atSeq?: number } = {},
  ): Promise<CommitResult> {
    const input = {
      name,
      ...(from.branch !== undefined && { fromBranch: readBranchId(from.branch) }),
      ...(from.atSeq !== undefined && { atSeq: from.atSeq }),
    };
    return this.#lifecycle("space.branch.create", name, input);
  }

  /** A deleted branch can still be read, and not written any more. */
  deleteBranch(name: BranchId): Promise<CommitResult> {
    return this.#lifecycle("space.branch.delete", name, { name });
  }

  branches(
    page: { readonly after?: BranchId; readonly limit?: number } = {},
  ): Promise<Readonly<Record<string, unknown>>> {
    return this.#reader.branches(page.after, page.limit);
  }

  /** What the source has changed since the two were equal. */
  diff(pair: { readonly source: BranchId; readonly target?: BranchId }): Promise<BranchDiff> {
    return this.#reader.diff(readBranchId(pair.source), readBranchId(pair.target));
  }

  /** Brings what the source changed into the target, in one commit. The caller resolves conflicts. */
  async merge({ source, target, resolutions, retries = defaultRetries }: MergeRequest): Promise<MergeResult> {
    for (let attempts = 1; ; attempts += 1) {
      const proposed = await this.#reader.propose(readBranchId(source), readBranchId(target), resolutions);
      if (proposed.status !== "ready") return proposed;
      const verdict = await this.#replica.submit(mergeDraft(proposed.proposal)).verdict;
      if (verdict.type === "accepted") return { status: "merged", seq: verdict.seq, merged: proposed.merged };
      if (!isRebuildable(verdict.error) || attempts > retries) throw afterAttempts(verdict.error, attempts);
      await this.#replica.backoff(attempts);
    }
  }

  log(query: LogQuery = {}): Promise<LogPage> {
    return this.#reader.log(query);
  }

  /** A new session, after the last one was lost; confirmed state and all subscriptions stay. */
  reopen(): Promise<void> {
    return this.#replica.reopen();
  }

  /** Ends the replica. Commits without a verdict are reported as closed; they may still have been accepted. */
  close(): void {
    this.#replica.close();
  }

  async #lifecycle(type: LayerRequest["type"], branch: BranchId, fields: object): Promise<CommitResult> {
    const request = (localSeq: number) => ({ type, input: { localSeq, ...fields } });
    const draft: Draft = { branch, operations: [], restsOn: new Set(), hasSends: false, request };
    return accepted(await this.#replica.submit(draft).verdict);
  }
}

function accepted(verdict: Verdict): CommitResult {
  if (verdict.type === "rejected") throw verdict.error;
  return resultOf(verdict);
}

function mergeDraft(proposal: Proposal): Draft {
  const { operations, branch = defaultBranch } = readCommit({ localSeq: 1, ...proposal });
  const request = (localSeq: number) => ({
    type: "space.commit" as const,
    input: { commit: { localSeq, ...proposal } },
  });
  return { branch, operations, restsOn: new Set(), hasSends: false, request };
}
