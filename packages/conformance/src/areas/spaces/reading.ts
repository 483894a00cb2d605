// 3.4: reads now and at any past seq, listings, and the log.
import { expectAnswer, expectEqual, expectRefusal, expectSameJson, itemsOf } from "../../frame/expect.ts";
import { absent, aTime } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import type { HttpAnswer } from "../../transport/http.ts";
import type { BrokerWorld } from "../broker/world.ts";
import { add, confirmed, expectAccepted, patch, read, remove, replace, Session, set } from "./session.ts";

const idsOf = (answer: HttpAnswer) => itemsOf(answer).map(({ id }) => id);

const entities: readonly Scenario<BrokerWorld>[] = [
  scenario("3.4", "entity", "an entity that is there, that was deleted, and that never was", async (world) => {
    const session = await Session.inNewSpace(world);
    await session.accept([set("a:1", 1), set("a:2", 1)]);
    const seq = await session.accept([set("a:1", 2)]);
    const deleted = await session.accept([remove("a:2")]);
    expectAnswer(await session.entity("a:1"), 200, { id: "a:1", seq, branch: "", deleted: absent });
    expectAnswer(await session.entity("a:2"), 200, { id: "a:2", seq: deleted, deleted: true, document: absent });
    expectRefusal(await session.entity("a:3"), 404, "entity_not_found");
    expectRefusal(await session.entity("a:1", "?branch=none"), 404, "branch_not_found");
    await session.expectValue("a:1", 2, "?branch=main");
  }),
  scenario(
    "3.4",
    "point-in-time",
    "every entity can be read as of every past seq, however many patches ago",
    async (world) => {
      const session = await Session.inNewSpace(world);
      const seqs = [await session.accept([set("a:1", { n: 0, list: [] })])];
      for (let n = 1; n <= 25; n++) {
        seqs.push(await session.accept([patch("a:1", replace("/value/n", n), add("/value/list/-", n))]));
      }
      const gone = await session.accept([remove("a:1")]);
      const back = await session.accept([set("a:1", "back")]);
      await Promise.all(
        seqs.map(async (seq, n) => {
          const list = Array.from({ length: n }, (_, index) => index + 1);
          const answer = await session.expectValue("a:1", { n, list }, `?atSeq=${seq}`);
          expectEqual(answer.body.seq, seq, "the seq of its last write then", answer.request);
        }),
      );
      expectRefusal(await session.entity("a:1", "?atSeq=0"), 404, "entity_not_found");
      expectAnswer(await session.entity("a:1", `?atSeq=${gone}`), 200, { deleted: true, seq: gone });
      await session.expectValue("a:1", "back", `?atSeq=${back}`);
      expectRefusal(await session.entity("a:1", `?atSeq=${back + 1}`), 400, "seq_out_of_range");
    },
  ),
  scenario(
    "3.4",
    "query-ids",
    "many entities are read as of one seq; those that never were are left out",
    async (world) => {
      const session = await Session.inNewSpace(world);
      const first = await session.accept([set("a:1", 1), set("a:2", 1)]);
      const second = await session.accept([set("a:1", 2), remove("a:2"), set("a:3", 2)]);
      const ids = ["a:3", "a:1", "a:2", "a:9"];
      const now = expectAnswer(await session.query({ ids }), 200, { seq: second });
      expectEqual([...idsOf(now)].sort(), ["a:1", "a:2", "a:3"], "the ids that were found", now.request);
      const then = expectAnswer(await session.query({ ids, atSeq: first }), 200, { seq: first });
      expectEqual([...idsOf(then)].sort(), ["a:1", "a:2"], `the ids as of ${first}`, then.request);
      for (const { document } of itemsOf(then)) expectSameJson(document, { value: 1 }, "as of then", then.request);
      for (const wrong of [{ ids, prefix: "a:" }, { ids: [] }, { ids: ["no id"] }, { ids, atSeq: second + 1 }]) {
        expectRefusal(await session.query(wrong), 400);
      }
    },
  ),
  scenario(
    "3.4",
    "query-prefix",
    "a listing by prefix goes on behind its cursor, as of the seq that it began at",
    async (world) => {
      const session = await Session.inNewSpace(world);
      const ids = ["task:1", "task:10", "task:2", "task:3", "task:a"];
      const seq = await session.accept([...ids, "tas:1", "tasl:1", "note:1"].map((id) => set(id, id)));
      const listed: unknown[] = [];
      let cursor: unknown;
      do {
        const more = cursor === undefined ? {} : { cursor, atSeq: seq };
        const page = expectAnswer(await session.query({ prefix: "task:", limit: 2, ...more }), 200, { seq });
        listed.push(...idsOf(page));
        cursor = page.body.nextCursor;
        await session.accept([remove("task:3"), set("task:1a", "late")]);
      } while (cursor !== null && listed.length < 20);
      expectEqual(listed, ids, "what is listed page by page", `POST query in ${session.space}`);
      const now = expectAnswer(await session.query({ prefix: "task:" }), 200);
      expectEqual(idsOf(now), ["task:1", "task:10", "task:1a", "task:2", "task:a"], "what is listed now", now.request);
      const all = expectAnswer(await session.query({}), 200);
      expectEqual(idsOf(all).length, 8, "entities in all", all.request);
    },
  ),
];

const log: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "3.4",
    "log",
    "the log has every accepted commit as it was sent, with author, session and time",
    async (world) => {
      const session = await Session.inNewSpace(world);
      const other = await Session.open(world, world.bob, session.space);
      const commits = [
        { by: session, author: world.alice, commit: session.build([set("a:1", { "/": { "bigint@1": "7" } })]) },
        { by: other, author: world.bob, commit: other.build([patch("a:2", add("/value/x", 1))], { codeCID: "c-1" }) },
        { by: session, author: world.alice, commit: session.build([remove("a:1")], confirmed(read("a:1", 1))) },
      ];
      for (const { by, commit } of commits) expectAccepted(await by.send(commit));
      expectRefusal(await session.commit([set("a:1", 1)], confirmed(read("a:1", 0))), 409, "conflict_error");
      const answer = expectAnswer(await session.get("/log"), 200, { nextAfter: null });
      const items = itemsOf(answer);
      expectEqual(items.length, commits.length, "entries of the log", answer.request);
      for (const [n, { by, author, commit }] of commits.entries()) {
        const entry = { status: 200, body: items[n] ?? {}, request: answer.request };
        const { sessionId } = by;
        const { localSeq } = commit;
        expectAnswer(entry, 200, {
          seq: n + 1,
          branch: "",
          sessionId,
          localSeq,
          author: author.pubkey,
          committedAt: aTime,
        });
        expectSameJson(items[n]?.original, commit, `the original of ${n + 1}`, answer.request);
      }
    },
  ),
  scenario("3.4", "log-pages", "the log is read from any seq, page by page", async (world) => {
    const session = await Session.inNewSpace(world);
    for (let n = 1; n <= 5; n++) await session.accept([set("a:1", n)]);
    const seqsOf = async (query: string) => {
      const answer = expectAnswer(await session.get(`/log${query}`), 200);
      return { seqs: itemsOf(answer).map(({ seq }) => seq), nextAfter: answer.body.nextAfter, request: answer.request };
    };
    const first = await seqsOf("?limit=2");
    expectEqual([first.seqs, first.nextAfter], [[1, 2], 2], "the first page", first.request);
    const second = await seqsOf("?after=2&limit=2");
    expectEqual([second.seqs, second.nextAfter], [[3, 4], 4], "the second", second.request);
    const last = await seqsOf("?after=4&limit=2");
    expectEqual([last.seqs, last.nextAfter], [[5], null], "the last", last.request);
  }),
];

export const readingScenarios: readonly Scenario<BrokerWorld>[] = [...entities, ...log];
