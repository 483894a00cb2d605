// 3.8: every call over HTTP: which callers may make it, what it refuses, its statuses, and that a socket answers the
// same.
import { expectAnswer, expectEqual, expectRefusal, expectSameJson, itemsOf } from "../../frame/expect.ts";
import { aCount, aList, aPublicKey, aText, aTime } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import type { BrokerWorld } from "../broker/world.ts";
import { readPages } from "../pages.ts";
import { createSpace, expectAccepted, Session, set, spacePath } from "./session.ts";

type Call = { readonly method: string; readonly path: string; readonly json?: object };

const noReads = { confirmed: [], pending: [] };

/** Each call with an input that would be accepted from a known caller in an existing space. */
function everyCall(world: BrokerWorld, space: string): readonly Call[] {
  const credentials = { sessionId: "s", sessionToken: "t" };
  const commit = { localSeq: 1, reads: noReads, operations: [set("a:1", 1)] };
  const at = (path: string) => spacePath(space, path);
  return [
    { method: "POST", path: at("/sessions"), json: { openId: world.fresh("open") } },
    { method: "POST", path: at("/commits"), json: { ...credentials, commit } },
    { method: "GET", path: at("/sessions/s/commits/1") },
    { method: "GET", path: at("/entities/a:1") },
    { method: "POST", path: at("/query"), json: { prefix: "" } },
    { method: "GET", path: at("/log") },
    { method: "GET", path: at("/invocations/x") },
    { method: "POST", path: at("/branches"), json: { ...credentials, localSeq: 1, name: "draft" } },
    { method: "POST", path: at("/branches/draft/delete"), json: { ...credentials, localSeq: 1 } },
    { method: "GET", path: at("/branches") },
    { method: "POST", path: at("/merges/propose"), json: { source: "draft", target: "" } },
    { method: "GET", path: at("/diff?source=draft&target=") },
  ];
}

const withSpaces = (world: BrokerWorld, space: string): readonly Call[] => [
  { method: "POST", path: "/spaces", json: { name: space } },
  { method: "GET", path: "/spaces" },
  ...everyCall(world, space),
];

const guards: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "3.8",
    "needs-token",
    "every call needs a member's token: without, or with another, it is 401",
    async (world) => {
      const space = await createSpace(world);
      for (const { method, path, json } of withSpaces(world, space)) {
        for (const token of [undefined, "wrong"]) {
          expectRefusal(await world.as(token).call(method, path, json), 401, "unauthorized");
        }
      }
    },
  ),
  scenario(
    "3.8",
    "unknown-fields",
    "every call refuses fields that it does not know, in body and query",
    async (world) => {
      const space = await createSpace(world);
      for (const { method, path, json } of withSpaces(world, space)) {
        const odd = `${path}${path.includes("?") ? "&" : "?"}colour=blue`;
        expectRefusal(await world.alice.call(method, odd, json), 400, "unknown_field");
        if (json === undefined) continue;
        expectRefusal(await world.alice.call(method, path, { ...json, colour: "blue" }), 400, "unknown_field");
      }
    },
  ),
  scenario("3.8", "unknown-things", "an unknown space, session, branch or entity is 404", async (world) => {
    const none = world.fresh("none");
    for (const { method, path, json } of everyCall(world, none)) {
      expectRefusal(await world.alice.call(method, path, json), 404);
    }
    const space = await createSpace(world);
    const credentials = { sessionId: "s", sessionToken: "t", localSeq: 1 };
    const commit = { localSeq: 1, reads: noReads, operations: [set("a:1", 1)] };
    const expected: readonly (readonly [string, string, object | undefined, string])[] = [
      ["POST", "/commits", { sessionId: "s", sessionToken: "t", commit }, "session_not_found"],
      ["GET", "/sessions/s/commits/1", undefined, "session_not_found"],
      ["POST", "/branches", { ...credentials, name: "draft" }, "session_not_found"],
      ["GET", "/entities/a:1", undefined, "entity_not_found"],
      ["GET", "/entities/a:1?branch=none", undefined, "branch_not_found"],
      ["POST", "/query", { prefix: "", branch: "none" }, "branch_not_found"],
      ["POST", "/merges/propose", { source: "none", target: "" }, "branch_not_found"],
      ["GET", "/diff?source=none&target=", undefined, "branch_not_found"],
    ];
    for (const [method, path, json, error] of expected) {
      expectRefusal(await world.alice.call(method, spacePath(space, path), json), 404, error);
    }
  }),
  scenario("3.8", "malformed", "a field that is missing or of another type is 400", async (world) => {
    const session = await Session.inNewSpace(world);
    const sound = session.build([set("a:1", 1)]);
    const commits: readonly unknown[] = [
      { ...sound, reads: undefined },
      { ...sound, reads: { confirmed: [] } },
      { ...sound, reads: { ...noReads, confirmed: [{ id: "a:1", seq: 0 }] } },
      { ...sound, reads: { ...noReads, confirmed: [{ id: "a:1", path: ["value"], seq: 0, colour: 1 }] } },
      { ...sound, reads: { ...noReads, confirmed: [{ id: "a:1", path: "/value", seq: 0 }] } },
      { ...sound, reads: { ...noReads, confirmed: [{ id: "a:1", path: [1], seq: 0 }] } },
      { ...sound, reads: { ...noReads, confirmed: [{ id: "a:1", path: [], seq: -1 }] } },
      { ...sound, operations: undefined },
      { ...sound, operations: {} },
      { ...sound, branch: "no name" },
      { ...sound, branch: null },
      { ...sound, merge: {} },
      null,
      [],
      "x",
    ];
    const path = spacePath(session.space, "/commits");
    for (const commit of commits)
      expectRefusal(await world.alice.call("POST", path, { ...session.credentials, commit }), 400);
    for (const raw of ["", "[]", "{", '{"a":1,"a":1}'])
      expectRefusal(await world.alice.callRaw("POST", path, raw), 400);
    for (const query of ["?atSeq=x", "?atSeq=-1", "?atSeq=1.5", "?atSeq=", "?branch=no%20name"]) {
      expectRefusal(await session.entity("a:1", query), 400);
    }
    expectAccepted(await session.send(sound));
  }),
  scenario("3.8", "limits", "limit is 1–1000 everywhere", async (world) => {
    const session = await Session.inNewSpace(world);
    const { space } = session;
    for (const path of ["/spaces?", `${spacePath(space, "/log")}?`, `${spacePath(space, "/branches")}?`]) {
      for (const limit of ["1", "1000"]) {
        expectAnswer(await world.alice.call("GET", `${path}limit=${limit}`), 200, { items: aList });
      }
      for (const limit of ["0", "1001", "-1", "x", "1.5", ""]) {
        expectRefusal(await world.alice.call("GET", `${path}limit=${limit}`), 400);
      }
    }
    for (const limit of [0, 1001, -1, "1", 1.5, null]) expectRefusal(await session.query({ limit }), 400);
  }),
];

const answers: readonly Scenario<BrokerWorld>[] = [
  scenario("3.8", "spaces", "a space is made once, by any member, and listed", async (world) => {
    const name = world.fresh("space");
    const created = await world.bob.call("POST", "/spaces", { name });
    const shape = { name, seq: 0, signedWrites: "optional", createdBy: world.bob.pubkey, createdAt: aTime };
    expectAnswer(created, 201, shape);
    for (const member of [world.bob, world.alice])
      expectAnswer(await member.call("POST", "/spaces", { name }), 200, shape);
    const session = await Session.open(world, world.alice, name);
    await session.accept([set("a:1", 1)]);
    const listed = (await readPages(world.alice, "/spaces", 2)).filter((item) => item.name === name);
    expectSameJson(listed, [{ ...created.body, seq: 1 }], "the space among all", "GET /spaces");
    for (const wrong of ["", "has space", "-x", "x".repeat(65), 1, null]) {
      expectRefusal(await world.alice.call("POST", "/spaces", { name: wrong }), 400);
    }
  }),
  scenario("3.8", "socket", "every call answers on the socket as it does over HTTP", async (world) => {
    const session = await Session.inNewSpace(world);
    const { space, credentials } = session;
    const peer = await world.alice.connect("client");
    const first = session.build([set("a:1", 1)]);
    expectAccepted(await peer.request("space.commit", { space, ...credentials, commit: first }), { seq: 1 });
    expectAnswer(await session.send(first), 200, { seq: 1, replayed: true });
    const branch = { space, ...credentials, localSeq: 2, name: "draft" };
    expectAccepted(await peer.request("space.branch.create", branch), { seq: 2 });
    const pairs: readonly (readonly [string, object, string])[] = [
      ["space.entity", { entityId: "a:1" }, "/entities/a:1"],
      ["space.entity", { entityId: "a:2" }, "/entities/a:2"],
      ["space.log", { limit: 10 }, "/log?limit=10"],
      ["space.branches", {}, "/branches"],
      [
        "space.verdict",
        { sessionId: credentials.sessionId, localSeq: 1 },
        `/sessions/${credentials.sessionId}/commits/1`,
      ],
      [
        "space.verdict",
        { sessionId: credentials.sessionId, localSeq: 9 },
        `/sessions/${credentials.sessionId}/commits/9`,
      ],
      ["space.diff", { source: "draft", target: "" }, "/diff?source=draft&target="],
    ];
    for (const [type, input, path] of pairs) {
      const frame = await peer.request(type, { space, ...input });
      const http = await session.get(path);
      expectEqual(frame.status, http.status, "the status over HTTP", frame.request);
      expectSameJson(frame.body, http.body, "the body over HTTP", frame.request);
    }
    const query = await peer.request("space.query", { space, prefix: "" });
    expectSameJson(query.body, (await session.query({ prefix: "" })).body, "the body over HTTP", query.request);
    expectRefusal(
      await peer.request("space.commit", { space, ...credentials, commit: first, colour: 1 }),
      400,
      "unknown_field",
    );
  }),
  scenario("3.8", "revoked-member", "a former member commits nothing, whatever token it holds", async (world) => {
    const { owner } = world;
    const dora = await world.join("dora");
    const space = await createSpace(world);
    const session = await Session.open(world, dora, space);
    await session.accept([set("a:1", 1)]);
    expectAnswer(await owner.call("DELETE", `/members/${dora.pubkey}`), 200);
    expectRefusal(await session.commit([set("a:1", 2)]), 401, "unauthorized");
    const reader = await Session.open(world, world.alice, space);
    const entry = expectAnswer(await reader.get("/log"), 200);
    expectAnswer({ ...entry, body: { items: itemsOf(entry) } }, 200, {
      items: [{ seq: aCount, author: aPublicKey, sessionId: aText }],
    });
    await reader.expectValue("a:1", 1);
  }),
];

export const spaceCallScenarios: readonly Scenario<BrokerWorld>[] = [...guards, ...answers];
