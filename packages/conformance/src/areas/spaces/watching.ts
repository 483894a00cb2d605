// 3.5: which changes a watching session receives, in which order, and which it does not receive.
import { expectAnswer, expectEqual, expectRefusal, expectSameJson, expectThat } from "../../frame/expect.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import type { BrokerWorld } from "../broker/world.ts";
import { confirmed, createSpace, expectAccepted, read, remove, Session, set } from "./session.ts";
import { SocketSession, type SyncFrame } from "./socket-session.ts";

const updates = (frames: readonly SyncFrame[]) =>
  frames.flatMap(({ upserts }) => upserts.map(({ id, seq, deleted }) => `${id}@${seq}${deleted ? " deleted" : ""}`));

/** A space of bob with some history, and a socket of alice beside it. */
async function begin(world: BrokerWorld) {
  const space = await createSpace(world);
  const writer = await Session.open(world, world.bob, space);
  await writer.accept([set("a:1", 1), set("a:2", 1), set("b:1", 1)]);
  await writer.accept([set("a:1", 2)]);
  await writer.accept([remove("a:2")]);
  return { space, writer, watcher: await SocketSession.open(world, world.alice, space) };
}

const catchingUp: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "3.5",
    "first-frames",
    "a watch delivers everything that is there, then the reply says up to where",
    async (world) => {
      const { watcher } = await begin(world);
      const reply = expectAnswer(await watcher.watch({ ids: ["b:1"], prefixes: ["a:"] }), 200, { seq: 3 });
      const frames = watcher.arrived();
      // Frames are in the order of seq, but the content of one frame need not be; deleted entities may be included or
      // not.
      const there = updates(frames).filter((each) => !each.endsWith("deleted"));
      expectEqual([...there].sort(), ["a:1@2", "b:1@1"], "what is there", reply.request);
      expectThat((frames.at(-1)?.toSeq ?? 0) <= 3, "no frame beyond the reply", frames, reply.request);
    },
  ),
  scenario("3.5", "seen-seq", "a client that says what it has seen gets exactly what is newer", async (world) => {
    const { watcher } = await begin(world);
    for (const [seenSeq, expected] of [
      [1, ["a:1@2", "a:2@3 deleted"]],
      [2, ["a:2@3 deleted"]],
      [3, []],
    ] as const) {
      const before = watcher.arrived().length;
      const reply = expectAnswer(await watcher.watch({ prefixes: [""], seenSeq }), 200, { seq: 3 });
      const frames = watcher.arrived().slice(before);
      expectEqual([...updates(frames)].sort(), expected, `what is newer than ${seenSeq}`, reply.request);
      for (const { fromSeq } of frames)
        expectThat(fromSeq >= seenSeq, `fromSeq from ${seenSeq}`, fromSeq, reply.request);
    }
    expectRefusal(await watcher.watch({ prefixes: [""], seenSeq: 99 }), 400, "seq_out_of_range");
  }),
  scenario(
    "3.5",
    "watched-only",
    "only what is watched is delivered, by id and by prefix, on its branch",
    async (world) => {
      const { writer, watcher } = await begin(world);
      await writer.createBranch("draft");
      expectAnswer(await watcher.watch({ ids: ["a:1"], prefixes: ["n:"], seenSeq: 4 }), 200);
      await writer.accept([set("b:1", 5), set("a:10", 5)]);
      await writer.accept([set("a:1", 6)], { branch: "draft" });
      const seq = await writer.accept([set("a:1", 7), set("n:1", 7), set("m:1", 7)]);
      const frame = await watcher.nextAbout("n:1", seq);
      expectEqual(updates([frame]).sort(), ["a:1@7", "n:1@7"], "what was delivered", "commits beside a watch");
      expectAnswer(await watcher.watch({ branch: "draft", prefixes: ["a:"], seenSeq: 5 }), 200);
      const onDraft = watcher.arrived();
      expectEqual(
        [onDraft.at(-1)?.branch, updates(onDraft)],
        ["draft", ["a:1@6"]],
        "frames of the branch",
        "a watch of draft",
      );
    },
  ),
  scenario(
    "3.5",
    "watch-replaces",
    "a watch replaces the one before: what left it is in removes, and is delivered no more",
    async (world) => {
      const { writer, watcher } = await begin(world);
      expectAnswer(await watcher.watch({ ids: ["a:1", "b:1"], seenSeq: 3 }), 200);
      expectAnswer(await watcher.watch({ ids: ["b:1"], seenSeq: 3 }), 200);
      const gone = watcher.arrived().flatMap(({ removes }) => removes);
      expectEqual(gone, ["a:1"], "what left the watch", "a narrower watch");
      await writer.accept([set("a:1", 9)]);
      const seq = await writer.accept([set("b:1", 9)]);
      const frame = await watcher.nextAbout("b:1", seq);
      expectEqual(updates([frame]), [`b:1@${seq}`], "what is delivered from then on", "commits after a narrower watch");
      expectAnswer(await watcher.watch({ ids: [], prefixes: [] }), 200);
      await writer.accept([set("b:1", 10)]);
      await watcher.peer.request("space.list", { limit: 1 });
      const late = updates(watcher.arrived()).filter((each) => each.startsWith("b:1"));
      expectEqual(late, [], "what is delivered after the watch was ended", "empty lists");
    },
  ),
  scenario(
    "3.5",
    "watch-guards",
    "watching needs the session's token, sound ids, and a branch that is there",
    async (world) => {
      const { watcher, space } = await begin(world);
      const watch = (more: object) =>
        watcher.peer.request("space.watch", { space, ...watcher.credentials, ids: ["a:1"], ...more });
      expectRefusal(await watch({ sessionToken: "cms_wrong" }), 403, "session_revoked_error");
      expectRefusal(await watch({ sessionId: "0198c0de-none" }), 404, "session_not_found");
      expectRefusal(await watch({ branch: "none" }), 404, "branch_not_found");
      expectRefusal(await watch({ space: world.fresh("none") }), 404);
      expectRefusal(await watch({ ids: ["no id"] }), 400);
      expectRefusal(await watch({ colour: 1 }), 400, "unknown_field");
      const stranger = await world.bob.connect("client");
      const foreign = await stranger.request("space.watch", { space, ...watcher.credentials, ids: ["a:1"] });
      expectRefusal(foreign, 404, "session_not_found");
    },
  ),
];

const following: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "3.5",
    "order",
    "frames come in the order of seq, each where the last one ended, and nothing is missed",
    async (world) => {
      const { writer, watcher } = await begin(world);
      expectAnswer(await watcher.watch({ prefixes: [""], seenSeq: 3 }), 200);
      let last = 0;
      for (let n = 0; n < 20; n++)
        last = await writer.accept([set(`k:${n % 7}`, n), ...(n % 5 === 0 ? [remove("a:1")] : [])]);
      const state = new Map<string, unknown>();
      let seq = 3;
      while (seq < last) {
        const frame = await watcher.next(`frames up to ${last}`);
        expectEqual(frame.fromSeq, seq, "fromSeq goes on where the last frame ended", "sync frames");
        expectThat(frame.toSeq >= seq, "toSeq never goes back", frame, "sync frames");
        for (const { id, seq: at, document } of frame.upserts) {
          expectThat(at > frame.fromSeq, "only what is newer than fromSeq", frame, "sync frames");
          state.set(id, document ?? null);
        }
        seq = frame.toSeq;
      }
      for (const id of Array.from({ length: 7 }, (_, n) => `k:${n}`)) {
        const { document } = expectAnswer(await writer.entity(id), 200).body;
        expectSameJson(state.get(id), document, `the state of ${id} after all frames`, "sync frames");
      }
      expectEqual(state.get("a:1"), null, "a:1 is delivered as deleted", "sync frames");
    },
  ),
  scenario(
    "3.5",
    "verdict-after-frames",
    "a verdict never overtakes the frames that explain it, accepted or not",
    async (world) => {
      const { writer, watcher } = await begin(world);
      expectAnswer(await watcher.watch({ prefixes: ["a:"], seenSeq: 3 }), 200);
      for (let n = 0; n < 5; n++) {
        const foreign = await writer.accept([set("a:1", n)]);
        const stale = await watcher.commit([set("a:2", n)], confirmed(read("a:1", foreign - 1)));
        expectRefusal(stale, 409, "conflict_error");
        expectFrame(watcher, foreign, stale.request);
        const accepted = expectAccepted(await watcher.commit([set("a:2", n)], confirmed(read("a:1", foreign))));
        expectFrame(watcher, Number(accepted.body.seq), accepted.request);
      }
    },
  ),
  scenario("3.5", "caught-up", "a frame says up to which own commit it has caught up", async (world) => {
    const { writer, watcher } = await begin(world);
    expectAnswer(await watcher.watch({ prefixes: ["a:"], seenSeq: 3 }), 200);
    for (let n = 1; n <= 5; n++) {
      const { seq } = expectAccepted(await watcher.commit([set("a:1", n)])).body;
      const own = watcher.arrived().find(({ upserts }) => upserts.some((upsert) => upsert.seq === seq));
      const shown = `caughtUpLocalSeq from ${watcher.localSeq}`;
      expectThat((own?.caughtUpLocalSeq ?? 0) >= watcher.localSeq, shown, own, "an own commit");
      const foreign = await writer.accept([set("a:3", n)]);
      const frame = await watcher.nextAbout("a:3", foreign);
      const stays = `no more than ${watcher.localSeq}`;
      expectThat(frame.caughtUpLocalSeq <= watcher.localSeq, stays, frame, "another's commit");
    }
  }),
  scenario(
    "3.5",
    "slow-client",
    "who does not read holds up no commit, and then gets the latest state",
    async (world) => {
      const { writer, watcher } = await begin(world);
      expectAnswer(await watcher.watch({ prefixes: ["big:"], seenSeq: 3 }), 200);
      watcher.peer.pause();
      const text = "x".repeat(200_000);
      let last = 0;
      for (let n = 0; n < 10; n++) last = await writer.accept([set("big:1", `${n}${text}`)]);
      watcher.peer.resume();
      const frame = await watcher.nextAbout("big:1", last);
      const document = frame.upserts.find(({ id }) => id === "big:1")?.document;
      expectSameJson(document, { value: `9${text}` }, "the latest state", `commit ${last}`);
    },
  ),
];

function expectFrame(watcher: SocketSession, seq: number, request: string): void {
  const frames = watcher.arrived();
  expectThat((frames.at(-1)?.toSeq ?? 0) >= seq, `frames up to ${seq} before the verdict`, frames.at(-1), request);
}

export const watchScenarios: readonly Scenario<BrokerWorld>[] = [...catchingUp, ...following];
