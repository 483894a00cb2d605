// 3.4: proposing a merge, committing the proposal, and listing what a branch changed.
import { expectAnswer, expectEqual, expectRefusal, expectSameJson, expectThat } from "../../frame/expect.ts";
import { aList } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import type { HttpAnswer } from "../../transport/http.ts";
import type { BrokerWorld } from "../broker/world.ts";
import { expectAccepted, remove, Session, set } from "./session.ts";

/** A space whose branch "draft" was forked from three entities. */
async function forked(world: BrokerWorld): Promise<Session> {
  const session = await Session.inNewSpace(world);
  await session.accept([set("a:1", "base"), set("a:2", "base"), set("a:3", "base")]);
  await session.createBranch("draft");
  return session;
}

type Proposal = Readonly<Record<string, unknown>> & { readonly merge: Readonly<Record<string, unknown>> };

function proposalOf(answer: HttpAnswer): Proposal {
  expectAnswer(answer, 200, { status: "ready", merged: aList, proposal: { operations: aList, merge: {} } });
  return answer.body.proposal as Proposal;
}

const commitProposal = (session: Session, proposal: Proposal) => session.send({ ...session.build([]), ...proposal });

export const mergeScenarios: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "3.4",
    "merge",
    "what only the source changed is merged by an ordinary commit, and then it is up to date",
    async (world) => {
      const session = await forked(world);
      expectSameJson(
        (await session.propose("draft", "")).body,
        { status: "up_to_date" },
        "before any change",
        "propose",
      );
      await session.accept([set("a:1", "draft"), remove("a:2"), set("d:1", "new")], { branch: "draft" });
      await session.accept([set("a:3", "main")]);
      const ready = await session.propose("draft", "main");
      const proposal = proposalOf(ready);
      expectEqual(ready.body.merged, ["a:1", "a:2", "d:1"], "merged", ready.request);
      const commit = { ...session.build([]), ...proposal };
      expectAccepted(await session.send(commit));
      expectAnswer(await session.send(commit), 200, { replayed: true });
      await session.expectValue("a:1", "draft");
      expectAnswer(await session.entity("a:2"), 200, { deleted: true });
      await session.expectValue("d:1", "new");
      await session.expectValue("a:3", "main");
      await session.expectValue("a:3", "base", "?branch=draft");
      const again = await session.propose("draft", "");
      expectSameJson(again.body, { status: "up_to_date" }, "after the merge", again.request);
    },
  ),
  scenario(
    "3.4",
    "merge-conflict",
    "what both changed differently is a conflict, ended by a document or null",
    async (world) => {
      const session = await forked(world);
      await session.accept([set("a:1", "draft"), remove("a:2"), set("a:3", "same")], { branch: "draft" });
      await session.accept([set("a:1", "main"), set("a:2", "main"), set("a:3", "same")]);
      const conflict = expectAnswer(await session.propose("draft", ""), 200, { status: "conflict" });
      const expected = [
        { id: "a:1", source: { value: "draft" }, target: { value: "main" }, ancestor: { value: "base" } },
        { id: "a:2", source: null, target: { value: "main" }, ancestor: { value: "base" } },
      ];
      expectSameJson(conflict.body.conflicts, expected, "conflicts", conflict.request);
      const some = await session.propose("draft", "", { resolutions: { "a:1": { value: "both" } } });
      expectAnswer(some, 200, { status: "conflict", conflicts: [{ id: "a:2" }] });
      const resolutions = { "a:1": { value: "both" }, "a:2": null };
      const proposal = proposalOf(await session.propose("draft", "", { resolutions }));
      expectAccepted(await commitProposal(session, proposal));
      await session.expectValue("a:1", "both");
      expectAnswer(await session.entity("a:2"), 200, { deleted: true });
      for (const wrong of [{ "a:9": null }, { "no id": null }, { "a:1": 1 }]) {
        expectRefusal(await session.propose("draft", "", { resolutions: wrong }), 400);
      }
    },
  ),
  scenario(
    "3.4",
    "merge-stale",
    "a proposal goes stale when either side changes, another merge comes between, or the branch goes",
    async (world) => {
      const changes: readonly ((session: Session, proposal: Proposal) => Promise<unknown>)[] = [
        (session) => session.accept([set("a:1", "later")]),
        (session) => session.accept([set("a:1", "later")], { branch: "draft" }),
        async (session, proposal) => expectAccepted(await commitProposal(session, proposal)),
        async (session) => expectAccepted(await session.branch("delete", "draft")),
      ];
      for (const change of changes) {
        const session = await forked(world);
        await session.accept([set("a:1", "draft")], { branch: "draft" });
        const proposal = proposalOf(await session.propose("draft", ""));
        await change(session, proposal);
        const before = (await session.entity("a:1")).body.document;
        expectRefusal(await commitProposal(session, proposal), 409, "conflict_error");
        const after = await session.entity("a:1");
        expectSameJson(after.body.document, before, "nothing has changed", after.request);
      }
    },
  ),
  scenario(
    "3.4",
    "merge-unrelated",
    "a write that the merge does not touch leaves the proposal good",
    async (world) => {
      const session = await forked(world);
      await session.accept([set("a:1", "draft")], { branch: "draft" });
      const proposal = proposalOf(await session.propose("draft", ""));
      await session.accept([set("a:3", "main")]);
      expectAccepted(await commitProposal(session, proposal));
    },
  ),
  scenario(
    "3.4",
    "merge-false-context",
    "a merge that names another base than the server finds is refused and consumes nothing",
    async (world) => {
      const session = await forked(world);
      await session.accept([set("a:1", "main")]);
      await session.accept([set("a:2", "draft")], { branch: "draft" });
      const proposal = proposalOf(await session.propose("draft", ""));
      const { localSeq } = session.build([]);
      const { merge } = proposal;
      for (const change of [
        { baseSeq: Number(merge.baseSeq) - 1 },
        { baseBranch: "draft" },
        { baseSeq: merge.sourceSeq },
      ]) {
        const answer = await session.send({ ...proposal, localSeq, merge: { ...merge, ...change } });
        expectRefusal(answer, 400, "invalid_merge");
      }
      const itself = await session.send({ ...proposal, localSeq, merge: { ...merge, sourceBranch: "" } });
      expectRefusal(itself, 400);
      expectRefusal(await session.propose("draft", "draft"), 400, "invalid_merge");
      expectRefusal(await session.propose("none", ""), 404, "branch_not_found");
      expectAccepted(await session.send({ ...proposal, localSeq }));
    },
  ),
  scenario("3.4", "merge-base", "the base is the last merge between the two, in either direction", async (world) => {
    const session = await forked(world);
    await session.accept([set("a:1", "one")], { branch: "draft" });
    expectAccepted(await commitProposal(session, proposalOf(await session.propose("draft", ""))));
    await session.accept([set("a:1", "two")]);
    const back = proposalOf(await session.propose("", "draft"));
    expectEqual(back.branch, "draft", "the proposal's branch", "propose main into draft");
    expectAccepted(await commitProposal(session, back));
    await session.expectValue("a:1", "two", "?branch=draft");
    await session.accept([set("a:1", "three")], { branch: "draft" });
    const next = await session.propose("draft", "");
    const proposal = proposalOf(next);
    expectEqual(next.body.merged, ["a:1"], "merged without a conflict", next.request);
    expectAccepted(await commitProposal(session, proposal));
    await session.expectValue("a:1", "three");
  }),
  scenario("3.4", "diff", "a diff says what the source added, removed and modified since the base", async (world) => {
    const session = await forked(world);
    await session.accept([set("a:1", "draft"), remove("a:2"), set("d:1", 1), set("a:3", "base")], { branch: "draft" });
    await session.accept([set("m:1", 1)]);
    const answer = expectAnswer(await session.get("/diff?source=draft&target="), 200);
    const expected = { added: ["d:1"], removed: ["a:2"], modified: ["a:1"] };
    expectSameJson(answer.body, expected, "the diff", answer.request);
    expectAccepted(await commitProposal(session, proposalOf(await session.propose("draft", ""))));
    const after = expectAnswer(await session.get("/diff?source=draft&target=main"), 200);
    expectSameJson(after.body, { added: [], removed: [], modified: [] }, "after the merge", after.request);
    const main = expectAnswer(await session.get("/diff?source=main&target=draft"), 200);
    const added = main.body.added as unknown[];
    expectThat(
      Array.isArray(added) && added.includes("m:1"),
      "what main has and draft has not",
      main.body,
      main.request,
    );
  }),
];
