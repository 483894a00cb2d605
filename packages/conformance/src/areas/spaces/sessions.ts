// 3.2: sessions: which connection holds one, how it is taken over, and that an earlier holder changes nothing any more.
import { expectAnswer, expectEqual, expectRefusal, expectThat, itemsOf } from "../../frame/expect.ts";
import { absent, aCount, aText } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import type { BrokerWorld } from "../broker/world.ts";
import { createSpace, expectAccepted, remove, Session, set, spacePath } from "./session.ts";

async function resume(world: BrokerWorld, session: Session, more: object = {}): Promise<Session> {
  return Session.open(world, session.caller, session.space, { ...session.credentials, ...more });
}

const opening: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "3.2",
    "open",
    "a new session has an id and a token of the server's, and stands at its beginning",
    async (world) => {
      const space = await createSpace(world);
      const before = await Session.open(world, world.bob, space);
      const seq = await before.accept([set("a:1", 1)]);
      const path = spacePath(space, "/sessions");
      const opened = await world.alice.call("POST", path, { openId: world.fresh("open") });
      const shape = { sessionId: aText, sessionToken: aText, seq, lastLocalSeq: 0, resumed: false, sync: absent };
      expectAnswer(opened, 200, shape);
      const other = expectAnswer(await world.alice.call("POST", path, { openId: world.fresh("open") }), 200, shape);
      for (const field of ["sessionId", "sessionToken"]) {
        expectThat(
          other.body[field] !== opened.body[field],
          `another ${field} for another open`,
          other.body,
          other.request,
        );
      }
    },
  ),
  scenario(
    "3.2",
    "same-open-id",
    "the same openId again gets the same session and token while it is current",
    async (world) => {
      const space = await createSpace(world);
      const input = { openId: world.fresh("open") };
      const path = spacePath(space, "/sessions");
      const first = expectAnswer(await world.alice.call("POST", path, input), 200);
      const { sessionId, sessionToken } = first.body as Record<string, string>;
      await new Session(world.alice, space, first).accept([set("a:1", 1)]);
      for (let n = 0; n < 2; n++) {
        expectAnswer(await world.alice.call("POST", path, input), 200, { sessionId, sessionToken, lastLocalSeq: 1 });
      }
      const own = expectAnswer(await world.bob.call("POST", path, input), 200);
      expectThat(
        own.body.sessionId !== sessionId,
        "a session of bob's own: openIds are each member's",
        own.body,
        own.request,
      );
      const resumed = { ...input, openId: world.fresh("open"), sessionId, sessionToken };
      expectAnswer(await world.alice.call("POST", path, resumed), 200, { sessionId, resumed: true });
      expectRefusal(await world.alice.call("POST", path, input), 403, "session_revoked_error");
    },
  ),
  scenario("3.2", "resume", "a resumed session keeps its place and gets another token", async (world) => {
    const session = await Session.inNewSpace(world);
    await session.accept([set("a:1", 1)]);
    const seq = await session.accept([set("a:1", 2)], { localSeq: 7 });
    const input = { openId: world.fresh("open"), ...session.credentials };
    const answer = await world.alice.call("POST", spacePath(session.space, "/sessions"), input);
    expectAnswer(answer, 200, {
      sessionId: session.sessionId,
      sessionToken: aText,
      seq,
      lastLocalSeq: 7,
      resumed: true,
    });
    expectThat(answer.body.sessionToken !== session.sessionToken, "another token", answer.body, answer.request);
    const next = new Session(world.alice, session.space, answer);
    expectAccepted(await next.commit([set("a:1", 3)]));
    const again = await world.alice.call("POST", spacePath(session.space, "/sessions"), input);
    expectAnswer(again, 200, { sessionToken: next.sessionToken, resumed: true, lastLocalSeq: 8 });
  }),
  scenario(
    "3.2",
    "bad-opens",
    "a session is resumed with id and token of its own; anything else is refused",
    async (world) => {
      const session = await Session.inNewSpace(world);
      const other = await Session.open(world, world.alice, session.space);
      const path = spacePath(session.space, "/sessions");
      const { sessionId, sessionToken } = session;
      const open = (more: object, by = world.alice) => by.call("POST", path, { openId: world.fresh("open"), ...more });
      expectRefusal(await open({ sessionId }), 400, "invalid_request");
      expectRefusal(await open({ sessionToken }), 400, "invalid_request");
      for (const openId of ["", "has space", "x".repeat(129), 1, null]) expectRefusal(await open({ openId }), 400);
      expectRefusal(await open({ seenSeq: 5 }), 400, "seq_out_of_range");
      expectRefusal(await open({ sessionId, sessionToken: other.sessionToken }), 403, "session_revoked_error");
      expectRefusal(await open({ sessionId: "0198c0de-none", sessionToken }), 404, "session_not_found");
      expectRefusal(await open({ sessionId, sessionToken }, world.bob), 404, "session_not_found");
      expectAccepted(await session.commit([set("a:1", 1)]));
    },
  ),
  scenario("3.2", "catch-up", "an open that says what it has seen gets exactly what is newer", async (world) => {
    const session = await Session.inNewSpace(world);
    await session.accept([set("a:1", 1), set("a:2", 1), set("a:3", 1)]);
    const second = await session.accept([set("a:2", 2)]);
    const third = await session.accept([remove("a:3"), set("a:4", 1)]);
    const open = (seenSeq: number) =>
      world.bob.call("POST", spacePath(session.space, "/sessions"), { openId: world.fresh("open"), seenSeq });
    const newer = expectAnswer(await open(1), 200, { sync: { fromSeq: 1, toSeq: third, removes: [] } });
    const { upserts } = newer.body.sync as { upserts: { id: string; seq: number }[] };
    const updates = upserts.map(({ id, seq }) => `${id}@${seq}`).sort();
    expectEqual(updates, [`a:2@${second}`, `a:3@${third}`, `a:4@${third}`], "what is newer than 1", newer.request);
    expectAnswer(await open(third), 200, { sync: { fromSeq: third, toSeq: third, upserts: [] } });
  }),
];

const holding: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "3.2",
    "stale-token",
    "whatever arrives with an old token is SessionRevokedError and changes nothing",
    async (world) => {
      const old = await Session.inNewSpace(world);
      const committed = old.build([set("a:1", 1)]);
      expectAccepted(await old.send(committed));
      const current = await resume(world, old);
      // Even for an exact retry: the credentials are checked before the request.
      for (const commit of [committed, old.build([set("a:1", 9)])]) {
        expectRefusal(await old.send(commit), 403, "session_revoked_error");
      }
      expectRefusal(await old.branch("create", "late"), 403, "session_revoked_error");
      expectRefusal(await old.branch("delete", "late"), 403, "session_revoked_error");
      const peer = await world.alice.connect("client");
      const watch = { space: old.space, ...old.credentials, ids: ["a:1"] };
      expectRefusal(await peer.request("space.watch", watch), 403, "session_revoked_error");
      const frame = { space: old.space, ...old.credentials, commit: old.build([set("a:1", 8)]) };
      expectRefusal(await peer.request("space.commit", frame), 403, "session_revoked_error");
      await current.expectValue("a:1", 1);
      expectAnswer(await current.commit([set("a:1", 2)]), 200, { seq: 2 });
      expectAnswer(await current.verdict(1), 200, { seq: 1 });
    },
  ),
  scenario("3.2", "whose", "a session belongs to one member and one space", async (world) => {
    const session = await Session.inNewSpace(world);
    await session.accept([set("a:1", 1)]);
    const commit = session.build([set("a:1", 2)]);
    const path = spacePath(session.space, "/commits");
    expectRefusal(await world.bob.call("POST", path, { ...session.credentials, commit }), 404, "session_not_found");
    expectRefusal(await session.verdict(1, world.bob), 404);
    const elsewhere = spacePath(await createSpace(world), "/commits");
    expectRefusal(
      await world.alice.call("POST", elsewhere, { ...session.credentials, commit }),
      404,
      "session_not_found",
    );
    await session.expectValue("a:1", 1);
  }),
  scenario("3.2", "revoked-push", "over WebSocket the older connection receives session.revoked", async (world) => {
    const space = await createSpace(world);
    const peer = await world.alice.connect("client");
    const opened = expectAnswer(await peer.request("space.open", { space, openId: world.fresh("open") }), 200);
    const { sessionId, sessionToken } = opened.body as Record<string, string>;
    expectAnswer(await peer.request("space.watch", { space, sessionId, sessionToken, prefixes: [""] }), 200);
    const successor = await Session.open(world, world.alice, space, { sessionId, sessionToken });
    const push = await peer.next("a session.revoked push", ({ type }) => type === "session.revoked");
    expectEqual([push.space, push.sessionId], [space, sessionId], "which session was lost", `open of ${sessionId}`);
    await successor.accept([set("a:1", 1)]);
    // A reply shows that everything before it has arrived.
    await peer.request("space.list", { limit: 1 });
    const heard = peer.arrived.filter(({ type }) => type === "sync");
    expectEqual(heard, [], "frames after the session was lost", `commit in ${space}`);
  }),
  scenario(
    "3.2",
    "takeover-race",
    "no commit of the old holder is accepted after a takeover was answered",
    async (world) => {
      const space = await createSpace(world);
      const peer = await world.alice.connect("client");
      const opened = expectAnswer(await peer.request("space.open", { space, openId: world.fresh("open") }), 200);
      const { sessionId, sessionToken } = opened.body as Record<string, string>;
      const credentials = { sessionId: sessionId ?? "", sessionToken: sessionToken ?? "" };
      const commits = Array.from({ length: 60 }, (_, n) =>
        peer.request("space.commit", {
          space,
          ...credentials,
          commit: { localSeq: n + 1, reads: { confirmed: [], pending: [] }, operations: [set("a:1", n)] },
        }),
      );
      await commits[5];
      const answer = await world.alice.call("POST", spacePath(space, "/sessions"), {
        openId: world.fresh("open"),
        ...credentials,
      });
      expectAnswer(answer, 200, { resumed: true, seq: aCount, lastLocalSeq: aCount });
      const verdicts = await Promise.all(commits);
      const accepted = verdicts.filter(({ status }) => status === 200);
      for (const verdict of verdicts) {
        if (verdict.status !== 200) expectRefusal(verdict, 403, "session_revoked_error");
      }
      const last = Number(accepted.at(-1)?.body.seq);
      expectEqual(answer.body.seq, last, "the seq at the takeover is the last of the old holder", answer.request);
      expectEqual(answer.body.lastLocalSeq, accepted.length, "lastLocalSeq at the takeover", answer.request);
      const log = expectAnswer(await world.alice.call("GET", spacePath(space, "/log?limit=1000")), 200);
      expectEqual(itemsOf(log).length, accepted.length, "commits in the log", log.request);
    },
  ),
];

export const sessionScenarios: readonly Scenario<BrokerWorld>[] = [...opening, ...holding];
