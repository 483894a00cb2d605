// The rules between rows: nothing is found where the services alone have written, and what a statement by hand breaks in
// the tables is named.
import { generateKeyPairSync, sign } from "node:crypto";
import type { JsonObject } from "@claudemesh/protocol/json";
import { canonicalCommitPayload } from "@claudemesh/protocol/spaces/commit";
import { invocationBytes } from "@claudemesh/protocol/spaces/invocation";
import { expect, test } from "vitest";
import { envelopeFor } from "../../core/invocation.ts";
import { sessionUnusedMs } from "../../core/session.ts";
import { proposeMerge } from "../../services/merges.ts";
import { sweepAllSessions } from "../../services/spaces.ts";
import type { commitRevisionRules } from "../commit-revisions.ts";
import type { spaceRules } from "../row-rules.ts";
import { alice, bob, patch, read, remove, type Session, set, type World } from "./world.ts";

const otherMesh = "00000000-0000-7000-8000-00000000000f";

async function writeSigned(world: World): Promise<void> {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const memberPubkey = publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex");
  await world.addMember(memberPubkey);
  const session = await world.session(memberPubkey);
  const commit = session.build([set("task:signed", { n: 1 })]);
  const { sessionId } = session.opened;
  const scope = { cmd: "/memory/commit" as const, space: world.space, memberPubkey, sessionId, localSeq: 1 };
  const envelope = { ...envelopeFor({ ...scope, payload: canonicalCommitPayload(commit) }) } as JsonObject;
  const signature = sign(null, invocationBytes(envelope), privateKey).toString("hex");
  expect(await session.send({ ...commit, invocation: { envelope, signature } })).toMatchObject({ type: "accepted" });
}

async function merge(world: World, session: Session, source: string): Promise<void> {
  const plan = await proposeMerge(world.ports(), world.space, { source, target: "" }, new Map());
  if (plan.status !== "ready") throw new Error(`the merge is not ready: ${plan.status}`);
  const { branch, reads, operations, merge: context } = plan.proposal;
  await session.write(operations, { branch, merge: context, confirmed: reads.confirmed });
}

/** Every table has rows, and every rule something to look at. */
async function fillWorld(world: World): Promise<void> {
  const old = await world.session(bob);
  await old.write([set("task:old", { n: 1 })]);
  world.nowMs += sessionUnusedMs + 1;
  expect(await sweepAllSessions(world.ports())).toBe(1);

  const session = await world.session();
  await session.write([set("task:1", { n: 0 }), set("task:gone", { n: 0 })]);
  const patches = Array.from({ length: 12 }, (_, value) => patch("task:1", { op: "replace", path: "/value/n", value }));
  await session.write(patches);
  await session.write([remove("task:gone")]);
  expect(await session.commit([set("task:1", {})], { confirmed: [read("task:1", 1)] })).toMatchObject({
    type: "rejected",
  });
  await session.createBranch("draft", { atSeq: 3 });
  await session.write([set("task:2", { n: 1 }), remove("task:2"), set("task:2", { n: 2 })], { branch: "draft" });
  await session.createBranch("draft-2", { fromBranch: "draft" });
  await merge(world, session, "draft");
  await session.deleteBranch("draft-2");
  session.opened = await world.open(alice, "open-again", session.opened);
  await session.write([set("task:3", { n: 1 })]);
  await writeSigned(world);
}

/** Pages of two, so that every table has several. */
async function check(
  { rules: { rules, checkPage }, space, nowMs }: World,
  names: readonly string[] = Object.keys(rules),
): Promise<{ found: Map<string, string[]>; rows: Map<string, number> }> {
  const found = new Map<string, string[]>();
  const rows = new Map<string, number>();
  for (const name of names) {
    let after: Awaited<ReturnType<typeof checkPage>>["next"];
    do {
      const page = await checkPage(name, space.meshId, after, { nowMs, limit: 2 });
      rows.set(name, (rows.get(name) ?? 0) + page.rows);
      if (page.found.length > 0) found.set(name, [...(found.get(name) ?? []), ...page.found]);
      after = page.next;
    } while (after !== undefined);
  }
  return { found, rows };
}

type Update = (table: string, set: string, where?: string) => string;

/** What breaks each rule, by hand. */
const breaks: Record<keyof typeof spaceRules | keyof typeof commitRevisionRules, (update: Update) => string> = {
  space_without_main: (update) => update("space_branch", "deleted_seq = 1", "name = ''"),
  space_beside_its_log: (update) => update("space", "last_seq = last_seq + 1"),
  space_without_member: (update) => update("space", "created_by = 'x'"),
  session_without_space: (update) => update("space_session", "space_id = 'x'"),
  session_without_member: (update) => update("space_session", "member_pubkey = 'x'"),
  session_without_open: (update) => update("space_session", "epoch = epoch + 1"),
  session_beside_its_verdicts: (update) => update("space_session", "last_local_seq = last_local_seq + 1"),
  open_without_session: (update) => update("space_session_open", "epoch = epoch + 1"),
  verdict_without_space: (update) => update("space_verdict", "space_id = 'x'"),
  verdict_without_member: (update) => update("space_verdict", "member_pubkey = 'x'"),
  verdict_without_commit: (update) => update("space_verdict", "seq = 99", "local_seq = 2 AND seq IS NOT NULL"),
  verdict_beyond_session: (update) => update("space_session", "last_local_seq = 1"),
  commit_without_verdict: (update) => update("space_commit", "local_seq = 99", "seq = 3"),
  commit_behind_a_gap: (update) => update("space_commit", "seq = 99", "seq = 3"),
  commit_beside_its_branch: (update) => update("space_branch", "created_seq = 99", "name = 'draft'"),
  commit_without_invocation: (update) => update("space_invocation", "hash = 'x'", "content LIKE '%signature%'"),
  revision_without_commit: (update) => update("space_revision", "branch = 'draft'", "seq = 2"),
  revision_without_head: (update) => update("space_head", "seq = seq - 1"),
  head_beside_its_revision: (update) => update("space_head", "deleted = HAS_NOT", "entity_id = 'task:gone'"),
  snapshot_without_revision: (update) => update("space_snapshot", "seq = 99"),
  branch_without_commit: (update) => update("space_branch", "deleted_seq = 1", "name = 'draft'"),
  branch_with_other_lineage: (update) => update("space_branch", "created_seq = 3", "name = 'draft'"),
  merge_without_commit: (update) => update("space_merge", "source_branch = ''"),
  invocation_without_space: (update) => update("space_invocation", "space_id = 'x'"),
  invocation_with_other_hash: (update) => update("space_invocation", "content = 'x'"),
  commit_without_revision: (update) => update("space_revision", "op_index = 99", "seq = 3 AND op_index = 11"),
};

export function describeRules(world: () => World): void {
  test("hold in what the services have written, and every rule has looked at rows", async () => {
    await fillWorld(world());
    const { found, rows } = await check(world());
    expect([...found]).toEqual([]);
    expect([...rows].filter(([, count]) => count === 0)).toEqual([]);
    expect(rows.get("space_without_main")).toBe(1);
    expect(rows.get("branch_without_commit")).toBe(3);
    expect([...rows.keys()]).toEqual(Object.keys(breaks));
  });

  test.for(Object.entries(breaks))("name %s where it is broken by hand", async ([name, damage]) => {
    await fillWorld(world());
    const update: Update = (table, set, where = "1 = 1") =>
      `UPDATE ${world().table(table)} SET ${set} WHERE mesh_id = '${world().space.meshId}' AND ${where}`;
    await world().query(damage(update).replace("HAS_NOT", "(1 = 0)"));
    const { found } = await check(world(), [name]);
    expect([...found.keys()]).toEqual([name]);
  });

  test("name a commit whose text is torn, and take one that holds what is no text elsewhere", async () => {
    const session = await world().session();
    await session.write([set("task:1", { text: "\0 and \\u0000" })]);
    await session.write([set("task:2", { n: 1 }), remove("task:2")]);
    expect([...(await check(world())).found]).toEqual([]);
    await world().query(`UPDATE ${world().table("space_commit")} SET original = '{' WHERE seq = 1`);
    await world().query(`UPDATE ${world().table("space_revision")} SET op = 'patch' WHERE seq = 2 AND op_index = 0`);
    expect((await check(world())).found.get("commit_without_revision")).toEqual(["plan/1", "plan/2"]);
  });

  test("name a head of nothing, a torn lineage, and half a signature", async () => {
    await fillWorld(world());
    const table = (name: string) => world().table(name);
    await world().query(`UPDATE ${table("space_head")} SET seq = 99 WHERE entity_id = 'task:1'`);
    await world().query(`UPDATE ${table("space_branch")} SET lineage = '[{"branch":' WHERE name = 'draft'`);
    await world().query(`UPDATE ${table("space_commit")} SET authorization_ref = NULL`);
    const { found } = await check(world());
    expect(found.get("head_beside_its_revision")).toEqual(["plan//task:1"]);
    expect(found.get("branch_with_other_lineage")).toEqual(["plan/draft"]);
    expect(found.get("commit_without_invocation")).toHaveLength(1);
  });

  test("name rows of a mesh that does not exist", async () => {
    expect(await world().rules.strayMeshes()).toEqual([]);
    await world().session();
    await world().query(`UPDATE ${world().table("space_session_open")} SET mesh_id = '${otherMesh}'`);
    expect(await world().rules.strayMeshes()).toEqual([`space_session_open/${otherMesh}`]);
  });
}
