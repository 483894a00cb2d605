// A replica over the real engine: what its user sees of transactions, subscriptions, conflicts, sessions and branches.
import { type Space, type SpaceError, spacesOver } from "@claudemesh/client/space";
import type { AcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { alice, bob, type OpenReplica, ReplicaWorld } from "./support/replica-world.ts";

let world: ReplicaWorld;

beforeEach(async () => {
  world = await ReplicaWorld.start();
});
afterEach(() => world.stop());

const open = (member: string, options?: Parameters<ReplicaWorld["open"]>[2]): Promise<OpenReplica> =>
  world.open(member, undefined, options);
const failure = (work: Promise<unknown>): Promise<SpaceError> =>
  work.then(
    () => expect.fail("it was accepted"),
    (error: SpaceError) => error,
  );

const task = (owner: string | null) => ({ value: { title: "paint", owner } });

describe("a replica", () => {
  it("applies a transaction at once, tells of it synchronously, and resolves with the commit's seq", async () => {
    const { space } = await open(alice);
    await space.get("task:1");
    const heard: unknown[] = [];
    space.subscribe("task:1", (document, cause) => heard.push([cause, document]));
    const result = space.transact((tx) => tx.set("task:1", task(null)));
    expect(heard).toEqual([["commit", task(null)]]);
    expect(space.peek("task:1")).toEqual(task(null));
    expect(await result).toMatchObject({ seq: 1, localSeq: 1, attempts: 1, replayed: false });
    await world.rest();
    expect(heard).toHaveLength(1);
    expect(await world.server.documents()).toEqual({ "task:1": task(null) });
  });

  it("loads what a transaction asks for and runs it again", async () => {
    const { space } = await open(alice);
    await space.transact((tx) => tx.set("task:1", task("bob")));
    const { space: other } = await open(bob);
    const { value } = await other.transact((tx) => tx.get<ReturnType<typeof task>>("task:1")?.value.owner);
    expect(value).toBe("bob");
  });

  it("integrates what others commit, and is silent where own work shadows it", async () => {
    const { space: a } = await open(alice);
    const { space: b } = await open(bob);
    await a.transact((tx) => tx.set("task:1", task(null)));
    await b.get("task:1");
    const heard: unknown[] = [];
    b.subscribe("task:1", (document, cause) => heard.push([cause, document?.value]));
    await a.transact((tx) => tx.patch("task:1", [{ op: "replace", path: "/value/owner", value: "alice" }]));
    await world.rest();
    expect(heard).toEqual([["integrate", task("alice").value]]);
  });

  it("builds anew after a conflict, on what is there by then", async () => {
    const { space: a } = await open(alice);
    const { space: b } = await open(bob);
    await a.transact((tx) => tx.set("count:1", { value: { n: 0 } }));
    await Promise.all([a.get("count:1"), b.get("count:1")]);
    const add = (space: Space) =>
      space.transact((tx) => {
        const n = tx.get<{ value: { n: number } }>("count:1")?.value.n ?? 0;
        tx.patch("count:1", [{ op: "replace", path: "/value/n", value: n + 1 }]);
      });
    const results = await Promise.all([add(a), add(b), add(a), add(b)]);
    expect(await world.server.documents()).toEqual({ "count:1": { value: { n: 4 } } });
    expect(results.some(({ attempts }) => attempts > 1)).toBe(true);
  });

  it("ends loudly with the conflict, the commit and the state, when there are no retries left", async () => {
    const { space: a } = await open(alice);
    const { space: b } = await open(bob);
    await a.transact((tx) => tx.set("task:1", task(null)));
    await Promise.all([a.get("task:1"), b.get("task:1")]);
    const heard: unknown[] = [];
    a.subscribe("task:1", (document, cause) => heard.push([cause, document?.value]));
    world.server.isSlow = true;
    await claim(b, "bob");
    const error = await failure(
      claim(a, "alice", 0).catch((cause: unknown) => {
        heard.push("rejected");
        throw cause;
      }),
    );
    expect(error).toMatchObject({
      name: "ConflictError",
      attempts: 1,
      commit: { localSeq: 2 },
      conflicts: [
        { id: "task:1", branch: "", path: ["value", "owner"], expected: { seq: 1 }, actual: { seq: 2, value: "bob" } },
      ],
    });
    expect(heard).toEqual([["commit", task("alice").value], ["revert", task("bob").value], "rejected"]);
  });

  it("gives up after as many retries as it was given, and says how many there were", async () => {
    const { space } = await open(alice);
    await space.transact((tx) => tx.set("task:1", task(null)));
    const body = { error: "conflict_error", name: "ConflictError", message: "stale", retryable: false, conflicts: [] };
    world.server.refuse = (type) => (type === "space.commit" ? { status: 409, body } : undefined);
    let runs = 0;
    const error = await failure(space.transact((tx) => tx.set("task:1", task(`${++runs}`)), { retries: 3 }));
    expect([runs, error.name, error.attempts]).toEqual([4, "ConflictError", 4]);
    expect(space.peek("task:1")).not.toEqual(task("4"));
  });

  it("runs a function that is not synchronous for nothing, and says why", async () => {
    const { space } = await open(alice);
    const error = await failure(space.transact(async (tx) => tx.set("task:1", task(null))));
    expect(error).toMatchObject({ name: "InvalidTransactionError" });
    expect(error.message).toMatch(/synchronous/);
    // What becomes of its promise is not left unhandled, which would end the program: the runner fails on that.
    const asked = failure(space.transact(async (tx) => void tx.get("task:not-loaded")));
    expect(await asked).toMatchObject({ name: "InvalidTransactionError" });
    expect(await world.server.documents()).toEqual({});
  });

  it("takes no transaction inside another, and no tx after its end", async () => {
    const { space } = await open(alice);
    let inner: Promise<SpaceError> | undefined;
    let kept: { set: (id: string, document: object) => void } | undefined;
    await space.transact((tx) => {
      kept = tx as typeof kept;
      inner ??= failure(space.transact((other) => other.set("task:2", task(null))));
      tx.set("task:1", task(null));
    });
    expect(await inner).toMatchObject({ name: "InvalidTransactionError" });
    expect(() => kept?.set("task:3", task(null))).toThrow(/ended/);
    expect(Object.keys(await world.server.documents())).toEqual(["task:1"]);
  });

  it("SPC-14: lets nothing in while a transaction is being built", async () => {
    const { space: a, wire } = await open(alice);
    await a.transact((tx) => tx.set("task:1", task(null)));
    await a.get("task:1");
    await world.rest();
    const upserts = [{ branch: "", id: "task:1", seq: 9, document: task("eve") }];
    const about = {
      type: "sync",
      space: "plan",
      sessionId: a.sessionId,
      branch: "",
      fromSeq: 1,
      toSeq: 9,
      caughtUpLocalSeq: 1,
      removes: [],
    };
    const push = { ...about, upserts };
    const seen = await a.transact((tx) => {
      const before = tx.get<ReturnType<typeof task>>("task:1")?.value.owner;
      wire.inject(push);
      return [before, tx.get<ReturnType<typeof task>>("task:1")?.value.owner];
    });
    expect(seen.value).toEqual([null, null]);
    expect(a.peek("task:1")).toEqual(task("eve"));
  });

  it("sends nothing for a transaction that wrote nothing", async () => {
    const { space, wire } = await open(alice);
    await space.get("task:1");
    const frames = wire.frames;
    expect(await space.transact((tx) => tx.get("task:1"))).toMatchObject({ localSeq: undefined, value: undefined });
    expect(wire.frames).toBe(frames);
  });

  it("works without a connection, and catches up when it is back", async () => {
    const { space, wire } = await open(alice);
    await space.transact((tx) => tx.set("task:1", task(null)));
    await space.get("task:1");
    wire.cut();
    const work = [claim(space, "alice"), space.transact((tx) => tx.set("task:2", { value: { n: 1 } }))];
    const last = space.transact((tx) => {
      const n = tx.get<{ value: { n: number } }>("task:2")?.value.n ?? 0;
      tx.patch("task:2", [{ op: "replace", path: "/value/n", value: n + 1 }]);
    });
    expect([space.peek("task:1"), space.peek("task:2")]).toEqual([task("alice"), { value: { n: 2 } }]);
    expect(space.pending).toBe(3);
    wire.connect();
    await Promise.all([...work, last]);
    expect(await world.server.documents()).toEqual({ "task:1": task("alice"), "task:2": { value: { n: 2 } } });
  });

  it("refuses more than it may queue", async () => {
    const { space, wire } = await open(alice, { maxPending: 2 });
    wire.cut();
    const work = [1, 2].map((n) => space.transact((tx) => tx.set("task:1", { value: n })));
    expect(await failure(space.transact((tx) => tx.set("task:1", { value: 3 })))).toMatchObject({
      name: "QueueFullError",
    });
    wire.connect();
    await Promise.all(work);
    expect(await world.server.documents()).toEqual({ "task:1": { value: 2 } });
  });

  it("accepts sends with the commit or not at all", async () => {
    const { space } = await open(alice);
    const send = { client_message_id: "m-1", destination: { kind: "topic" as const, ref: "news" }, body: "hello" };
    const post = (n: number) =>
      space.transact((tx) => {
        tx.set("task:1", { value: n });
        tx.send(send);
      });
    await post(1);
    expect(await failure(post(2))).toMatchObject({ name: "SendRejectedError", details: { index: 0 } });
    expect(await world.server.documents()).toEqual({ "task:1": { value: 1 } });
    expect(world.server.sent).toEqual(["m-1"]);
  });

  it("seals direct messages with keys that are loaded when the first one is sent, and sends none in clear", async () => {
    const dm = { client_message_id: "m-1", destination: { kind: "dm" as const, ref: bob }, body: "secret" };
    let loads = 0;
    const loadSealing = async () => {
      loads++;
      return (request: AcceptRequest): AcceptRequest => ({
        client_message_id: request.client_message_id,
        destination: request.destination,
        envelope_version: "3",
        body_base64: "AAAA",
      });
    };
    const { space } = await open(alice, { loadSealing });
    const post = (n: number, send: AcceptRequest) =>
      space.transact((tx) => {
        tx.set("task:1", { value: n });
        tx.send(send);
      });
    await post(1, { ...dm, client_message_id: "topic", destination: { kind: "topic", ref: "news" } });
    expect(loads).toBe(0);
    await post(2, dm);
    await post(3, { ...dm, client_message_id: "m-2" });
    expect(loads).toBe(1);
    expect(world.server.sentVersions).toEqual(["1", "3", "3"]);

    const { space: signing } = await open(bob);
    const unsealed = signing.transact((tx) => tx.send(dm));
    expect(await failure(unsealed)).toMatchObject({ code: "dm_not_sealed" });
    expect(world.server.sentVersions).toHaveLength(3);
  });

  it("reports pending work as lost when another takes the session, and goes on in a new one by choice", async () => {
    const { space, wire } = await open(alice);
    await space.transact((tx) => tx.set("task:1", task(null)));
    await space.get("task:1");
    wire.cut();
    const lost = claim(space, "alice");
    // Another process that has the session's id and its last token.
    const { wire: thief } = await open(alice);
    const { sessionId = "" } = space;
    const sessionToken = world.server.tokens.get(sessionId);
    await thief.request("space.open", { space: "plan", openId: "theft", sessionId, sessionToken });
    wire.connect();
    expect(await failure(lost)).toMatchObject({ name: "SessionRevokedError", details: { localSeq: 2 } });
    expect(space.peek("task:1")).toEqual(task(null));
    expect(await failure(claim(space, "alice"))).toMatchObject({ name: "SessionRevokedError" });
    await space.reopen();
    await claim(space, "alice");
    expect(await world.server.documents()).toEqual({ "task:1": task("alice") });
  });

  it("reports what is pending when it is closed", async () => {
    const { space, wire } = await open(alice);
    wire.cut();
    const work = space.transact((tx) => tx.set("task:1", task(null)));
    const loading = space.get("task:9");
    space.close();
    expect(await failure(work)).toMatchObject({ name: "SpaceClosedError" });
    expect(await failure(loading)).toMatchObject({ name: "SpaceClosedError" });
    expect(await failure(space.transact((tx) => tx.set("task:1", task(null))))).toMatchObject({
      name: "SpaceClosedError",
    });
  });

  it("says that a space is not there", async () => {
    const { wire } = await open(alice);
    expect(await failure(spacesOver(wire).space("nowhere"))).toMatchObject({ code: "space_not_found" });
  });
});

describe("subscribers", () => {
  it("of a prefix hear of what comes to be, and of nothing once they are off", async () => {
    const { space: a } = await open(alice);
    const { space: b } = await open(bob);
    await a.transact((tx) => tx.set("task:1", task(null)));
    const heard: unknown[] = [];
    const off = b.subscribePrefix("task:", (id, document, cause) => heard.push([id, cause, document?.value]));
    await world.rest();
    await a.transact((tx) => tx.set("task:2", task(null)));
    await world.rest();
    await b.transact((tx) => (tx.get("task:3") === undefined ? tx.delete("task:1") : undefined));
    expect(heard).toEqual([
      ["task:1", "integrate", task(null).value],
      ["task:2", "integrate", task(null).value],
      ["task:1", "commit", undefined],
    ]);
    off();
    await a.transact((tx) => tx.set("task:4", task(null)));
    await world.rest();
    expect(heard).toHaveLength(3);
  });

  it("may start transactions: every listener hears of everything in order", async () => {
    const { space } = await open(alice);
    await space.get("task:1");
    const heard: string[] = [];
    const follow = (name: string) => (document: unknown, cause: string) =>
      heard.push(`${name} ${cause} ${JSON.stringify((document as { value: number }).value)}`);
    let more: Promise<unknown> | undefined;
    space.subscribe("task:1", (document) => {
      if (document?.value === 1) more = space.transact((tx) => tx.set("task:1", { value: 2 }));
    });
    space.subscribe("task:1", follow("late"));
    await space.transact((tx) => tx.set("task:1", { value: 1 }));
    await more;
    expect(heard).toEqual(["late commit 1", "late commit 2"]);
  });

  it("that throw keep no other listener from hearing", async () => {
    const errors: unknown[] = [];
    const { space } = await open(alice, { onError: (error) => errors.push(error) });
    await space.get("task:1");
    const heard: unknown[] = [];
    space.subscribe("task:1", () => {
      throw new Error("oh");
    });
    space.subscribe("task:1", (document) => heard.push(document));
    await space.transact((tx) => tx.set("task:1", task(null)));
    expect([errors.length, heard.length]).toEqual([1, 1]);
  });

  it("and readers get documents that cannot be changed", async () => {
    const { space } = await open(alice);
    await space.transact((tx) => tx.set("task:1", task(null)));
    const document = (await space.get("task:1")) as ReturnType<typeof task>;
    expect(() => Object.assign(document.value, { owner: "eve" })).toThrow(TypeError);
  });
});

describe("history and branches", () => {
  it("shows the past, the log, and what a branch changed, and merges it with resolutions", async () => {
    const { space } = await open(alice);
    await space.transact((tx) => tx.set("task:1", task(null)));
    await space.transact((tx) => tx.set("task:2", task(null)));
    await space.createBranch("draft", { atSeq: 2 });
    const draft = space.branch("draft");
    await claim(draft, "alice");
    await claim(space, "bob");
    expect(await space.at(1).get("task:2")).toBeUndefined();
    expect((await space.at(1).query({ prefix: "task:" })).items.map(({ id }) => id)).toEqual(["task:1"]);
    expect((await space.log()).items.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5]);
    expect(await draft.get("task:1")).toEqual(task("alice"));
    expect(await space.diff({ source: "draft" })).toEqual({ added: [], removed: [], modified: ["task:1"] });
    const first = await space.merge({ source: "draft" });
    expect(first).toMatchObject({
      status: "conflict",
      conflicts: [{ id: "task:1", source: task("alice"), target: task("bob") }],
    });
    const merged = await space.merge({ source: "draft", resolutions: { "task:1": task("both") } });
    expect(merged).toEqual({ status: "merged", seq: 6, merged: ["task:1"] });
    expect(await space.get("task:1")).toEqual(task("both"));
    expect(await space.merge({ source: "draft" })).toEqual({ status: "up_to_date" });
    await space.deleteBranch("draft");
    expect(await failure(claim(draft, "late"))).toMatchObject({
      code: expect.stringMatching(/branch_deleted|conflict_error/),
    });
    const ids: string[] = [];
    for await (const { id } of space.list("task:")) ids.push(id);
    expect(ids).toEqual(["task:1", "task:2"]);
  });

  it("says that a branch is not there, to a caller that waits for it", async () => {
    const { space } = await open(alice);
    expect(await failure(space.branch("nowhere").get("task:1"))).toMatchObject({ code: "branch_not_found" });
  });
});

function claim(space: { transact: Space["transact"] }, owner: string, retries?: number) {
  return space.transact(
    (tx) => {
      if (tx.get<ReturnType<typeof task>>("task:1")?.value.owner === owner) return;
      tx.patch("task:1", [{ op: "replace", path: "/value/owner", value: owner }]);
    },
    retries === undefined ? {} : { retries },
  );
}
