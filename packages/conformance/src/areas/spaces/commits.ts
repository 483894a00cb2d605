// 3.3: the replay key, the order within a session, durable verdicts, and what consumes nothing.
import { expectAnswer, expectEqual, expectRefusal, expectThat, itemsOf } from "../../frame/expect.ts";
import { aText } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import type { BrokerWorld } from "../broker/world.ts";
import {
  confirmed,
  createSpace,
  expectAccepted,
  patch,
  pending,
  read,
  replace,
  Session,
  set,
  spacePath,
  verdictOf,
} from "./session.ts";

const replay: readonly Scenario<BrokerWorld>[] = [
  scenario("3.3", "accepted", "each accepted commit has the next seq of its space", async (world) => {
    const session = await Session.inNewSpace(world);
    const other = await Session.open(world, world.bob, session.space);
    const seqs: number[] = [];
    for (const each of [session, other, session, other]) seqs.push(await each.accept([set("a:1", seqs.length)]));
    expectEqual(seqs, [1, 2, 3, 4], "the seqs of four commits", `commits in ${session.space}`);
    const answer = await session.commit([set("a:1", 5)]);
    expectAccepted(answer, { resolvedPendingReads: [] });
  }),
  scenario("3.3", "replay", "the same payload again gets the stored verdict and happens once", async (world) => {
    const session = await Session.inNewSpace(world);
    const commit = session.build([patch("a:1", { op: "add", path: "/value/list/-", value: 1 })]);
    const first = expectAccepted(await session.send(commit));
    await session.accept([set("a:2", 1)]);
    for (let n = 0; n < 2; n++) {
      expectAnswer(await session.send(commit), 200, { ...(verdictOf(first) as object), replayed: true });
    }
    expectAnswer(await session.verdict(commit.localSeq), 200, verdictOf(first));
    await session.expectValue("a:1", { list: [1] });
    const log = expectAnswer(await session.get("/log"), 200);
    expectEqual(itemsOf(log).length, 2, "commits in the log", log.request);
  }),
  scenario(
    "3.3",
    "replay-spelling",
    "the payload counts in its RFC 8785 form, however it is spelled",
    async (world) => {
      const session = await Session.inNewSpace(world);
      const text = (value: string, order: "a" | "b") => {
        const parts = [`"localSeq": 1`, `"reads":{"pending":[],"confirmed":[]}`];
        const operations = `"operations":[{"value":{"value":${value}},"id":"a:1","op":"set"}]`;
        const commit = (order === "a" ? [...parts, operations] : [operations, ...parts.reverse()]).join(", ");
        return `${JSON.stringify(session.credentials).slice(0, -1)},"commit":{${commit}}}`;
      };
      const path = spacePath(session.space, "/commits");
      expectAccepted(await world.alice.callRaw("POST", path, text('{"x":1.0,"y":"\\u0041"}', "a")));
      expectAnswer(await world.alice.callRaw("POST", path, text('{"y":"A","x":1e0}', "b")), 200, { replayed: true });
      const other = await world.alice.callRaw("POST", path, text('{"y":"a","x":1}', "b"));
      expectRefusal(other, 409, "replay_mismatch_error");
    },
  ),
  scenario(
    "3.3",
    "replay-mismatch",
    "another payload under the same localSeq is refused and changes nothing",
    async (world) => {
      const session = await Session.inNewSpace(world);
      const seq = await session.accept([set("a:1", 1)]);
      const base = session.build([set("a:1", 2)]);
      expectAccepted(await session.send(base));
      const others = [
        { ...base, operations: [set("a:1", 3)] },
        { ...base, operations: [set("a:1", 2), set("a:2", 2)] },
        { ...base, ...confirmed(read("a:1", seq)) },
        { ...base, codeCID: "x" },
        { ...base, branch: "" },
      ];
      for (const other of others) expectRefusal(await session.send(other), 409, "replay_mismatch_error");
      await session.expectValue("a:1", 2);
      expectAnswer(await session.send(base), 200, { replayed: true });
    },
  ),
  scenario(
    "3.3",
    "rejection-is-durable",
    "a rejection is a verdict: the same commit gets it again, though it would fit now",
    async (world) => {
      const session = await Session.inNewSpace(world);
      await session.accept([set("a:1", 1)]);
      const misfit = session.build([patch("b:1", replace("/value", 1))]);
      const rejected = expectRefusal(await session.send(misfit), 422, "patch_error");
      await session.accept([set("b:1", 0)]);
      expectAnswer(await session.send(misfit), 422, verdictOf(rejected));
      expectAnswer(await session.verdict(misfit.localSeq), 422, verdictOf(rejected));
      const stale = session.build([set("a:1", 3)], confirmed(read("a:1", 0)));
      const conflict = expectRefusal(await session.send(stale), 409, "conflict_error");
      await session.accept([set("a:1", 4)]);
      expectAnswer(await session.send(stale), 409, verdictOf(conflict));
      expectAnswer(await session.verdict(stale.localSeq), 409, verdictOf(conflict));
      expectRefusal(await session.send({ ...stale, operations: [set("a:1", 5)] }), 409, "replay_mismatch_error");
      await session.expectValue("a:1", 4);
      await session.expectValue("b:1", 0);
    },
  ),
  scenario("3.3", "errors-consume-nothing", "every other error leaves the localSeq free", async (world) => {
    const session = await Session.inNewSpace(world);
    const localSeq = 1;
    const wrong = [
      { localSeq, reads: {}, operations: [] },
      session.build([set("a:1", 1)], { localSeq, ...confirmed(read("a:1", 99)) }),
      session.build([set("a:1", 1)], { localSeq, branch: "none" }),
      session.build([set("a:1", 1)], { localSeq, colour: 1 }),
    ];
    for (const commit of wrong) {
      const { status } = await session.send(commit);
      expectThat(status === 400 || status === 404, "status 400 or 404", status, JSON.stringify(commit));
      expectRefusal(await session.verdict(localSeq), 404, "commit_not_found");
    }
    expectAccepted(await session.commit([set("a:1", 1)], { localSeq }));
  }),
];

const order: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "3.3",
    "local-seq-order",
    "gaps are allowed; a lower localSeq that was never seen is passed",
    async (world) => {
      const session = await Session.inNewSpace(world);
      await session.accept([set("a:1", 1)], { localSeq: 5 });
      for (const localSeq of [1, 4]) {
        const answer = await session.send(session.build([set("a:1", 2)], { localSeq }));
        expectRefusal(answer, 409, "local_seq_passed_error");
        expectRefusal(await session.verdict(localSeq), 404, "commit_not_found");
      }
      await session.accept([set("a:1", 3)], { localSeq: 9 });
      for (const localSeq of [0, -1, 1.5, "1", null]) {
        expectRefusal(await session.send({ ...session.build([set("a:1", 4)]), localSeq }), 400);
      }
      await session.expectValue("a:1", 3);
    },
  ),
  scenario(
    "3.3",
    "too-expensive",
    "a commit that asks for too much work is 422 and no verdict; in parts it is accepted",
    async (world) => {
      const session = await Session.inNewSpace(world);
      const items = Array.from({ length: 300_000 }, () => 0);
      await session.accept([set("a:1", items)]);
      const splice = { op: "splice", path: "/value", index: 0, remove: 0, add: [1] };
      const splices = (count: number) => [patch("a:1", ...Array.from({ length: count }, () => splice))];
      const commit = session.build(splices(5_000));
      const refused = expectRefusal(await session.send(commit), 422, "commit_too_expensive");
      const { work, limit } = refused.body as { work?: unknown; limit?: unknown };
      expectThat(Number(work) > Number(limit), "work is a number above limit", refused.body, refused.request);
      expectRefusal(await session.verdict(commit.localSeq), 404, "commit_not_found");
      expectAccepted(await session.send({ ...session.build(splices(10)), localSeq: commit.localSeq }), {
        replayed: false,
      });
    },
  ),
  scenario("3.3", "rejected-moves-on", "a rejected commit has had its turn", async (world) => {
    const session = await Session.inNewSpace(world);
    const misfit = patch("a:1", replace("/value", 1));
    expectRefusal(await session.commit([misfit], { localSeq: 4 }), 422, "patch_error");
    expectRefusal(await session.send(session.build([set("a:1", 1)], { localSeq: 3 })), 409, "local_seq_passed_error");
    expectAccepted(await session.commit([set("a:1", 1)], { localSeq: 5 }));
  }),
  scenario(
    "3.3",
    "dependencies",
    "what rests on a commit unseen waits; on one rejected or passed over, it dies",
    async (world) => {
      const session = await Session.inNewSpace(world);
      const on = (localSeq: number) => pending({ id: "a:1", path: ["value"], localSeq, basisSeq: 0 });
      const early = session.build([set("b:1", 1)], { localSeq: 2, ...on(1) });
      expectRefusal(await session.send(early), 422, "pending_dependency_error");
      expectRefusal(await session.verdict(2), 404, "commit_not_found");
      const first = await session.accept([set("a:1", 1)], { localSeq: 1 });
      expectAccepted(await session.send(early), { resolvedPendingReads: [{ localSeq: 1, seq: first }] });
      expectRefusal(await session.commit([patch("c:1", replace("/value", 1))], { localSeq: 4 }), 422, "patch_error");
      const dead = session.build([set("b:1", 2)], { localSeq: 5, ...on(4) });
      const rejected = expectRefusal(await session.send(dead), 409, "dependency_rejected_error", { localSeq: 4 });
      expectAnswer(await session.send(dead), 409, verdictOf(rejected));
      const passed = session.build([set("b:1", 3)], { localSeq: 6, ...on(3) });
      expectRefusal(await session.send(passed), 409, "dependency_rejected_error", { localSeq: 3 });
      const cascade = session.build([set("b:1", 4)], { localSeq: 7, ...on(6) });
      expectRefusal(await session.send(cascade), 409, "dependency_rejected_error", { localSeq: 6 });
      for (const localSeq of [8, 9]) {
        expectRefusal(await session.send(session.build([set("b:1", 5)], { localSeq: 8, ...on(localSeq) })), 400);
      }
      await session.expectValue("b:1", 1);
    },
  ),
  scenario("3.3", "pipelined", "pipelined commits of a session resolve in their order", async (world) => {
    const space = await createSpace(world);
    const peer = await world.alice.connect("client");
    const opened = expectAnswer(await peer.request("space.open", { space, openId: world.fresh("open") }), 200, {
      sessionId: aText,
    });
    const { sessionId, sessionToken } = opened.body;
    const replies = await Promise.all(
      Array.from({ length: 50 }, (_, n) => {
        const pendingRead = { id: "a:1", path: ["value"], localSeq: n, basisSeq: 0 };
        const reads = { confirmed: [], pending: n === 0 ? [] : [pendingRead] };
        const commit = {
          localSeq: n + 1,
          reads: n % 2 === 0 ? { confirmed: [], pending: [] } : reads,
          operations: [set("a:1", n)],
        };
        return peer.request("space.commit", { space, sessionId, sessionToken, commit });
      }),
    );
    // Every other commit depends only on the one before it, so that the write before that one makes it stale.
    const statuses = replies.map(({ status }) => status);
    const expected = replies.map((_, n) => (n % 2 === 0 || n === 1 ? 200 : 409));
    expectEqual(statuses, expected, "the verdicts of 50 pipelined commits", `frames space.commit in ${space}`);
    const seqs = replies.flatMap(({ status, body }) => (status === 200 ? [Number(body.seq)] : []));
    expectEqual(
      seqs,
      seqs.map((_, n) => n + 1),
      "their seqs",
      `frames space.commit in ${space}`,
    );
  }),
  scenario(
    "3.3",
    "check-order",
    "member, session and token come before replay, and replay before the order",
    async (world) => {
      const session = await Session.inNewSpace(world);
      const stored = session.build([set("a:1", 1)], { localSeq: 3 });
      expectAccepted(await session.send(stored));
      const path = spacePath(session.space, "/commits");
      const as = (token: string | undefined) =>
        world.as(token).call("POST", path, { ...session.credentials, commit: stored });
      expectRefusal(await as("wrong"), 401, "unauthorized");
      expectRefusal(await as(world.bob.token), 404, "session_not_found");
      expectAnswer(await as(world.alice.token), 200, { replayed: true });
      expectRefusal(await session.send({ ...stored, operations: [set("a:1", 2)] }), 409, "replay_mismatch_error");
    },
  ),
];

export const commitScenarios: readonly Scenario<BrokerWorld>[] = [...replay, ...order];
