// What a session that watches is sent, over a store with real rows and a receiver that takes frames when it wants to.
import type { SyncPush } from "@claudemesh/protocol/wire/spaces-operations";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { Watched } from "../../core/watched.ts";
import type { SpacesStore } from "../../ports.ts";
import { SqliteHarness } from "../../stores/sqlite/testing/sqlite-harness.ts";
import { alice, bob, remove, type Session, set, World } from "../../stores/suites/world.ts";
import { SessionSync } from "./session-sync.ts";
import { SpaceFeed } from "./space-feed.ts";

const harness = new SqliteHarness();
let world: World;
let writer: Session;
let watcher: Session;

beforeEach(async () => {
  world = await World.start(harness);
  writer = await world.session(alice);
  watcher = await world.session(bob);
});
afterEach(() => world.close());
afterAll(() => harness.removeFiles());

/** Takes a frame as soon as it comes, unless it is slow. */
class Receiver {
  readonly frames: SyncPush[] = [];
  readonly failures: unknown[] = [];
  losses = 0;
  #gate: PromiseWithResolvers<void> | undefined;
  readonly sync: SessionSync;

  constructor(feed = new SpaceFeed(world.store, world.space), store = world.store) {
    const { sessionId, epoch } = watcher.opened;
    this.sync = new SessionSync({
      store,
      space: world.space,
      sessionId,
      epoch,
      feed,
      push: async (frame) => {
        this.frames.push(frame);
        await this.#gate?.promise;
      },
      onLost: () => {
        this.losses += 1;
      },
      onFailure: (error) => this.failures.push(error),
    });
  }

  stopTaking(): void {
    this.#gate = Promise.withResolvers<void>();
  }

  takeAgain(): void {
    this.#gate?.resolve();
    this.#gate = undefined;
  }

  /** What came since the last call, in short. */
  sent(): string[] {
    return this.frames
      .splice(0)
      .map(({ fromSeq, toSeq, upserts }) =>
        [`${fromSeq}-${toSeq}`, ...upserts.map(({ id, seq, deleted }) => `${id}@${seq}${deleted ? "†" : ""}`)].join(
          " ",
        ),
      );
  }
}

const everything = new Watched([], [""]);

describe("SPC-12: a session that watches", () => {
  test("is sent the latest state of what changed, and a deletion as such", async () => {
    const receiver = new Receiver();
    await writer.write([set("a:1", { n: 1 })]);
    expect(await receiver.sync.watch("", everything, 0)).toBe(1);
    expect(receiver.sent()).toEqual(["0-1 a:1@1"]);
    await writer.write([set("a:1", { n: 2 }), set("a:2", { n: 2 })]);
    await writer.write([remove("a:1")]);
    await receiver.sync.reachPresent();
    expect(receiver.sent()).toEqual(["1-3 a:2@2 a:1@3†"]);
    await receiver.sync.reachPresent();
    expect(receiver.sent()).toEqual([]);
  });

  test("holds up no commit when it is slow, and gets the last state when it is ready, in one frame", async () => {
    const receiver = new Receiver();
    await receiver.sync.watch("", everything, 0);
    receiver.stopTaking();
    await writer.write([set("a:1", { n: 1 })]);
    receiver.sync.wake();
    for (let n = 2; n <= 500; n += 1) {
      await writer.write([set("a:1", { n })]);
      receiver.sync.wake();
    }
    expect(receiver.sent()).toEqual(["0-1 a:1@1"]);
    receiver.takeAgain();
    await receiver.sync.reach(500);
    expect(receiver.sent()).toEqual(["1-500 a:1@500"]);
  });

  test("is sent the same whether the feed knows what changed, has to read it up, or has lost it", async () => {
    const fed = new SpaceFeed(world.store, world.space);
    const receivers = [new Receiver(fed), new Receiver(new SpaceFeed(world.store, world.space))];
    for (const { sync } of receivers) await sync.watch("", new Watched(["a:1"], ["b:"]), 0);
    const write = async (...ids: string[]) => {
      const seq = await writer.write(ids.map((id) => set(id, {})));
      fed.add({ seq, branch: "", entityIds: ids });
    };
    await write("a:1", "a:2", "b:1");
    await write("b:2");
    for (const { sync } of receivers) await sync.reachPresent();
    expect(receivers.map((receiver) => receiver.sent())).toEqual([
      ["0-2 a:1@1 b:1@1 b:2@2"],
      ["0-2 a:1@1 b:1@1 b:2@2"],
    ]);
    // More than is read from the log at once.
    for (let n = 0; n < 250; n += 1) await writer.write([set(n === 100 ? "b:1" : "c:1", {})]);
    for (const { sync } of receivers) await sync.reachPresent();
    expect(receivers.map((receiver) => receiver.sent())).toEqual([["2-252 b:1@103"], ["2-252 b:1@103"]]);
  });

  test("sees on a branch what its ancestors wrote before the fork, and nothing that they write after it", async () => {
    await writer.write([set("a:1", {})]);
    await writer.write([set("a:2", {})]);
    const receiver = new Receiver();
    await receiver.sync.watch("", new Watched(["x:1"], []), 2);
    await writer.createBranch("draft");
    await writer.write([set("a:3", {})]);
    await receiver.sync.watch("draft", everything, 1);
    expect(receiver.sent()).toEqual(["1-4 a:2@2"]);
    await writer.write([set("a:4", {})], { branch: "draft" });
    await writer.write([set("a:5", {})]);
    await receiver.sync.reachPresent();
    expect(receiver.sent()).toEqual(["4-6 a:4@5"]);
  });

  test("names the last own commit that a frame may hold", async () => {
    const receiver = new Receiver();
    await receiver.sync.watch("", everything, 0);
    await watcher.write([set("a:1", {})], { localSeq: 7 });
    await receiver.sync.reach(1);
    expect(receiver.frames.map(({ caughtUpLocalSeq }) => caughtUpLocalSeq)).toEqual([7]);
  });

  test("that was replaced while a frame was on its way goes on with what replaced it", async () => {
    const receiver = new Receiver();
    await receiver.sync.watch("", everything, 0);
    receiver.stopTaking();
    await writer.write([set("a:1", {})]);
    const first = receiver.sync.reach(1);
    await expect.poll(() => receiver.frames.length).toBe(1);
    const second = receiver.sync.watch("", new Watched(["a:2"], []), 0);
    receiver.takeAgain();
    await Promise.all([first, second]);
    await writer.write([set("a:1", {}), set("a:2", {})]);
    await receiver.sync.reachPresent();
    expect(receiver.sent()).toEqual(["0-1 a:1@1", "0-2 a:2@2"]);
  });
});

describe("a watch of many prefixes", () => {
  test("is sent the first commit behind it without asking for each prefix, which nothing under it has changed", async () => {
    let reads = 0;
    const counting: SpacesStore = {
      ...world.store,
      read: (space, body) => {
        reads += 1;
        return world.store.read(space, body);
      },
    };
    const feed = new SpaceFeed(counting, world.space);
    const receiver = new Receiver(feed, counting);
    const prefixes = Array.from({ length: 500 }, (_, n) => `p${n}:`);
    await receiver.sync.watch("", new Watched([], prefixes), 0);
    expect(receiver.sent()).toEqual([]);
    reads = 0;
    const seq = await writer.write([set("p7:1", {}), set("q:1", {})]);
    feed.add({ seq, branch: "", entityIds: ["p7:1", "q:1"] });
    await receiver.sync.reachPresent();
    expect(receiver.sent()).toEqual(["0-1 p7:1@1"]);
    // The moment, and the entity.
    expect(reads).toBe(2);
  });
});

describe("a session that is taken", () => {
  test("is lost at the next round at the latest, and sent nothing more", async () => {
    const receiver = new Receiver();
    await receiver.sync.watch("", everything, 0);
    await world.open(bob, "another", watcher.opened);
    await writer.write([set("a:1", {})]);
    await receiver.sync.reachPresent();
    expect([receiver.losses, receiver.sent()]).toEqual([1, []]);
    await receiver.sync.reach(99);
  });

  test("by its own holder goes on", async () => {
    const receiver = new Receiver();
    await receiver.sync.watch("", everything, 0);
    const opening = Promise.withResolvers<number | undefined>();
    receiver.sync.renew(opening.promise);
    const { epoch } = await world.open(bob, "another", watcher.opened);
    await writer.write([set("a:1", {})]);
    const reached = receiver.sync.reach(1);
    opening.resolve(epoch);
    await reached;
    expect([receiver.losses, receiver.sent()]).toEqual([0, ["0-1 a:1@1"]]);
  });
});

test("a store that fails is reported once, and what waits for it goes on", async () => {
  let fails = false;
  const store = { ...world.store };
  const failing = new Receiver(undefined, {
    ...store,
    read: async (space, body) => {
      if (fails) throw new Error("the store is away");
      return store.read(space, body);
    },
  });
  await failing.sync.watch("", everything, 0);
  fails = true;
  await Promise.all([failing.sync.reach(1), failing.sync.reachPresent()]);
  expect(failing.failures).toHaveLength(1);
});
