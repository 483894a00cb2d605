// The rules that tie rows of a space together, as a condition on one row that breaks it. Both stores run the same list;
// one rule more, which reads commits' texts, is in commit-revisions.ts.
// Rules that a table keeps by itself are not here, and neither is what only reading a whole history could tell: that a
// snapshot is what the revisions before it make. Where snapshots are in doubt, all of them can be deleted.
// Why: docs/decisions/0078.
import { hash } from "node:crypto";
import { exists, lacks, type RowDialect, type RowRule, type RowValue, rule } from "@claudemesh/storage/row-rules";
import { branchDepthMax, type Segment } from "../core/branch-lineage.ts";

const spaceKey = { space_id: "text" } as const;
const sessionKey = { ...spaceKey, session_id: "text" } as const;
const openKey = { ...spaceKey, member_pubkey: "text", open_hash: "bytes" } as const;
const verdictKey = { ...sessionKey, local_seq: "integer" } as const;
const commitKey = { ...spaceKey, seq: "integer" } as const;
const headKey = { ...spaceKey, branch: "text", entity_id: "text" } as const;
const snapshotKey = { ...headKey, seq: "integer" } as const;
const revisionKey = { ...snapshotKey, op_index: "integer" } as const;
const branchKey = { ...spaceKey, name: "text" } as const;
const mergeKey = { ...spaceKey, first_branch: "text", second_branch: "text", seq: "integer" } as const;
const invocationKey = { ...spaceKey, hash: "text" } as const;

/** Another row of the same space. */
const has = (d: RowDialect, table: string, alias: string, condition: string) =>
  exists(d, table, alias, `${alias}.space_id = r.space_id AND ${condition}`);
const hasNot = (d: RowDialect, table: string, alias: string, condition: string) =>
  `NOT ${has(d, table, alias, condition)}`;
const lacksSpace = (d: RowDialect) => hasNot(d, "space", "s", "1 = 1");
const lacksMember = (d: RowDialect, pubkey = "r.member_pubkey") => lacks(d, "member", "m", `m.pubkey = ${pubkey}`);
const sameEntity = (alias: string) => `${alias}.branch = r.branch AND ${alias}.entity_id = r.entity_id`;
const sameRequest = (alias: string) =>
  `${alias}.session_id = r.session_id AND ${alias}.local_seq = r.local_seq AND ${alias}.seq = r.seq
   AND ${alias}.branch = r.branch AND ${alias}.member_pubkey = r.member_pubkey`;

/** Nearest first, and no ancestor shows more of itself than the one before it does; main is the last. */
function hasOtherLineage(row: Readonly<Record<string, RowValue>>): boolean {
  const lineage = readLineage(String(row.lineage));
  if (lineage === undefined) return true;
  if (row.name === "") return lineage.length > 0;
  const isLonger = ({ upTo }: Segment, index: number) =>
    upTo > (lineage[index - 1]?.upTo ?? Number(row.created_seq) - 1);
  return lineage.length > branchDepthMax || lineage.at(-1)?.branch !== "" || lineage.some(isLonger);
}

function readLineage(text: string): Segment[] | undefined {
  try {
    const lineage: unknown = JSON.parse(text);
    return Array.isArray(lineage) ? lineage : undefined;
  } catch {
    return undefined;
  }
}

const spaceAndSessionRules = {
  space_without_main: rule(
    "space",
    spaceKey,
    "a space has its default branch, from its beginning and for ever",
    (d) => hasNot(d, "space_branch", "b", "b.name = '' AND b.created_seq = 0 AND b.deleted_seq IS NULL"),
    "SPC-8",
  ),
  space_beside_its_log: rule(
    "space",
    spaceKey,
    "a space stands at the seq of its last commit",
    (d) =>
      `(r.last_seq > 0 AND ${hasNot(d, "space_commit", "c", "c.seq = r.last_seq")})
       OR ${has(d, "space_commit", "c", "c.seq > r.last_seq")}`,
    "SPC-7",
  ),
  space_without_member: rule("space", spaceKey, "a space was made by a member, former or not", (d) =>
    lacksMember(d, "r.created_by"),
  ),
  session_without_space: rule("space_session", sessionKey, "a session is of a space", lacksSpace),
  session_without_member: rule("space_session", sessionKey, "a session is a member's, former or not", (d) =>
    lacksMember(d),
  ),
  session_without_open: rule(
    "space_session",
    sessionKey,
    "a session's token is that of its last open, by its own member",
    (d) =>
      hasNot(
        d,
        "space_session_open",
        "o",
        "o.session_id = r.session_id AND o.epoch = r.epoch AND o.member_pubkey = r.member_pubkey",
      ),
    "SPC-4",
  ),
  session_beside_its_verdicts: rule(
    "space_session",
    sessionKey,
    "a session stands at its last verdict",
    (d) =>
      `r.last_local_seq > 0 AND ${hasNot(
        d,
        "space_verdict",
        "v",
        "v.session_id = r.session_id AND v.local_seq = r.last_local_seq",
      )}`,
    "SPC-5",
  ),
  open_without_session: rule(
    "space_session_open",
    openKey,
    "an open is of a session of its member, and not newer than the session's token",
    (d) =>
      hasNot(
        d,
        "space_session",
        "s",
        "s.session_id = r.session_id AND s.member_pubkey = r.member_pubkey AND s.epoch >= r.epoch",
      ),
    "SPC-4",
  ),
  verdict_without_space: rule("space_verdict", verdictKey, "a verdict is of a space", lacksSpace),
  verdict_without_member: rule("space_verdict", verdictKey, "a verdict is on a member's write, former or not", (d) =>
    lacksMember(d),
  ),
  verdict_without_commit: rule(
    "space_verdict",
    verdictKey,
    "what was accepted is in the log, under the same request, branch and member",
    (d) => `r.seq IS NOT NULL AND ${hasNot(d, "space_commit", "c", sameRequest("c"))}`,
    "SPC-1",
  ),
  verdict_beyond_session: rule(
    "space_verdict",
    verdictKey,
    "a verdict is of its session's member, and not beyond the session's last localSeq; the session itself may be forgotten",
    (d) =>
      has(
        d,
        "space_session",
        "s",
        "s.session_id = r.session_id AND (s.last_local_seq < r.local_seq OR s.member_pubkey <> r.member_pubkey)",
      ),
    "SPC-5",
  ),
} satisfies Record<string, RowRule>;

const historyRules = {
  commit_without_verdict: rule(
    "space_commit",
    commitKey,
    "a commit has its verdict, under the same request, branch and member",
    (d) => hasNot(d, "space_verdict", "v", sameRequest("v")),
    "SPC-1",
  ),
  commit_behind_a_gap: rule(
    "space_commit",
    commitKey,
    "a commit stands behind the one before it, up to its space's seq",
    (d) =>
      `r.seq < 1 OR (r.seq > 1 AND ${hasNot(d, "space_commit", "c", "c.seq = r.seq - 1")})
       OR ${hasNot(d, "space", "s", "s.last_seq >= r.seq")}`,
    "SPC-7",
  ),
  commit_beside_its_branch: rule(
    "space_commit",
    commitKey,
    "a commit is on a branch that was there and not deleted",
    (d) =>
      hasNot(
        d,
        "space_branch",
        "b",
        "b.name = r.branch AND b.created_seq <= r.seq AND (b.deleted_seq IS NULL OR b.deleted_seq >= r.seq)",
      ),
    "SPC-8",
  ),
  commit_without_invocation: rule(
    "space_commit",
    commitKey,
    "a signed commit has what was signed and the signature, and an unsigned one neither",
    (d) =>
      `(r.invocation_ref IS NULL) <> (r.authorization_ref IS NULL)
       OR (r.invocation_ref IS NOT NULL AND ${hasNot(d, "space_invocation", "i", "i.hash = r.invocation_ref")})
       OR (r.authorization_ref IS NOT NULL AND ${hasNot(d, "space_invocation", "i", "i.hash = r.authorization_ref")})`,
  ),
  revision_without_commit: rule(
    "space_revision",
    revisionKey,
    "a revision is of a commit on its branch",
    (d) => hasNot(d, "space_commit", "c", "c.seq = r.seq AND c.branch = r.branch"),
    "SPC-9",
  ),
  revision_without_head: rule(
    "space_revision",
    revisionKey,
    "what was written has a head, at that write or a later one",
    (d) => hasNot(d, "space_head", "h", `${sameEntity("h")} AND h.seq >= r.seq`),
    "SPC-9",
  ),
  head_beside_its_revision: rule(
    "space_head",
    headKey,
    "a head is at the last revision of its entity, and says whether that deleted it",
    (d) =>
      `${hasNot(d, "space_revision", "w", `${sameEntity("w")} AND w.seq = r.seq`)} OR r.deleted <>
         (SELECT w.op = 'delete' FROM ${d.table("space_revision")} w WHERE w.mesh_id = r.mesh_id
            AND w.space_id = r.space_id AND ${sameEntity("w")} ORDER BY w.seq DESC, w.op_index DESC LIMIT 1)`,
    "SPC-9",
  ),
  snapshot_without_revision: rule(
    "space_snapshot",
    snapshotKey,
    "a snapshot is of an entity as a revision left it",
    (d) => hasNot(d, "space_revision", "w", `${sameEntity("w")} AND w.seq = r.seq`),
    "SPC-9",
  ),
  branch_without_commit: rule(
    "space_branch",
    branchKey,
    "every branch but the default one was made by a commit, and deleted by one if at all",
    (d) =>
      `${lacksSpace(d)} OR (r.name <> '' AND ${hasNot(d, "space_commit", "c", "c.seq = r.created_seq AND c.branch = r.name")})
       OR (r.deleted_seq IS NOT NULL AND ${hasNot(d, "space_commit", "c", "c.seq = r.deleted_seq AND c.branch = r.name")})`,
    "SPC-8",
  ),
  branch_with_other_lineage: {
    table: "space_branch",
    key: branchKey,
    rule: "a branch's ancestors are nearest first, up to the default branch, and none shows what came after the fork",
    invariant: "SPC-8",
    examine: { columns: ["lineage", "created_seq"], isBroken: hasOtherLineage },
  },
  merge_without_commit: rule(
    "space_merge",
    mergeKey,
    "a merge is a commit on one of its branches, of what the other held before",
    (d) =>
      `r.source_seq >= r.seq OR (r.source_branch <> r.first_branch AND r.source_branch <> r.second_branch)
       OR ${hasNot(
         d,
         "space_commit",
         "c",
         `c.seq = r.seq AND c.branch <> r.source_branch
          AND (c.branch = r.first_branch OR c.branch = r.second_branch)`,
       )} OR ${hasNot(d, "space_branch", "b", "b.name = r.source_branch")}`,
    "SPC-10",
  ),
  invocation_without_space: rule("space_invocation", invocationKey, "what was signed is of a space", lacksSpace),
  invocation_with_other_hash: {
    table: "space_invocation",
    key: invocationKey,
    rule: "what was signed is kept under the hash of its content",
    invariant: undefined,
    examine: { columns: ["content"], isBroken: (row) => hash("sha256", String(row.content), "hex") !== row.hash },
  },
} satisfies Record<string, RowRule>;

export const spaceRules = { ...spaceAndSessionRules, ...historyRules } satisfies Record<string, RowRule>;
