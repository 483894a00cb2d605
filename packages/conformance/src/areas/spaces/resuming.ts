// 3.6: the basis of every client library: a connection may end at any time. A client that resumes the session, sends
// again what was not acknowledged and asks for what is newer has the same state as one whose connection never ended.
import { expectAnswer, expectEqual, expectSameJson } from "../../frame/expect.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import type { BrokerWorld } from "../broker/world.ts";
import { add, createSpace, expectAccepted, patch, pending, Session, set } from "./session.ts";
import { SocketSession } from "./socket-session.ts";

export const resumeScenarios: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "3.6",
    "resume",
    "resuming, replaying and catching up ends with the state of a connection that never dropped",
    async (world) => {
      const space = await createSpace(world);
      const steady = await SocketSession.open(world, world.bob, space);
      await steady.watch({ prefixes: [""] });
      let own = await SocketSession.open(world, world.alice, space);
      await own.watch({ prefixes: [""] });
      let seen = 0;
      const state = new Map<string, unknown>();
      const absorb = (session: SocketSession) => {
        for (const { toSeq, upserts } of session.arrived()) {
          for (const { id, document } of upserts) state.set(id, document);
          seen = Math.max(seen, toSeq);
        }
      };
      const commits: object[] = [];
      for (let round = 0; round < 4; round++) {
        const batch = Array.from({ length: 6 }, (_, n) =>
          own.build([patch("list:1", add("/value/items/-", `${round}.${n}`))]),
        );
        commits.push(...batch);
        // The connection is cut when some of them are answered, some not, and some perhaps never received.
        const replies = batch.map((commit) => own.send(commit).catch(() => undefined));
        await replies[round];
        absorb(own);
        await own.peer.drop();
        await Promise.all(replies);
        const { localSeq } = own;
        own = await SocketSession.open(world, world.alice, space, own.credentials);
        own.localSeq = localSeq;
        for (const commit of batch) expectAnswer(await own.send(commit), 200);
        await own.watch({ prefixes: [""], seenSeq: seen });
        absorb(own);
      }
      const items = [0, 1, 2, 3].flatMap((round) => Array.from({ length: 6 }, (_, n) => `${round}.${n}`));
      const reader = await Session.open(world, world.carol, space);
      await reader.expectValue("list:1", { items });
      expectSameJson(state.get("list:1"), { value: { items } }, "what the resumed client knows", "sync frames");
      await steady.nextAbout("list:1", commits.length);
      const log = expectAnswer(await reader.get("/log"), 200);
      expectEqual((log.body.items as unknown[]).length, commits.length, "commits in the log", log.request);
    },
  ),
  scenario(
    "3.6",
    "resume-same-connection",
    "who opens its own session again on one connection goes on there",
    async (world) => {
      const space = await createSpace(world);
      const first = await SocketSession.open(world, world.alice, space);
      await first.watch({ prefixes: [""] });
      const again = await SocketSession.open(world, world.alice, space, first.credentials, first.peer);
      const { seq } = expectAccepted(await again.commit([set("a:1", 1)])).body;
      await again.nextAbout("a:1", Number(seq));
      const revoked = again.peer.arrived.filter(({ type }) => type === "session.revoked");
      expectEqual(revoked, [], "session.revoked pushes to the holder itself", "space.open");
    },
  ),
  scenario(
    "3.6",
    "stacked",
    "stacked commits go out without waiting, and each rests on those before it",
    async (world) => {
      const space = await createSpace(world);
      const session = await SocketSession.open(world, world.alice, space);
      const layers = [set("a:1", { n: 0 })];
      for (let n = 1; n < 20; n++) layers.push(patch("a:1", { op: "replace", path: "/value/n", value: n }));
      const replies = await Promise.all(
        layers.map((operation, n) => {
          const named = Array.from({ length: n }, (_, m) => ({
            id: "a:1",
            path: ["value", "n"],
            localSeq: m + 1,
            basisSeq: 0,
          }));
          return session.send(session.build([operation], pending(...named)));
        }),
      );
      for (const [n, reply] of replies.entries()) expectAccepted(reply, { seq: n + 1 });
      const reader = await Session.open(world, world.bob, space);
      await reader.expectValue("a:1", { n: 19 });
    },
  ),
];
