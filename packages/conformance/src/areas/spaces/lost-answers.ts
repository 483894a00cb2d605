// 0: the mutating calls of spaces. The answer of each is lost between commit and caller; the retry gets the same
// answer.
import { expectAnswer, expectEqual, expectRefusal, itemsOf } from "../../frame/expect.ts";
import type { Pattern } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import { loseReply } from "../../transport/cutting-proxy.ts";
import type { HttpAnswer } from "../../transport/http.ts";
import type { BrokerWorld } from "../broker/world.ts";
import { expectFate, message } from "./sends.ts";
import { confirmed, createSpace, read, Session, set, spacePath, verdictOf } from "./session.ts";

const replayedAs = (lost: HttpAnswer): Pattern => ({ ...(verdictOf(lost) as object), replayed: true });

async function expectLogLength(session: Session, length: number): Promise<void> {
  const log = expectAnswer(await session.get("/log"), 200);
  expectEqual(itemsOf(log).length, length, "commits in the log", log.request);
}

export const spaceLostAnswerScenarios: readonly Scenario<BrokerWorld>[] = [
  scenario("0", "space-create", "space create: 200 with what exists", async (world) => {
    const json = { name: world.fresh("space") };
    const lost = expectAnswer(await world.alice.lose("POST", "/spaces", json), 201);
    expectAnswer(await world.alice.call("POST", "/spaces", json), 200, lost.body as Pattern);
  }),
  scenario("0", "session-open", "session.open: the same session and token, new or resumed", async (world) => {
    const space = await createSpace(world);
    const path = spacePath(space, "/sessions");
    const json = { openId: world.fresh("open") };
    const lost = expectAnswer(await world.alice.lose("POST", path, json), 200, { resumed: false });
    const again = expectAnswer(await world.alice.call("POST", path, json), 200, lost.body as Pattern);
    const session = new Session(world.alice, space, again);
    await session.accept([set("a:1", 1)]);
    const resume = { openId: world.fresh("open"), ...session.credentials };
    const lostToo = expectAnswer(await world.alice.lose("POST", path, resume), 200, { resumed: true });
    const opened = expectAnswer(await world.alice.call("POST", path, resume), 200, lostToo.body as Pattern);
    await new Session(world.alice, space, opened).accept([set("a:1", 2)]);
    expectRefusal(await session.commit([set("a:1", 3)]), 403, "session_revoked_error");
  }),
  scenario("0", "commit", "commit: the stored verdict, and it happened once", async (world) => {
    const session = await Session.inNewSpace(world);
    const commit = session.build([{ op: "patch", id: "a:1", patches: [{ op: "add", path: "/value/-", value: 1 }] }]);
    const lost = expectAnswer(await session.lose(commit), 200, { replayed: false });
    expectAnswer(await session.verdict(commit.localSeq), 200, verdictOf(lost));
    for (let tries = 0; tries < 2; tries++) expectAnswer(await session.send(commit), 200, replayedAs(lost));
    await session.expectValue("a:1", [1]);
    await expectLogLength(session, 1);
  }),
  scenario("0", "commit-rejected", "commit: a rejection that got lost is the same rejection", async (world) => {
    const session = await Session.inNewSpace(world);
    await session.accept([set("a:1", 1)]);
    const commit = session.build([set("a:1", 2)], confirmed(read("a:1", 0)));
    const lost = expectRefusal(await session.lose(commit), 409, "conflict_error");
    await session.accept([set("b:1", 1)]);
    expectAnswer(await session.send(commit), 409, verdictOf(lost));
    expectAnswer(await session.verdict(commit.localSeq), 409, verdictOf(lost));
  }),
  scenario(
    "0",
    "commit-with-sends",
    "commit with messages: the stored verdict, and each message once",
    async (world) => {
      const session = await Session.inNewSpace(world);
      const sends = [message(world), message(world)];
      const commit = session.build([set("a:1", 1)], { sends });
      const lost = expectAnswer(await session.lose(commit), 200, { replayed: false });
      for (let tries = 0; tries < 2; tries++) expectAnswer(await session.send(commit), 200, replayedAs(lost));
      const history = expectAnswer(await world.bob.call("GET", "/history?limit=1000"), 200);
      for (const send of sends) {
        await expectFate(world, send, "committed");
        const same = itemsOf(history).filter((item) => item.client_message_id === send.client_message_id);
        expectEqual(same.length, 1, `messages ${send.client_message_id} in bob's history`, history.request);
      }
      await expectLogLength(session, 1);
    },
  ),
  scenario("0", "branches", "branch create and delete: the stored verdict", async (world) => {
    const session = await Session.inNewSpace(world);
    const path = spacePath(session.space, "/branches");
    const create = { ...session.credentials, localSeq: 1, name: "draft" };
    const lost = expectAnswer(await world.alice.lose("POST", path, create), 200, { replayed: false });
    expectAnswer(await world.alice.call("POST", path, create), 200, replayedAs(lost));
    const deletion = { ...session.credentials, localSeq: 2 };
    const lostToo = expectAnswer(await world.alice.lose("POST", `${path}/draft/delete`, deletion), 200);
    expectAnswer(await world.alice.call("POST", `${path}/draft/delete`, deletion), 200, replayedAs(lostToo));
    await expectLogLength(session, 2);
  }),
  scenario(
    "0",
    "commit-on-a-socket",
    "commit: a verdict that got lost with its connection is had from the next one",
    async (world) => {
      const session = await Session.inNewSpace(world);
      const marker = world.fresh("marker");
      const commit = session.build([set("a:1", marker)]);
      const request = { space: session.space, ...session.credentials, commit };
      await loseReply(world.target, world.alice, { type: "space.commit", ...request }, marker);
      const peer = await world.alice.connect("client");
      const again = await peer.request("space.commit", request);
      expectAnswer(again, 200, { seq: 1, replayed: true });
      await expectLogLength(session, 1);
    },
  ),
];
