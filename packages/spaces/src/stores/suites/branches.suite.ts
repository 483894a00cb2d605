// Branches and merges: isolated until merged, forked from any past, merged from the base that both have.
import { encodeMergePlan, type MergePlan } from "@claudemesh/protocol/spaces/merge";
import { expect, test } from "vitest";
import { diffBranches, proposeMerge } from "../../services/merges.ts";
import { listBranches, readLog } from "../../services/query.ts";
import { brief, patch, read, refusal, remove, type Session, set, type World } from "./world.ts";

export function describeBranches(world: () => World): void {
  const propose = (source: string, target: string, resolutions = {}) =>
    proposeMerge(world().ports(), world().space, { source, target }, new Map(Object.entries(resolutions)));
  const submit = (session: Session, plan: MergePlan) => {
    if (plan.status !== "ready") throw new Error(`the merge is not ready: ${plan.status}`);
    const { branch, reads, operations, merge } = plan.proposal;
    return session.commit(operations, { branch, merge, confirmed: reads.confirmed });
  };
  const merge = async (session: Session, source: string, target: string, resolutions = {}) =>
    submit(session, await propose(source, target, resolutions));
  const diff = (source: string, target: string) => diffBranches(world().ports(), world().space, { source, target });

  test("a branch is made and deleted by commits of their own: seq, log row, replay", async () => {
    const session = await world().session();
    await session.write([set("task:1", { n: 1 })]);
    expect(await session.createBranch("draft")).toMatchObject({ type: "accepted", seq: 2, replayed: false });
    expect(await session.createBranch("draft", {}, 2)).toMatchObject({ seq: 2, replayed: true });
    expect(await refusal(session.createBranch("other", {}, 2))).toBe("replay_mismatch_error");
    await expect(session.createBranch("main", {}, 3)).rejects.toThrow("default branch is there already");
    await expect(session.createBranch("no name", {}, 3)).rejects.toThrow("A name is");
    expect(await session.deleteBranch("draft")).toMatchObject({ seq: 3 });
    await world().reopen();
    expect(await session.deleteBranch("draft", 3)).toMatchObject({ seq: 3, replayed: true });
    const { items } = await readLog(world().ports(), world().space, { after: 1 }, 10);
    expect(items.map(({ original }) => original)).toEqual([
      { cmd: "/memory/branch/create", args: { localSeq: 2, name: "draft" } },
      { cmd: "/memory/branch/delete", args: { localSeq: 3, name: "draft" } },
    ]);
    const branches = await listBranches(world().ports(), world().space, undefined, 10);
    expect(branches.map(({ name, createdSeq, deletedSeq }) => [name, createdSeq, deletedSeq])).toEqual([
      ["", 0, undefined],
      ["draft", 2, 3],
    ]);
  });

  test("making a branch writes one row, whatever it holds", async () => {
    const session = await world().session();
    await session.write(Array.from({ length: 50 }, (_, n) => set(`task:${n}`, { n })));
    const before = await world().count("space_revision");
    await session.createBranch("draft");
    expect(await world().count("space_revision")).toBe(before);
    expect(await world().count("space_head")).toBe(50);
    expect(await world().document("task:7", "draft")).toEqual({ value: { n: 7 } });
  });

  test("isolation is absolute until a merge, in both directions", async () => {
    const session = await world().session();
    await session.write([set("task:1", { n: 1 })]);
    await session.createBranch("draft");
    await session.write([set("task:1", { n: 2 }), set("task:2", { n: 2 })], { branch: "draft" });
    await session.write([set("task:1", { n: 3 }), set("task:3", { n: 3 })]);
    expect(await world().document("task:1")).toEqual({ value: { n: 3 } });
    expect(await world().document("task:1", "draft")).toEqual({ value: { n: 2 } });
    expect(await world().read(["task:2"])).toEqual([]);
    expect(await world().read(["task:3"], "draft")).toEqual([]);
  });

  test("a branch from any past seq shows that past, and patches build on it", async () => {
    const session = await world().session();
    await session.write([set("task:1", { n: 1, m: 1 })]);
    await session.write([patch("task:1", { op: "replace", path: "/value/n", value: 2 })]);
    await session.createBranch("old", { atSeq: 1 });
    await session.createBranch("older", { fromBranch: "old", atSeq: 1 });
    await session.write([patch("task:1", { op: "replace", path: "/value/m", value: 9 })], { branch: "older" });
    expect(await world().document("task:1", "old")).toEqual({ value: { n: 1, m: 1 } });
    expect(await world().document("task:1", "older")).toEqual({ value: { n: 1, m: 9 } });
    expect(await world().document("task:1", "older", 1)).toEqual({ value: { n: 1, m: 1 } });
  });

  test("names are used once, depth is at most 8, main can't be deleted", async () => {
    const session = await world().session();
    await session.createBranch("b1");
    await session.deleteBranch("b1");
    expect(await refusal(session.createBranch("b1"))).toBe("branch_exists");
    expect(await refusal(session.createBranch("b2", { fromBranch: "b1" }))).toBe("branch_deleted");
    expect(await refusal(session.createBranch("b2", { fromBranch: "nowhere" }))).toBe("branch_not_found");
    expect(await refusal(session.createBranch("b2", { atSeq: 99 }))).toBe("seq_out_of_range");
    expect(await refusal(session.deleteBranch(""))).toBe("invalid_request");
    let from = "";
    for (let depth = 1; depth <= 8; depth++) {
      await session.createBranch(`d${depth}`, { fromBranch: from });
      from = `d${depth}`;
    }
    expect(await refusal(session.createBranch("d9", { fromBranch: from }))).toBe("branch_too_deep");
    await session.write([set("task:1", { n: 1 })], { branch: from });
    expect(await world().document("task:1", from)).toEqual({ value: { n: 1 } });
  });

  test("a deleted branch can't be written; it and its children can be read", async () => {
    const session = await world().session();
    await session.createBranch("draft");
    await session.write([set("task:1", { n: 1 })], { branch: "draft" });
    await session.createBranch("child", { fromBranch: "draft" });
    await session.deleteBranch("draft");
    expect(await refusal(session.commit([set("task:1", { n: 2 })], { branch: "draft" }))).toBe("branch_deleted");
    expect(await refusal(session.deleteBranch("draft"))).toBe("branch_deleted");
    expect(await world().document("task:1", "draft")).toEqual({ value: { n: 1 } });
    await session.write([patch("task:1", { op: "replace", path: "/value/n", value: 5 })], { branch: "child" });
    expect(await world().document("task:1", "child")).toEqual({ value: { n: 5 } });
  });

  test("reads on a branch see its ancestors' writes up to the fork only", async () => {
    const session = await world().session();
    const first = await session.write([set("task:1", { n: 1 })]);
    const second = await session.write([set("task:1", { n: 2 })]);
    await session.createBranch("draft", { atSeq: second });
    await session.write([set("task:1", { n: 3 })]);
    const onDraft = (seq: number) => ({ confirmed: [{ ...read("task:1", seq), branch: "draft" }], branch: "draft" });
    expect(brief(await session.commit([set("task:2", {})], onDraft(first)))).toBe("ConflictError");
    expect(brief(await session.commit([set("task:2", {})], onDraft(second)))).toBe(5);
  });

  test("a merge brings over what the source changed and leaves what it did not", async () => {
    const session = await world().session();
    await session.write([set("task:1", { n: 1 }), set("task:2", { n: 1 }), set("task:3", { n: 1 })]);
    await session.createBranch("draft");
    await session.write([set("task:1", { n: 2 }), remove("task:2"), set("task:4", { n: 4 })], { branch: "draft" });
    await session.write([set("task:3", { n: 9 })]);
    expect(await diff("draft", "")).toEqual({ added: ["task:4"], removed: ["task:2"], modified: ["task:1"] });
    const plan = await propose("draft", "");
    expect(encodeMergePlan(plan)).toMatchObject({
      status: "ready",
      merged: ["task:1", "task:2", "task:4"],
      proposal: { branch: "", merge: { sourceBranch: "draft", sourceSeq: 4, baseBranch: "", baseSeq: 1 } },
    });
    expect(brief(await submit(session, plan))).toBe(5);
    const now = await world().read(["task:1", "task:2", "task:3", "task:4"]);
    expect(now.map(({ document }) => document?.value)).toEqual([{ n: 2 }, undefined, { n: 9 }, { n: 4 }]);
    expect((await propose("draft", "")).status).toBe("up_to_date");
    expect(await diff("draft", "")).toEqual({ added: [], removed: [], modified: [] });
  });

  test("what both changed is a conflict, with all three documents; a resolution settles it", async () => {
    const session = await world().session();
    await session.write([set("task:1", { n: 1 }), set("task:2", { n: 1 })]);
    await session.createBranch("draft");
    await session.write([set("task:1", { n: 2 }), remove("task:2")], { branch: "draft" });
    await session.write([set("task:1", { n: 3 }), set("task:2", { n: 3 })]);
    expect(await propose("draft", "")).toEqual({
      status: "conflict",
      conflicts: [
        { id: "task:1", source: { value: { n: 2 } }, target: { value: { n: 3 } }, ancestor: { value: { n: 1 } } },
        { id: "task:2", source: null, target: { value: { n: 3 } }, ancestor: { value: { n: 1 } } },
      ],
    });
    const settled = { "task:1": { value: { n: 23 } }, "task:2": null };
    expect(await refusal(propose("draft", "", { ...settled, "task:9": null }))).toBe("invalid_request");
    expect(brief(await merge(session, "draft", "", settled))).toBe(5);
    expect(await world().document("task:1")).toEqual({ value: { n: 23 } });
    expect((await world().read(["task:2"]))[0]?.document).toBeUndefined();
    // The other way round, the resolution is what main has changed since.
    expect(await merge(session, "", "draft")).toMatchObject({ type: "accepted" });
    expect(await world().document("task:1", "draft")).toEqual({ value: { n: 23 } });
    expect((await propose("draft", "")).status).toBe("up_to_date");
    expect((await propose("", "draft")).status).toBe("up_to_date");
  });

  test("the base is the last merge between the two, in either direction", async () => {
    const session = await world().session();
    await session.write([set("task:1", { n: 1 })]);
    await session.createBranch("draft");
    await session.write([set("task:1", { n: 2 })], { branch: "draft" });
    await merge(session, "draft", "");
    // Changed on main alone since the merge: no conflict with what was merged before.
    await session.write([set("task:1", { n: 3 })]);
    await session.write([set("task:2", { n: 2 })], { branch: "draft" });
    expect(await merge(session, "draft", "")).toMatchObject({ type: "accepted" });
    expect(await world().document("task:1")).toEqual({ value: { n: 3 } });
    expect(await merge(session, "", "draft")).toMatchObject({ type: "accepted" });
    expect(await world().document("task:1", "draft")).toEqual({ value: { n: 3 } });
    await session.write([set("task:1", { n: 4 })], { branch: "draft" });
    expect(await merge(session, "draft", "")).toMatchObject({ type: "accepted" });
    expect(await world().document("task:1")).toEqual({ value: { n: 4 } });
  });

  test("siblings merge from the point where their lineages part", async () => {
    const session = await world().session();
    await session.write([set("task:1", { n: 1 }), set("task:2", { n: 1 })]);
    await session.createBranch("left");
    await session.write([set("task:3", { n: 1 })]);
    await session.createBranch("right");
    await session.write([set("task:1", { n: 2 })], { branch: "left" });
    await session.write([set("task:2", { n: 2 })], { branch: "right" });
    const plan = await propose("right", "left");
    expect(plan).toMatchObject({ status: "ready", merged: ["task:2", "task:3"] });
    await submit(session, plan);
    const now = await world().read(["task:1", "task:2", "task:3"], "left");
    expect(now.map(({ document }) => document?.value)).toEqual([{ n: 2 }, { n: 2 }, { n: 1 }]);
  });

  test("a merge proposal goes stale when either side changes what it merges", async () => {
    const session = await world().session();
    await session.write([set("task:1", { n: 1 })]);
    await session.createBranch("draft");
    await session.write([set("task:1", { n: 2 })], { branch: "draft" });
    for (const branch of ["draft", ""]) {
      const plan = await propose("draft", "", {});
      await session.write([patch("task:1", { op: "add", path: "/value/touched", value: branch })], { branch });
      expect(brief(await submit(session, plan))).toBe("ConflictError");
    }
    expect((await propose("draft", "")).status).toBe("conflict");
  });

  test("a merge proposal goes stale when another merge moves the base", async () => {
    const session = await world().session();
    await session.write([set("task:1", { n: 1 }), set("task:2", { n: 1 })]);
    await session.createBranch("draft");
    await session.write([set("task:1", { n: 2 })], { branch: "draft" });
    await session.write([set("task:2", { n: 3 })]);
    const back = await propose("", "draft");
    await merge(session, "draft", "");
    const verdict = await submit(session, back);
    if (verdict.type !== "rejected") throw new Error("accepted");
    expect(verdict.error.toBody()).toMatchObject({
      name: "ConflictError",
      conflicts: [{ id: "task:2", branch: "draft" }],
    });
  });

  test("a branch deleted under a proposal makes it stale, source or target", async () => {
    for (const deleted of ["source", "target"]) {
      const session = await world().session();
      const [source, target] = [`s-${deleted}`, `t-${deleted}`];
      await session.createBranch(source);
      await session.createBranch(target);
      await session.write([set(`task:${deleted}`, { n: 1 })], { branch: source });
      const plan = await propose(source, target);
      await session.deleteBranch(deleted === "source" ? source : target);
      expect(brief(await submit(session, plan))).toBe("ConflictError");
    }
  });

  test("a merge that no commit could hold is refused, and gets smaller by what is brought over before", async () => {
    const session = await world().session();
    await session.write([set("doc:0", { text: "" })]);
    await session.createBranch("draft");
    const docs = Array.from({ length: 5 }, (_, n) => set(`doc:${n}`, { text: `${n}`.repeat(1_000_000) }));
    for (const doc of docs) await session.write([doc], { branch: "draft" });
    await expect(propose("draft", "")).rejects.toMatchObject({
      code: "payload_too_large",
      details: { limit_bytes: 4_194_304 },
    });
    await session.write(docs.slice(0, 2));
    expect(brief(await merge(session, "draft", ""))).toBe(9);

    // Three documents for each conflict, and no answer holds so many.
    for (const doc of docs) await session.write([patch(doc.id, { op: "add", path: "/value/by", value: "main" })]);
    for (const doc of docs)
      await session.write([patch(doc.id, { op: "add", path: "/value/by", value: "draft" })], { branch: "draft" });
    expect(await refusal(propose("draft", ""))).toBe("payload_too_large");
    const chosen = Object.fromEntries(docs.map(({ id }) => [id, { value: {} }]));
    expect(await propose("draft", "", chosen)).toMatchObject({ status: "ready" });
  });

  test("changes of many entities are listed in the order of their ids, page after page", async () => {
    const session = await world().session();
    await session.createBranch("draft");
    const ids = Array.from({ length: 70 }, (_, n) => `many:${String(n).padStart(2, "0")}`);
    const odd = ["many:\u{fffd}", "many:\u{1f600}"];
    await session.write(
      [...ids, ...odd].map((id) => set(id, { n: 1 })),
      { branch: "draft" },
    );
    const sorted = [...ids, ...odd].toSorted();
    expect(await diff("draft", "")).toEqual({ added: sorted, removed: [], modified: [] });
    expect(await propose("draft", "")).toMatchObject({ status: "ready", merged: sorted });
  });

  test("a long comparison of branches gives way to others between its pages", async () => {
    const session = await world().session();
    await session.createBranch("draft");
    const entities = Array.from({ length: 200 }, (_, n) => set(`task:${n}`, { n }));
    await session.write(entities, { branch: "draft" });
    let turns = 0;
    let over = false;
    const diffing = diff("draft", "").finally(() => {
      over = true;
    });
    while (!over) {
      await new Promise((resolve) => setImmediate(resolve));
      turns += 1;
    }
    expect((await diffing).added).toHaveLength(200);
    expect(turns).toBeGreaterThan(5);
  });

  test("a false merge context is refused and consumes nothing", async () => {
    const session = await world().session();
    await session.write([set("task:1", { n: 1 })]);
    await session.createBranch("draft");
    const seq = await session.write([set("task:1", { n: 2 })], { branch: "draft" });
    const truth = { sourceBranch: "draft", sourceSeq: seq, baseBranch: "", baseSeq: 1 };
    const commit = (context: typeof truth) =>
      session.commit([set("task:1", { n: 2 })], { merge: context, localSeq: 4 });
    expect(await refusal(commit({ ...truth, baseSeq: 2 }))).toBe("invalid_merge");
    expect(await refusal(commit({ ...truth, baseBranch: "draft" }))).toBe("invalid_merge");
    expect(await refusal(commit({ ...truth, sourceBranch: "" }))).toBe("invalid_merge");
    expect(await refusal(commit({ ...truth, sourceBranch: "nowhere" }))).toBe("branch_not_found");
    expect(await refusal(commit({ ...truth, sourceSeq: 99 }))).toBe("seq_out_of_range");
    expect(brief(await commit(truth))).toBe(4);
  });
}
