// 3.3: what makes a read stale. Accepted means that every read saw exactly what was accepted before. An accepted commit
// for which that is not true is the worst result that this kit can find.
import type { JsonValue } from "@claudemesh/protocol/json";
import { expectAnswer, expectEqual, expectRefusal, expectSameJson } from "../../frame/expect.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import { readVectors } from "../../vectors.ts";
import type { BrokerWorld } from "../broker/world.ts";
import {
  add,
  confirmed,
  expectAccepted,
  inSessions,
  type Operation,
  patch,
  pending,
  read,
  replace,
  Session,
  set,
} from "./session.ts";

type OverlapVector = {
  readonly document: JsonValue;
  readonly patch: object;
  readonly path: readonly string[];
  readonly overlaps: boolean;
  readonly shallow?: boolean;
};

const confirmedReads: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "3.3",
    "overlap",
    "a write makes a read stale exactly where they overlap, shallow reads too",
    async (world) => {
      const session = await Session.inNewSpace(world);
      const { overlaps } = readVectors<{ overlaps: readonly OverlapVector[] }>("spaces-patches");
      const documents = overlaps.flatMap(({ document }, n): Operation[] =>
        document === null ? [] : [{ op: "set", id: `o:${n}`, value: document }],
      );
      const seq = await session.accept(documents);
      await session.accept(overlaps.map(({ patch: each }, n) => patch(`o:${n}`, each)));
      await inSessions(world, session.space, overlaps, async (each, { path, overlaps: stale, shallow }, n) => {
        const one = read(`o:${n}`, seq, path, shallow === undefined ? {} : { shallow });
        const answer = await each.commit([set(`w:${n}`, 1)], confirmed(one));
        if (stale) expectRefusal(answer, 409, "conflict_error");
        else expectAccepted(answer);
      });
    },
  ),
  scenario("3.3", "whole-writes", "set and delete overlap every read of the entity, and of no other", async (world) => {
    const session = await Session.inNewSpace(world);
    const seq = await session.accept([set("a:1", { x: 1 }), set("a:2", 1), set("b:1", 1)]);
    await session.accept([set("a:1", { x: 1 }), { op: "delete", id: "a:2" }]);
    for (const path of [[], ["value"], ["value", "x"], ["value", "none"], ["elsewhere"]]) {
      expectRefusal(await session.commit([set("w:1", 1)], confirmed(read("a:1", seq, path))), 409, "conflict_error");
      expectRefusal(await session.commit([set("w:1", 1)], confirmed(read("a:2", seq, path))), 409, "conflict_error");
      expectAccepted(await session.commit([set("w:2", 1)], confirmed(read("b:1", seq, path))));
    }
  }),
  scenario("3.3", "absence", "that there was nothing is a read as well", async (world) => {
    const session = await Session.inNewSpace(world);
    const nothing = confirmed(read("a:1", 0, []));
    await session.accept([set("b:1", 1)], nothing);
    await session.accept([set("a:1", 1)], nothing);
    expectRefusal(await session.commit([set("a:1", 2)], nothing), 409, "conflict_error");
    await session.expectValue("a:1", 1);
  }),
  scenario(
    "3.3",
    "all-conflicts",
    "a ConflictError names every stale read at once, with what is there now",
    async (world) => {
      const session = await Session.inNewSpace(world);
      const seq = await session.accept([set("a:1", { x: 1, y: 1 }), set("a:2", 1), set("a:3", 1), set("a:4", 1)]);
      const first = await session.accept([patch("a:1", replace("/value/x", 2)), set("a:3", 2)]);
      const second = await session.accept([{ op: "delete", id: "a:4" }]);
      const reads = [
        read("a:1", seq, ["value", "x"]),
        read("a:1", seq, ["value", "y"]),
        read("a:2", seq),
        read("a:3", seq),
        read("a:4", seq),
      ];
      const answer = await session.commit([set("w:1", 1)], confirmed(...reads));
      expectRefusal(answer, 409, "conflict_error");
      const conflicts = answer.body.conflicts as readonly { id: string }[];
      const expected = [
        { id: "a:1", branch: "", path: ["value", "x"], expected: { seq }, actual: { seq: first, value: 2 } },
        { id: "a:3", branch: "", path: ["value"], expected: { seq }, actual: { seq: first, value: 2 } },
        { id: "a:4", branch: "", path: ["value"], expected: { seq }, actual: { seq: second } },
      ];
      const got = Array.isArray(conflicts) ? [...conflicts].sort((a, b) => (a.id < b.id ? -1 : 1)) : conflicts;
      expectSameJson(got, expected, "conflicts", answer.request);
      expectRefusal(await session.entity("w:1"), 404, "entity_not_found");
    },
  ),
  scenario("3.3", "future-seqs", "a seq above the space's own is 400", async (world) => {
    const session = await Session.inNewSpace(world);
    const seq = await session.accept([set("a:1", 1)]);
    const future = seq + 1;
    for (const more of [
      confirmed(read("a:1", future)),
      pending({ id: "a:1", path: ["value"], localSeq: 1, basisSeq: future }),
    ]) {
      expectRefusal(await session.send({ ...session.build([set("a:1", 2)]), ...more }), 400, "seq_out_of_range");
    }
    expectAccepted(await session.commit([set("a:1", 2)], confirmed(read("a:1", seq))));
  }),
  scenario(
    "3.3",
    "racing-counters",
    "commits that race for one value end as if one came after the other",
    async (world) => {
      const first = await Session.inNewSpace(world);
      await first.accept([set("counter:1", 0)]);
      const members = [world.alice, world.bob, world.carol, world.alice];
      const rounds = 3;
      await Promise.all(
        members.map(async (member) => {
          const session = await Session.open(world, member, first.space);
          for (let done = 0; done < rounds; ) {
            const { seq, document } = expectAnswer(await session.entity("counter:1"), 200).body;
            const { value } = document as { value: number };
            const answer = await session.commit(
              [set("counter:1", value + 1)],
              confirmed(read("counter:1", Number(seq))),
            );
            if (answer.status === 200) done += 1;
            else expectRefusal(answer, 409, "conflict_error");
          }
        }),
      );
      await first.expectValue("counter:1", members.length * rounds);
    },
  ),
];

/** A session of alice with a document that all members see, and a session of another member that writes between. */
async function stack(world: BrokerWorld, value: unknown) {
  const session = await Session.inNewSpace(world);
  const foreign = await Session.open(world, world.bob, session.space);
  const basisSeq = await session.accept([set("a:1", value)]);
  return { session, foreign, basisSeq };
}

const on = (localSeqs: readonly number[], path: readonly string[], basisSeq?: number) =>
  pending(
    ...localSeqs.map((localSeq) => ({ id: "a:1", path, localSeq, ...(basisSeq === undefined ? {} : { basisSeq }) })),
  );

const pendingReads: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "3.3",
    "pending-basis",
    "a pending read rests on the confirmed state under its layers too",
    async (world) => {
      const { session, foreign, basisSeq } = await stack(world, { x: 1, y: 1 });
      const layer = session.build([patch("a:1", replace("/value/x", 2))]);
      await foreign.accept([patch("a:1", replace("/value/y", 9))]);
      expectAccepted(await session.send(layer));
      const whole = await session.commit([set("w:1", 1)], on([layer.localSeq], ["value"], basisSeq));
      expectRefusal(whole, 409, "conflict_error", { conflicts: [{ id: "a:1", path: ["value"] }] });
      expectAccepted(await session.commit([set("w:1", 1)], on([layer.localSeq], ["value", "x"], basisSeq)));
      expectRefusal(await session.commit([set("w:1", 1)], on([layer.localSeq], ["value", "y"], basisSeq)), 409);
    },
  ),
  scenario(
    "3.3",
    "pending-layers",
    "only the layers that the read names are left out; entries of one path are one read",
    async (world) => {
      const { session, basisSeq } = await stack(world, { x: 1 });
      const seqs = [];
      for (const n of [2, 3]) seqs.push(await session.accept([patch("a:1", replace("/value/x", n))]));
      const one = await session.commit([set("w:1", 1)], on([3], ["value", "x"], basisSeq));
      expectRefusal(one, 409, "conflict_error");
      const both = await session.commit([set("w:1", 1)], on([2, 3], ["value", "x"], basisSeq));
      expectAccepted(both);
      const resolved = (both.body.resolvedPendingReads as { localSeq: number; seq: number }[]).map(({ seq }) => seq);
      expectEqual([...resolved].sort(), seqs, "the seqs of the layers named", both.request);
    },
  ),
  scenario(
    "3.3",
    "pending-cover",
    "without a basis, a layer that wrote the whole of what was read says what was under it",
    async (world) => {
      const { session, foreign } = await stack(world, { x: 1 });
      const covering = session.build([set("a:1", { x: 2 })]);
      await foreign.accept([patch("a:1", replace("/value/x", 9))]);
      expectAccepted(await session.send(covering));
      expectAccepted(await session.commit([set("w:1", 1)], on([covering.localSeq], ["value", "x"])));
      const upper = session.build([patch("a:1", replace("/value/x", 3))]);
      expectAccepted(await session.send(upper));
      const both = [covering.localSeq, upper.localSeq];
      expectAccepted(await session.commit([set("w:1", 2)], on(both, ["value"])));
      await foreign.accept([patch("a:1", add("/value/z", 1))]);
      expectRefusal(await session.commit([set("w:1", 3)], on(both, ["value"])), 409, "conflict_error");
      expectAccepted(await session.commit([set("w:1", 3)], on(both, ["value", "x"])));
    },
  ),
  scenario(
    "3.3",
    "pending-needs-basis",
    "where no layer covers the path, or one moved content over it, a basis is required",
    async (world) => {
      const { session } = await stack(world, { x: { y: 1 }, list: [1, 2] });
      const layers = [
        await commitLayer(session, add("/value/x/z", 1)),
        await commitLayer(session, { op: "splice", path: "/value/list", index: 0, remove: 1, add: [] }),
        await commitLayer(session, { op: "move", from: "/value/x/z", path: "/value/moved" }),
      ];
      const asks: readonly (readonly [number, string[]])[] = [
        [layers[0] ?? 0, ["value", "x"]],
        [layers[1] ?? 0, ["value", "list", "0"]],
        [layers[2] ?? 0, ["value", "moved"]],
      ];
      for (const [localSeq, path] of asks) {
        const commit = session.build([set("w:1", 1)], on([localSeq], path));
        expectRefusal(await session.send(commit), 422, "basis_required_error");
        expectRefusal(await session.verdict(commit.localSeq), 404, "commit_not_found");
      }
      const whole = session.build([set("a:1", { list: [] })]);
      expectAccepted(await session.send(whole));
      const pushed = await commitLayer(session, { op: "add", path: "/value/list/-", value: 1 });
      expectRefusal(await session.commit([set("w:1", 1)], on([whole.localSeq, pushed], ["value", "list", "0"])), 422);
    },
  ),
  scenario(
    "3.3",
    "pending-moves",
    "content that a layer moved is read where it came from as well, step by step",
    async (world) => {
      const { session, foreign, basisSeq } = await stack(world, { a: 1, b: 0, list: [1, 2, 3], other: 1 });
      const layers = [
        session.build([patch("a:1", { op: "move", from: "/value/a", path: "/value/b" })]),
        session.build([patch("a:1", { op: "move", from: "/value/b", path: "/value/c" })]),
        session.build([patch("a:1", { op: "splice", path: "/value/list", index: 0, remove: 1, add: [] })]),
      ];
      await foreign.accept([patch("a:1", replace("/value/a", 9), replace("/value/list/2", 9))]);
      for (const layer of layers) expectAccepted(await session.send(layer));
      const [first = 0, second = 0, third = 0] = layers.map(({ localSeq }) => localSeq);
      const stale = [on([first, second], ["value", "c"], basisSeq), on([third], ["value", "list", "0"], basisSeq)];
      for (const reads of stale) expectRefusal(await session.commit([set("w:1", 1)], reads), 409, "conflict_error");
      expectAccepted(await session.commit([set("w:1", 1)], on([first, second], ["value", "other"], basisSeq)));
    },
  ),
  scenario(
    "3.3",
    "pending-branch",
    "every layer that is named is on the commit's branch and older than it",
    async (world) => {
      const { session, basisSeq } = await stack(world, 1);
      await session.createBranch("draft");
      const onDraft = session.build([set("a:1", 2)], { branch: "draft" });
      expectAccepted(await session.send(onDraft));
      const localSeq = session.lastLocalSeq + 1;
      const wrong = [onDraft.localSeq, localSeq, localSeq + 1].map((each) => on([each], ["value"], basisSeq));
      for (const reads of wrong) {
        expectRefusal(await session.send({ ...session.build([set("w:1", 1)], { localSeq }), ...reads }), 400);
      }
      const fits = session.build([set("w:1", 1)], {
        localSeq,
        branch: "draft",
        ...on([onDraft.localSeq], ["value"], basisSeq),
      });
      expectAccepted(await session.send(fits));
    },
  ),
];

/** The localSeq of a layer that is accepted. */
async function commitLayer(session: Session, one: object): Promise<number> {
  const layer = session.build([patch("a:1", one)]);
  expectAccepted(await session.send(layer));
  return layer.localSeq;
}

export const validationScenarios: readonly Scenario<BrokerWorld>[] = [...confirmedReads, ...pendingReads];
