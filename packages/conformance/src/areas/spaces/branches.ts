// 3.4: branches: how they are created and deleted, and that their changes stay invisible until a merge. Merges are in
// merges.ts.
import { expectAnswer, expectEqual, expectRefusal, itemsOf } from "../../frame/expect.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import type { BrokerWorld } from "../broker/world.ts";
import {
  confirmed,
  expectAccepted,
  patch,
  read,
  remove,
  replace,
  Session,
  set,
  spacePath,
  verdictOf,
} from "./session.ts";

const depthMax = 8;

export const branchScenarios: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "3.4",
    "branch-commits",
    "making and deleting a branch are commits: localSeq, seq, log and replay",
    async (world) => {
      const session = await Session.inNewSpace(world);
      const path = spacePath(session.space, "/branches");
      const create = { ...session.credentials, localSeq: 1, name: "draft" };
      const created = expectAccepted(await world.alice.call("POST", path, create), { seq: 1 });
      expectAnswer(await world.alice.call("POST", path, create), 200, {
        ...(verdictOf(created) as object),
        replayed: true,
      });
      expectRefusal(await world.alice.call("POST", path, { ...create, name: "x" }), 409, "replay_mismatch_error");
      const commit = session.build([set("a:1", 1)], { localSeq: 1 });
      expectRefusal(await session.send(commit), 409, "replay_mismatch_error");
      const deletion = { ...session.credentials, localSeq: 2 };
      const deleted = await world.alice.call("POST", `${path}/draft/delete`, deletion);
      expectAccepted(deleted, { seq: 2 });
      expectAnswer(await world.alice.call("POST", `${path}/draft/delete`, deletion), 200, { seq: 2, replayed: true });
      expectAnswer(await session.verdict(2), 200, { seq: 2 });
      const listed = expectAnswer(await session.get("/branches"), 200);
      const draft = { name: "draft", createdSeq: 1, fromBranch: "", atSeq: 0, deleted: true, deletedSeq: 2 };
      expectAnswer({ ...listed, body: { items: itemsOf(listed) } }, 200, {
        items: [{ name: "", createdSeq: 0 }, draft],
      });
      const log = expectAnswer(await session.get("/log"), 200);
      expectEqual(
        itemsOf(log).map(({ seq, localSeq, branch }) => [seq, localSeq, branch]),
        [
          [1, 1, "draft"],
          [2, 2, "draft"],
        ],
        "the log",
        log.request,
      );
    },
  ),
  scenario(
    "3.4",
    "branch-isolation",
    "a branch holds what was there at the fork, and nothing shows through in either direction",
    async (world) => {
      const session = await Session.inNewSpace(world);
      const seq = await session.accept([set("a:1", "base"), set("a:2", "base"), set("a:3", "base")]);
      await session.createBranch("draft");
      await session.accept([set("a:1", "main"), remove("a:2"), set("m:1", "main")]);
      await session.accept([set("a:3", "draft"), set("d:1", "draft")], { branch: "draft" });
      for (const [id, main, draft] of [
        ["a:1", "main", "base"],
        ["a:3", "base", "draft"],
      ] as const) {
        await session.expectValue(id, main);
        await session.expectValue(id, draft, "?branch=draft");
      }
      await session.expectValue("a:2", "base", "?branch=draft");
      expectRefusal(await session.entity("m:1", "?branch=draft"), 404, "entity_not_found");
      expectRefusal(await session.entity("d:1"), 404, "entity_not_found");
      const listed = expectAnswer(await session.query({ prefix: "", branch: "draft" }), 200);
      expectEqual(
        itemsOf(listed).map(({ id }) => id),
        ["a:1", "a:2", "a:3", "d:1"],
        "what the branch lists",
        listed.request,
      );
      // Writes to one branch do not make reads of another stale.
      expectAccepted(await session.commit([set("w:1", 1)], { branch: "draft", ...confirmed(read("a:1", seq)) }));
      expectRefusal(
        await session.commit([set("w:1", 1)], {
          branch: "draft",
          ...confirmed(read("a:1", seq, ["value"], { branch: "" })),
        }),
        409,
        "conflict_error",
      );
    },
  ),
  scenario("3.4", "branch-from-the-past", "a branch may be made from any branch at any past seq", async (world) => {
    const session = await Session.inNewSpace(world);
    const first = await session.accept([set("a:1", 1)]);
    await session.accept([patch("a:1", replace("/value", 2))]);
    await session.createBranch("old", { atSeq: first });
    await session.expectValue("a:1", 1, "?branch=old");
    const onOld = await session.accept([set("a:1", 3)], { branch: "old" });
    await session.accept([set("a:1", 4)], { branch: "old" });
    await session.createBranch("older", { fromBranch: "old", atSeq: onOld });
    await session.expectValue("a:1", 3, "?branch=older");
    await session.createBranch("empty", { atSeq: 0 });
    expectRefusal(await session.entity("a:1", "?branch=empty"), 404, "entity_not_found");
    const future = await session.branch("create", "future", { atSeq: 999 });
    expectRefusal(future, 400, "seq_out_of_range");
  }),
  scenario("3.4", "branch-names", "a name is used once, main is the default branch, and it stays", async (world) => {
    const session = await Session.inNewSpace(world);
    await session.accept([set("a:1", 1)], { branch: "main" });
    await session.expectValue("a:1", 1);
    await session.createBranch("draft");
    expectRefusal(await session.branch("create", "draft"), 409, "branch_exists");
    expectAccepted(await session.branch("delete", "draft"));
    expectRefusal(await session.branch("create", "draft"), 409, "branch_exists");
    expectRefusal(await session.branch("delete", "draft"), 409, "branch_deleted");
    expectRefusal(await session.branch("delete", "none"), 404, "branch_not_found");
    expectRefusal(await session.branch("create", "x", { fromBranch: "none" }), 404, "branch_not_found");
    expectRefusal(await session.branch("delete", "main"), 400, "invalid_request");
    for (const name of ["main", "", "has space", "-x", "x".repeat(65)]) {
      expectRefusal(await session.branch("create", name), 400);
    }
  }),
  scenario("3.4", "branch-depth", "a branch has at most 8 branches above it", async (world) => {
    const session = await Session.inNewSpace(world);
    await session.accept([set("a:1", "root")]);
    let fromBranch = "";
    for (let depth = 1; depth <= depthMax; depth++) {
      await session.createBranch(`b${depth}`, { fromBranch });
      fromBranch = `b${depth}`;
    }
    await session.expectValue("a:1", "root", `?branch=${fromBranch}`);
    expectRefusal(await session.branch("create", "deeper", { fromBranch }), 409, "branch_too_deep");
  }),
  scenario(
    "3.4",
    "branch-deleted",
    "a deleted branch is read, with its children, and not written; its reads are stale",
    async (world) => {
      const session = await Session.inNewSpace(world);
      await session.createBranch("draft");
      const seq = await session.accept([set("a:1", 1)], { branch: "draft" });
      await session.createBranch("child", { fromBranch: "draft" });
      expectAccepted(await session.branch("delete", "draft"));
      await session.expectValue("a:1", 1, "?branch=draft");
      await session.expectValue("a:1", 1, "?branch=child");
      await session.accept([set("a:1", 2)], { branch: "child" });
      expectRefusal(await session.commit([set("a:1", 2)], { branch: "draft" }), 409, "branch_deleted");
      expectRefusal(await session.branch("create", "late", { fromBranch: "draft" }), 409, "branch_deleted");
      const reads = confirmed(read("a:1", seq, ["value"], { branch: "draft" }));
      expectRefusal(await session.commit([set("w:1", 1)], reads), 409, "conflict_error");
    },
  ),
];
