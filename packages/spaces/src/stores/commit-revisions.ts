// The rule that each operation of a commit has its revision. The operations stand in the commit's own text, which may hold
// what a database's JSON functions refuse: they are read here, and the store is asked for their revisions. Both are
// written once and never change, so that two statements are as good as one.
import { parseOwnJsonText } from "@claudemesh/protocol/json";
import type { RowCursor, RowPage, RuleStore, RuleText } from "@claudemesh/storage/row-rules";

export const commitRevisionRules = {
  commit_without_revision: {
    rule: "every operation of a commit has its revision",
    invariant: "SPC-9",
    // A commit may be as large as a request.
    rowsPerPage: 8,
  },
} satisfies Record<string, RuleText>;

export type CommitText = {
  readonly space_id: string;
  readonly seq: number;
  readonly branch: string;
  readonly original: string;
};

export type RevisionKey = {
  readonly spaceId: string;
  readonly branch: string;
  readonly entityId: string;
  readonly seq: number;
  readonly opIndex: number;
  readonly op: string;
};

export type CommitRevisionSource = {
  /** In the order of space and seq. */
  readonly readCommits: (meshId: string, after: RowCursor | undefined, limit: number) => Promise<CommitText[]>;
  /** Those that have no revision. */
  readonly findMissing: (meshId: string, keys: readonly RevisionKey[]) => Promise<readonly RevisionKey[]>;
};

/** The rules of `base`, and this one. */
export function withCommitRevisions(base: RuleStore, source: CommitRevisionSource): RuleStore {
  return {
    ...base,
    rules: { ...base.rules, ...commitRevisionRules },
    checkPage: async (name, meshId, after, options) => {
      if (!Object.hasOwn(commitRevisionRules, name)) return base.checkPage(name, meshId, after, options);
      return checkCommits(source, meshId, after, options.limit);
    },
  };
}

async function checkCommits(
  source: CommitRevisionSource,
  meshId: string,
  after: RowCursor | undefined,
  limit: number,
): Promise<RowPage> {
  const commits = await source.readCommits(meshId, after, limit);
  const operations = commits.map(readOperations);
  const missing = await source.findMissing(
    meshId,
    operations.flatMap((keys) => (keys === "unreadable" ? [] : keys)),
  );
  const isBroken = new Set(missing.map(commitKeyOf));
  const broken = commits.filter((commit, index) => {
    return (
      operations[index] === "unreadable" || isBroken.has(commitKeyOf({ spaceId: commit.space_id, seq: commit.seq }))
    );
  });
  const last = commits.length === limit ? commits.at(-1) : undefined;
  return {
    rows: commits.length,
    found: broken.map((commit) => commitKeyOf({ spaceId: commit.space_id, seq: commit.seq })),
    next: last && [last.space_id, last.seq],
  };
}

function commitKeyOf({ spaceId, seq }: Pick<RevisionKey, "spaceId" | "seq">): string {
  return `${spaceId}/${seq}`;
}

/** A commit that makes or deletes a branch has none. */
function readOperations({ space_id: spaceId, seq, branch, original }: CommitText): RevisionKey[] | "unreadable" {
  try {
    const { operations = [] } = parseOwnJsonText(original) as { operations?: { id: string; op: string }[] };
    return operations.map(({ id: entityId, op }, opIndex) => ({ spaceId, branch, entityId, seq, opIndex, op }));
  } catch {
    return "unreadable";
  }
}
