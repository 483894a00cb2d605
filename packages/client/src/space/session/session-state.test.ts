import type { EntityDocument } from "@claudemesh/protocol/spaces/entity";
import type { Operation, PatchOp } from "@claudemesh/protocol/spaces/operations";
import { beforeEach, describe, expect, it } from "vitest";
import type { WireOutcome } from "../space-wire.ts";
import type { Notification } from "../tiers/visible-changes.ts";
import type { Ask, Effect } from "./session-contract.ts";
import { SessionState } from "./session-state.ts";

const ok = (body: object): WireOutcome => ({ type: "answered", status: 200, body });
const refused = (status: number, error: string, more: object = {}): WireOutcome => ({
  type: "answered",
  status,
  body: { error, message: error, retryable: status === 429 || status >= 500, ...more },
});
const opened = { sessionId: "s", sessionToken: "t", seq: 5, lastLocalSeq: 0, resumed: false };
const value = (n: number): EntityDocument => ({ value: { n } });
const set = (id: string, n: number): Operation => ({ op: "set", id, value: value(n) });
const patch = (id: string, ...patches: PatchOp[]): Operation => ({ op: "patch", id, patches });

type Sent = Extract<Effect, { kind: "send" }>;

let state: SessionState;
let opens: number;
/** Of the last event. */
let sent: Sent[];
let notifications: Notification[];
let settled: [number, string][];
let effects: Effect[];

beforeEach(() => {
  opens = 0;
  const newOpenId = () => `open-${++opens}`;
  state = new SessionState({ space: "plan", newOpenId, maxPending: 4, isSubscribed: () => true });
});

function run(given: Effect[]): Effect[] {
  effects = given;
  sent = given.filter((effect) => effect.kind === "send");
  notifications = given.flatMap((effect) => (effect.kind === "notify" ? [effect.notification] : []));
  settled = given.flatMap((effect) => {
    if (effect.kind !== "settle") return [];
    const { localSeq, verdict } = effect.settlement;
    return [[localSeq, verdict.type === "accepted" ? "accepted" : verdict.error.name]];
  });
  return given;
}

const answer = (message: Sent | undefined, outcome: WireOutcome) => run(state.answered(message?.ask as Ask, outcome));

function open(): void {
  run(state.up());
  answer(sent[0], ok(opened));
}

/** Loads entities, each as it is given. */
function load(documents: Record<string, EntityDocument>, seq = 5): void {
  run(state.want(state.branches.get(""), Object.keys(documents)));
  const [watch, query] = sent;
  answer(watch, ok({ seq }));
  const items = Object.entries(documents).map(([id, document]) => ({ id, seq: 1, branch: "", document }));
  answer(query, ok({ seq, items }));
}

function submit(operations: Operation[], restsOn: number[] = [], hasSends = false): Sent | undefined {
  const request = (localSeq: number) => ({ type: "space.commit" as const, input: { commit: { localSeq } } });
  run(state.submit({ branch: "", operations, restsOn: new Set(restsOn), hasSends, request }).effects);
  return sent[0];
}

const sync = (
  toSeq: number,
  caughtUpLocalSeq: number,
  documents: Record<string, [number, EntityDocument]>,
  fromSeq = 5,
) =>
  run(
    state.pushed({
      type: "sync",
      space: "plan",
      sessionId: "s",
      branch: "",
      fromSeq,
      toSeq,
      caughtUpLocalSeq,
      upserts: Object.entries(documents).map(([id, [seq, document]]) => ({ branch: "", id, seq, document })),
      removes: [],
    } as { type: string }),
  );

const shows = (id: string) => state.branches.get("").find(id)?.visible.document;
const heard = () => notifications.map(({ id, cause, document }) => [id, cause, document?.value]);
const accepted = (seq: number) => ok({ seq, resolvedPendingReads: [], replayed: false });
const conflict = refused(409, "conflict_error", { name: "ConflictError", conflicts: [] });

describe("opening", () => {
  it("asks again under the same openId when the answer was lost, and under a new one on the next connection", () => {
    run(state.up());
    expect(sent[0]).toMatchObject({ type: "space.open", input: { space: "plan", openId: "open-1" } });
    state.down();
    run(state.up());
    expect(sent[0]?.input).toMatchObject({ openId: "open-1" });
    answer(sent[0], ok(opened));
    state.down();
    run(state.up());
    expect(sent[0]?.input).toEqual({ space: "plan", openId: "open-2", sessionId: "s", sessionToken: "t", seenSeq: 5 });
  });

  it("passes over answers of an ended connection", () => {
    run(state.up());
    const [first] = sent;
    state.down();
    run(state.up());
    answer(first, ok(opened));
    expect(state.phase).toBe("opening");
  });

  it("tries again when the broker is busy, and says so when it refuses", () => {
    run(state.up());
    answer(sent[0], refused(429, "busy"));
    expect(effects).toMatchObject([{ kind: "wake", failures: 1, ask: { kind: "open" } }]);
    run(state.woken((effects[0] as { ask: Ask }).ask));
    expect(sent[0]?.input).toMatchObject({ openId: "open-1" });
    answer(sent[0], refused(404, "space_not_found"));
    expect(effects).toMatchObject([{ kind: "lost", error: { code: "space_not_found" } }]);
  });

  it("is lost when the broker's history ends before what was seen", () => {
    open();
    load({ "e:1": value(1) }, 9);
    state.down();
    run(state.up());
    answer(sent[0], ok({ ...opened, seq: 8, resumed: true }));
    expect(effects).toMatchObject([{ kind: "lost", error: { name: "HistoryLostError" } }]);
  });
});

describe("resuming", () => {
  it("replays what was not answered, in order and word for word, and then renews the watch from what was seen", () => {
    open();
    load({ "e:1": value(1) });
    const first = [submit([set("e:1", 2)]), submit([set("e:1", 3)], [1])];
    state.down();
    run(state.up());
    answer(sent[0], ok({ ...opened, sessionToken: "t2", seq: 8, resumed: true }));
    expect(sent.map(({ type }) => type)).toEqual(["space.commit", "space.commit", "space.watch"]);
    for (const [index, message] of first.entries()) {
      expect(sent[index]?.input).toEqual({ ...message?.input, sessionToken: "t2" });
    }
    expect(sent[2]?.input).toMatchObject({ ids: ["e:1"], seenSeq: 5, sessionToken: "t2" });
  });

  it("lets no verdict take effect before it has caught up, so that it shows what explains it", () => {
    open();
    load({ "e:1": value(1) });
    submit([patch("e:1", { op: "replace", path: "/value/n", value: 2 })]);
    state.down();
    run(state.up());
    answer(sent[0], ok({ ...opened, seq: 8, resumed: true }));
    const [commit, watch] = sent;
    answer(commit, conflict);
    expect([heard(), settled]).toEqual([[], []]);
    sync(8, 1, { "e:1": [8, value(7)] });
    expect(heard()).toEqual([["e:1", "revert", { n: 7 }]]);
    expect(settled).toEqual([[1, "ConflictError"]]);
    answer(watch, ok({ seq: 8 }));
    expect([heard(), settled]).toEqual([[], []]);
  });
});

describe("a frame", () => {
  it("that may hold own work waits for its verdict: nothing shows twice", () => {
    open();
    load({ "e:1": { value: { list: [1] } } });
    const commit = submit([patch("e:1", { op: "add", path: "/value/list/-", value: 2 })]);
    sync(6, 1, { "e:1": [6, { value: { list: [1, 2] } }] });
    expect(shows("e:1")).toEqual({ value: { list: [1, 2] } });
    answer(commit, accepted(6));
    expect(shows("e:1")).toEqual({ value: { list: [1, 2] } });
    expect([heard(), settled]).toEqual([[], [[1, "accepted"]]]);
  });

  it("of others is integrated under own work: operations are replayed, and what they shadow is silent", () => {
    open();
    load({ "e:1": { value: { n: 1, list: [1] } } });
    submit([patch("e:1", { op: "replace", path: "/value/n", value: 9 })]);
    sync(6, 0, { "e:1": [6, { value: { n: 5, list: [1] } }] });
    expect(heard()).toEqual([]);
    sync(7, 0, { "e:1": [7, { value: { n: 6, list: [1, 2] } }] }, 6);
    expect(heard()).toEqual([["e:1", "integrate", { n: 9, list: [1, 2] }]]);
  });

  it("that comes in parts takes effect as a whole", () => {
    open();
    load({ "e:1": value(1), "e:2": value(1) });
    sync(5, 0, { "e:1": [6, value(2)] });
    expect([heard(), shows("e:1")]).toEqual([[], value(1)]);
    sync(6, 0, { "e:2": [6, value(2)] });
    expect(heard()).toEqual([
      ["e:1", "integrate", { n: 2 }],
      ["e:2", "integrate", { n: 2 }],
    ]);
  });

  it("that is older than what is known changes nothing, and a broken one ends the session loudly", () => {
    open();
    load({ "e:1": value(1) });
    sync(7, 0, { "e:1": [7, value(7)] });
    sync(6, 0, { "e:1": [6, value(6)] });
    expect(shows("e:1")).toEqual(value(7));
    run(state.pushed({ type: "sync", space: "plan", sessionId: "s", branch: "" } as { type: string }));
    expect(effects).toMatchObject([{ kind: "lost", error: { name: "MalformedAnswerError" } }]);
  });

  it("of another space or session is not for us", () => {
    open();
    load({ "e:1": value(1) });
    run(state.pushed({ type: "session.revoked", space: "plan", sessionId: "other" } as { type: string }));
    expect(effects).toEqual([]);
  });
});

describe("what was written before it was loaded", () => {
  it("stays on top until its verdict is known, since it may be in what is loaded", () => {
    open();
    const commit = submit([set("e:1", 2)]);
    run(state.want(state.branches.get(""), ["e:1"]));
    const [watch, query] = sent;
    answer(watch, ok({ seq: 7 }));
    // Another session wrote it after our own commit, and we have not received that yet.
    answer(query, ok({ seq: 7, items: [{ id: "e:1", seq: 7, branch: "", document: value(7) }] }));
    expect(state.branches.get("").find("e:1")?.isLive).toBe(false);
    answer(commit, accepted(6));
    expect(shows("e:1")).toEqual(value(7));
    expect(state.branches.get("").find("e:1")?.isLive).toBe(true);
  });

  it("is forgotten with its verdict where it is not watched", () => {
    open();
    answer(submit([set("e:1", 2)]), accepted(6));
    expect(state.branches.get("").find("e:1")).toBeUndefined();
  });
});

describe("loading", () => {
  it("asks for fewer at once where the answer would be too large", () => {
    open();
    run(state.want(state.branches.get(""), ["e:1", "e:2", "e:3"]));
    const [watch, query] = sent;
    answer(watch, ok({ seq: 5 }));
    answer(query, refused(413, "payload_too_large"));
    const halves = sent;
    expect(halves.map(({ input }) => (input as { ids: string[] }).ids)).toEqual([["e:1", "e:2"], ["e:3"]]);
    for (const half of halves) answer(half, ok({ seq: 5, items: [] }));
    expect(state.branches.get("").find("e:3")?.isReadable).toBe(true);
    expect(sent).toEqual([]);
  });

  it("of more pages than one goes on as of the same seq", () => {
    open();
    run(state.want(state.branches.get(""), [], ["e:"]));
    const [watch, first] = sent;
    answer(watch, ok({ seq: 6 }));
    answer(first, ok({ seq: 5, items: [{ id: "e:1", seq: 1, document: value(1) }], nextCursor: "e:1" }));
    expect(sent[0]?.input).toMatchObject({ prefix: "e:", cursor: "e:1", atSeq: 5 });
    answer(sent[0], ok({ seq: 5, items: [{ id: "e:2", seq: 2, document: value(2) }], nextCursor: null }));
    expect(heard()).toEqual([
      ["e:1", "integrate", { n: 1 }],
      ["e:2", "integrate", { n: 2 }],
    ]);
    expect(state.branches.get("").find("e:3")?.isReadable).toBe(true);
  });

  it("is done again for what the server no longer tells of", () => {
    open();
    load({ "e:1": value(1) });
    const frame = {
      type: "sync",
      space: "plan",
      sessionId: "s",
      branch: "",
      fromSeq: 5,
      toSeq: 6,
      caughtUpLocalSeq: 0,
    };
    run(state.pushed({ ...frame, upserts: [], removes: ["e:1"] } as { type: string }));
    expect(sent.map(({ type }) => type)).toEqual(["space.watch", "space.query"]);
    expect(state.branches.get("").find("e:1")?.isReadable).toBe(false);
  });
});

describe("a rejection", () => {
  it("takes back all that rests on it, tells what shows then, and only then settles", () => {
    open();
    load({ "e:1": value(1), "e:2": value(1) });
    const first = submit([set("e:1", 2)]);
    submit([set("e:2", 3)], [1]);
    submit([set("e:3", 4)]);
    answer(first, conflict);
    expect(effects.map(({ kind }) => kind)).toEqual(["notify", "notify", "settle", "settle"]);
    expect(heard()).toEqual([
      ["e:1", "revert", { n: 1 }],
      ["e:2", "revert", { n: 1 }],
    ]);
    expect(settled).toEqual([
      [1, "ConflictError"],
      [2, "DependencyRejectedError"],
    ]);
    expect(state.outbox.size).toBe(1);
  });

  it("is silent where later work of its own still shows", () => {
    open();
    load({ "e:1": value(1) });
    const first = submit([set("e:1", 2)]);
    submit([set("e:1", 3)]);
    answer(first, conflict);
    expect(heard()).toEqual([]);
    expect(shows("e:1")).toEqual(value(3));
  });

  it("that has not taken effect yet keeps anything new from being built on it", () => {
    open();
    load({ "e:1": value(1) });
    submit([set("e:1", 2)]);
    state.down();
    run(state.up());
    answer(sent[0], ok({ ...opened, seq: 8, resumed: true }));
    answer(sent[0], conflict);
    expect(shows("e:1")).toEqual(value(2));
    expect(state.branches.get("").find("e:1")?.isReadable).toBe(false);
  });
});

describe("sending", () => {
  it("sends again, in order, what was refused for the moment, and nothing new before it", () => {
    open();
    const first = submit([set("e:1", 1)]);
    const second = submit([set("e:2", 2)], [1]);
    answer(first, refused(503, "storage_unavailable"));
    const [wake] = effects;
    answer(second, refused(422, "pending_dependency_error", { retryable: true }));
    expect(submit([set("e:3", 3)])).toBeUndefined();
    run(state.woken((wake as { ask: Ask }).ask));
    expect(sent.map(({ input }) => (input as { commit: { localSeq: number } }).commit.localSeq)).toEqual([1, 2, 3]);
  });

  it("takes a commit that is too expensive for decided: it is not sent again, and what builds on it goes with it", () => {
    open();
    const first = submit([set("e:1", 1)]);
    submit([set("e:2", 2)], [1]);
    answer(first, refused(422, "commit_too_expensive", { work: 9, limit: 8 }));
    expect(settled).toEqual([
      [1, "SpaceError"],
      [2, "DependencyRejectedError"],
    ]);
    expect(sent).toEqual([]);
  });

  it("lets nothing overtake a commit with sends", () => {
    open();
    const first = submit([set("e:1", 1)], [], true);
    expect(submit([set("e:2", 2)])).toBeUndefined();
    answer(first, accepted(6));
    expect(sent).toHaveLength(1);
  });

  it("refuses a commit beyond the bound, and changes nothing", () => {
    for (let n = 1; n <= 4; n += 1) submit([set("e:1", n)]);
    expect(() => submit([set("e:1", 5)])).toThrow(expect.objectContaining({ name: "QueueFullError" }));
    expect(shows("e:1")).toEqual(value(4));
  });

  it("never sends what rests on a layer that died before it was sent", () => {
    open();
    load({ "e:1": value(1) });
    const first = submit([set("e:1", 1)], [], true);
    submit([set("e:2", 2)], [1]);
    submit([set("e:3", 3)]);
    answer(first, conflict);
    expect(sent.map(({ input }) => (input as { commit: { localSeq: number } }).commit.localSeq)).toEqual([3]);
  });
});

describe("a session that another took", () => {
  it("reports every pending commit as lost, takes it back, and can be opened anew by choice", () => {
    open();
    load({ "e:1": value(1) });
    submit([set("e:1", 2)], [], true);
    submit([set("e:1", 3)], [1]);
    run(state.pushed({ type: "session.revoked", space: "plan", sessionId: "s" } as { type: string }));
    expect(heard()).toEqual([["e:1", "revert", { n: 1 }]]);
    const errors = effects.flatMap((effect) => (effect.kind === "settle" ? [effect.settlement.verdict] : []));
    expect(errors).toMatchObject([
      { type: "rejected", error: { name: "SessionRevokedError", details: { localSeq: 1, sent: true } } },
      { type: "rejected", error: { name: "SessionRevokedError", details: { localSeq: 2, sent: false } } },
    ]);
    expect(effects.at(-1)).toMatchObject({ kind: "lost" });
    expect(() => submit([set("e:1", 4)])).toThrow(expect.objectContaining({ name: "SessionRevokedError" }));
    run(state.reopen(true));
    expect(sent[0]?.input).toEqual({ space: "plan", openId: "open-2" });
    answer(sent[0], ok({ ...opened, sessionId: "s2", sessionToken: "u", seq: 9 }));
    expect(sent).toMatchObject([{ type: "space.watch", input: { sessionId: "s2", ids: ["e:1"], seenSeq: 5 } }]);
    expect(submit([set("e:1", 4)])?.input).toMatchObject({ sessionId: "s2", commit: { localSeq: 1 } });
  });

  it("gives no number twice to what is submitted while the next one is being opened", () => {
    open();
    answer(submit([set("e:1", 1)]), accepted(6));
    answer(submit([set("e:1", 2)]), accepted(7));
    run(state.pushed({ type: "session.revoked", space: "plan", sessionId: "s" } as { type: string }));
    run(state.reopen(true));
    const [opening] = sent;
    submit([set("e:1", 3)]);
    submit([set("e:1", 4)]);
    answer(opening, ok({ ...opened, sessionId: "s2", sessionToken: "u", seq: 9 }));
    const numbers = () => sent.map(({ input }) => (input as { commit: { localSeq: number } }).commit.localSeq);
    expect(numbers()).toEqual([1, 2]);
    submit([set("e:1", 5)]);
    expect(numbers()).toEqual([3]);
  });

  it("lets nothing be built on what it had accepted and not been told of yet", () => {
    open();
    const commit = submit([set("e:1", 2)]);
    run(state.want(state.branches.get(""), ["e:1"]));
    answer(commit, accepted(6));
    const isReadable = () => state.branches.get("").find("e:1")?.isReadable;
    expect(isReadable()).toBe(true);
    run(state.pushed({ type: "session.revoked", space: "plan", sessionId: "s" } as { type: string }));
    run(state.reopen(true));
    expect([isReadable(), shows("e:1")]).toEqual([false, value(2)]);
    answer(sent[0], ok({ ...opened, sessionId: "s2", sessionToken: "u", seq: 9 }));
    const [watch, query] = sent;
    answer(watch, ok({ seq: 9 }));
    answer(query, ok({ seq: 9, items: [{ id: "e:1", seq: 6, branch: "", document: value(2) }] }));
    expect([isReadable(), shows("e:1")]).toEqual([true, value(2)]);
  });

  it("is noticed by the answer to a commit, too", () => {
    open();
    const commit = submit([set("e:1", 2)]);
    answer(commit, refused(403, "session_revoked_error", { name: "SessionRevokedError" }));
    expect(settled).toEqual([[1, "SessionRevokedError"]]);
    expect(state.phase).toBe("lost");
  });
});
