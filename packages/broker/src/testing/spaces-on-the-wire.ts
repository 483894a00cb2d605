// What the spaces contract says of HTTP, of reading, commits, branches, sends and bounds, for brokers on either store.
import { expect, test } from "vitest";
import type { TestMember } from "../../../../tests/support/broker-harness.ts";
import {
  at,
  commitOf,
  commitOver,
  commitOverHttp,
  type Held,
  type MakeWorld,
  openOverHttp,
  openOverSocket,
  readOf,
  set,
  withSpace,
} from "./space-wire-world.ts";
import { describeWatchedSpaces } from "./watched-spaces.ts";

export function describeSpacesOnTheWire(make: MakeWorld): void {
  describeReading(make);
  describeCommits(make);
  describeBranches(make);
  describeSends(make);
  describeLimits(make);
  describeWatchedSpaces(make);
}

function describeReading(make: MakeWorld): void {
  test("a space is made once, listed, and unknown ones are 404", async () => {
    const { alice, bob } = await withSpace(make);
    expect(await bob.call("POST", "/spaces", { name: "plan" })).toMatchObject({ status: 200, body: { name: "plan" } });
    expect(await bob.call("GET", "/spaces")).toMatchObject({
      status: 200,
      body: { items: [{ name: "plan", seq: 0, createdBy: alice.pubkey, signedWrites: "optional" }], nextCursor: null },
    });
    const missing = await bob.call("POST", "/spaces/none/sessions", { openId: "o" });
    expect(missing).toMatchObject({ status: 404, body: { error: "space_not_found", retryable: false } });
    expect(await bob.call("POST", "/spaces", { name: "no name" })).toMatchObject({ status: 400 });
  });

  test("entities are read now, at a seq, by ids and by prefix; absent is 404, deleted says so", async () => {
    const { alice, bob } = await withSpace(make);
    const session = await openOverHttp(alice);
    const values = [set("task:1", { n: 1 }), set("task:2", 2), set("note:1", [])];
    expect(await commitOverHttp(alice, session, commitOf(1, values))).toMatchObject({
      status: 200,
      body: { seq: 1, resolvedPendingReads: [], replayed: false },
    });
    const patches = [{ op: "replace", path: "/value/n", value: 5 }];
    await commitOverHttp(alice, session, commitOf(2, [{ op: "patch", id: "task:1", patches }]));
    await commitOverHttp(alice, session, commitOf(3, [{ op: "delete", id: "task:2" }]));

    const read = (path: string) => bob.call("GET", `${at}/entities/${path}`);
    expect((await read("task:1")).body).toEqual({ id: "task:1", seq: 2, branch: "", document: { value: { n: 5 } } });
    expect((await read("task%3A1?atSeq=1")).body).toMatchObject({ seq: 1, document: { value: { n: 1 } } });
    expect((await read("task:2")).body).toEqual({ id: "task:2", seq: 3, deleted: true });
    expect(await read("task:9")).toMatchObject({ status: 404, body: { error: "entity_not_found" } });
    expect(await read("task:1?atSeq=9")).toMatchObject({ status: 400, body: { error: "seq_out_of_range" } });
    expect(await read("task:1?branch=none")).toMatchObject({ status: 404, body: { error: "branch_not_found" } });

    const query = (input: object) => bob.call("POST", `${at}/query`, input);
    expect((await query({ ids: ["task:2", "task:1", "task:9"] })).body).toMatchObject({
      seq: 3,
      items: [{ id: "task:2", deleted: true }, { id: "task:1" }],
    });
    const first = (await query({ prefix: "", limit: 1 })).body;
    expect(first).toMatchObject({ items: [{ id: "note:1" }], nextCursor: "note:1" });
    expect((await query({ prefix: "", cursor: first.nextCursor })).body).toMatchObject({
      items: [{ id: "task:1" }],
      nextCursor: null,
    });
    expect(await query({ ids: ["task:1"], prefix: "task:" })).toMatchObject({ status: 400 });
  });

  test("the log shows every commit as it was sent, from any seq", async () => {
    const { alice } = await withSpace(make);
    const session = await openOverHttp(alice);
    for (const n of [1, 2, 3]) await commitOverHttp(alice, session, commitOf(n, [set("task:1", n)]));
    const { body } = await alice.call("GET", `${at}/log?after=1&limit=1`);
    expect(body).toMatchObject({
      items: [
        {
          seq: 2,
          localSeq: 2,
          branch: "",
          author: alice.pubkey,
          sessionId: session.sessionId,
          original: commitOf(2, [set("task:1", 2)]),
        },
      ],
      nextAfter: 2,
    });
    expect((await alice.call("GET", `${at}/log?after=3`)).body).toEqual({ items: [], nextAfter: null });
    const newest = await alice.call("GET", `${at}/log?newest=true&limit=2`);
    expect(newest.body).toMatchObject({ items: [{ seq: 2 }, { seq: 3 }], nextAfter: null, prevBefore: 2 });
    const oldest = await alice.call("GET", `${at}/log?before=2&limit=2`);
    expect(oldest.body).toMatchObject({ items: [{ seq: 1 }], nextAfter: 1, prevBefore: null });
    for (const [query, field] of [
      ["after=1&before=2", "before"],
      ["after=0&newest=true", "newest"],
    ]) {
      const refused = await alice.call("GET", `${at}/log?${query}`);
      expect(refused).toMatchObject({ status: 400, body: { error: "invalid_request", field } });
    }
  });
}

function describeCommits(make: MakeWorld): void {
  test("an exact retry gets the stored verdict, accepted or rejected, and any holder of the session can ask for it", async () => {
    const { alice, bob } = await withSpace(make);
    const session = await openOverHttp(alice);
    const first = commitOf(1, [set("task:1", 1)]);
    await commitOverHttp(alice, session, first);
    expect((await commitOverHttp(alice, session, first)).body).toMatchObject({ seq: 1, replayed: true });
    expect(await commitOverHttp(alice, session, commitOf(1, [set("task:1", 2)]))).toMatchObject({
      status: 409,
      body: { error: "replay_mismatch_error", name: "ReplayMismatchError", retryable: false },
    });
    const stale = commitOf(2, [set("task:1", 3)], { reads: { confirmed: [readOf("task:1", 0)], pending: [] } });
    const rejected = await commitOverHttp(alice, session, stale);
    expect(rejected).toMatchObject({
      status: 409,
      body: {
        error: "conflict_error",
        name: "ConflictError",
        conflicts: [{ id: "task:1", branch: "", path: ["value"], expected: { seq: 0 }, actual: { seq: 1, value: 1 } }],
      },
    });
    expect(await commitOverHttp(alice, session, stale)).toMatchObject({ status: 409, body: rejected.body });
    const verdict = (localSeq: number) => `${at}/sessions/${session.sessionId}/commits/${localSeq}`;
    expect((await alice.call("GET", verdict(1))).body).toMatchObject({ seq: 1, replayed: true });
    expect(await alice.call("GET", verdict(2))).toMatchObject({ status: 409, body: rejected.body });
    expect(await alice.call("GET", verdict(7))).toMatchObject({ status: 404, body: { error: "commit_not_found" } });
    expect(await bob.call("GET", verdict(1))).toMatchObject({ status: 404, body: { error: "session_not_found" } });
  });

  test("each refusal has its name and status", async () => {
    const { alice, bob } = await withSpace(make);
    const session = await openOverHttp(alice);
    const refused = async (commit: object, held: Held = session, member = alice) => {
      const { status, body } = await commitOverHttp(member, held, commit);
      return [status, body.name ?? body.error];
    };
    await commitOverHttp(alice, session, commitOf(5, [set("task:1", 1)]));
    const patch = { op: "patch", id: "task:9", patches: [{ op: "remove", path: "/value/x" }] };
    const pending = (read: object) => ({
      reads: { confirmed: [], pending: [{ id: "task:1", path: ["value"], ...read }] },
    });
    expect(await refused(commitOf(4, [set("task:1", 1)]))).toEqual([409, "LocalSeqPassedError"]);
    expect(await refused(commitOf(6, [patch]))).toEqual([422, "PatchError"]);
    expect(await refused(commitOf(7, [set("a:1", 1)], pending({ localSeq: 6 })))).toEqual([
      409,
      "DependencyRejectedError",
    ]);
    const patches = [{ op: "add", path: "/value/x", value: 1 }];
    await commitOverHttp(alice, session, commitOf(8, [{ op: "set", id: "task:1", value: { value: {} } }]));
    await commitOverHttp(alice, session, commitOf(9, [{ op: "patch", id: "task:1", patches }]));
    expect(await refused(commitOf(10, [set("a:1", 1)], pending({ localSeq: 9 })))).toEqual([422, "BasisRequiredError"]);
    expect(await refused(commitOf(12, [set("a:1", 1)], pending({ localSeq: 11, basisSeq: 1 })))).toEqual([
      422,
      "PendingDependencyError",
    ]);
    const future = { reads: { confirmed: [readOf("task:1", 99)], pending: [] } };
    expect(await refused(commitOf(13, [set("a:1", 1)], future))).toEqual([400, "seq_out_of_range"]);
    expect(await refused(commitOf(13, []))).toEqual([400, "invalid_request"]);
    expect(await refused(commitOf(13, [set("a:1", 1)], { surprise: 1 }))).toEqual([400, "unknown_field"]);
    expect(await refused(commitOf(13, [set("a:1", 1)]), session, bob)).toEqual([404, "session_not_found"]);
    expect(await refused(commitOf(13, [set("a:1", 1)], { branch: "none" }))).toEqual([404, "branch_not_found"]);
  });
}

function describeBranches(make: MakeWorld): void {
  test("a branch is made, written, compared, merged with a resolution, and deleted", async () => {
    const { alice } = await withSpace(make);
    const session = await openOverHttp(alice);
    await commitOverHttp(alice, session, commitOf(1, [set("task:1", "base"), set("task:2", "base")]));
    const branch = { sessionId: session.sessionId, sessionToken: session.sessionToken };
    const create = { ...branch, localSeq: 2, name: "draft" };
    expect(await alice.call("POST", `${at}/branches`, create)).toMatchObject({ status: 200, body: { seq: 2 } });
    expect((await alice.call("POST", `${at}/branches`, create)).body).toMatchObject({ seq: 2, replayed: true });
    const onDraft = [set("task:1", "draft"), set("task:3", "new"), { op: "delete", id: "task:2" }];
    await commitOverHttp(alice, session, commitOf(3, onDraft, { branch: "draft" }));
    await commitOverHttp(alice, session, commitOf(4, [set("task:1", "main")]));
    expect((await alice.call("GET", `${at}/entities/task:1?branch=draft`)).body).toMatchObject({
      branch: "draft",
      document: { value: "draft" },
    });
    expect((await alice.call("GET", `${at}/diff?source=draft&target=`)).body).toEqual({
      added: ["task:3"],
      removed: ["task:2"],
      modified: ["task:1"],
    });
    const propose = (more: object = {}) =>
      alice.call("POST", `${at}/merges/propose`, { source: "draft", target: "main", ...more });
    expect((await propose()).body).toEqual({
      status: "conflict",
      conflicts: [{ id: "task:1", source: { value: "draft" }, target: { value: "main" }, ancestor: { value: "base" } }],
    });
    const ready = (await propose({ resolutions: { "task:1": { value: "both" } } })).body as {
      proposal: object;
      merged: string[];
    };
    expect(ready).toMatchObject({ status: "ready", merged: ["task:1", "task:2", "task:3"] });
    const merged = await commitOverHttp(alice, session, { ...ready.proposal, localSeq: 5 });
    expect(merged).toMatchObject({ status: 200, body: { seq: 5 } });
    expect((await alice.call("GET", `${at}/entities/task:1`)).body).toMatchObject({ document: { value: "both" } });
    expect((await propose()).body).toEqual({ status: "up_to_date" });
    expect(await alice.call("POST", `${at}/branches/draft/delete`, { ...branch, localSeq: 6 })).toMatchObject({
      status: 200,
      body: { seq: 6 },
    });
    expect((await alice.call("GET", `${at}/branches`)).body).toEqual({
      items: [
        { name: "", createdSeq: 0 },
        { name: "draft", createdSeq: 2, fromBranch: "", atSeq: 1, deleted: true, deletedSeq: 6 },
      ],
      nextCursor: null,
    });
    expect(await commitOverHttp(alice, session, commitOf(7, [set("a:1", 1)], { branch: "draft" }))).toMatchObject({
      status: 409,
      body: { error: "branch_deleted" },
    });
  });
}

function describeSends(make: MakeWorld): void {
  const tell = (id: string, to: TestMember) => ({
    client_message_id: id,
    destination: { kind: "dm", ref: to.pubkey },
    envelope_version: "2",
    body: "claimed",
  });

  test("a commit's message is pushed to its recipient, and is there exactly if the commit is", async () => {
    const { alice, bob } = await withSpace(make);
    const receiver = await bob.connect();
    const session = await openOverHttp(alice);
    const claim = commitOf(1, [set("task:1", "alice")], { sends: [tell("m-1", bob)] });
    expect(await commitOverHttp(alice, session, claim)).toMatchObject({ status: 200, body: { seq: 1 } });
    expect(await receiver.nextPush()).toMatchObject({ client_message_id: "m-1", envelope_version: "2" });
    expect((await commitOverHttp(alice, session, claim)).body).toMatchObject({ seq: 1, replayed: true });

    const stale = { reads: { confirmed: [readOf("task:1", 0)], pending: [] }, sends: [tell("m-2", bob)] };
    expect(await commitOverHttp(alice, session, commitOf(2, [set("task:1", "x")], stale))).toMatchObject({
      status: 409,
    });
    const fate = await alice.call("GET", `/messages/by-client-id/m-2?fingerprint=${"0".repeat(64)}`);
    expect(fate.body).toEqual({ fate: "none" });
    const history = (await bob.call("GET", "/history")).body.items as { client_message_id: string }[];
    expect(history.map((item) => item.client_message_id)).toEqual(["m-1"]);
  });

  test("a send in clear to a member is 422 and no verdict: sealed, it goes under the same localSeq", async () => {
    const { alice, bob } = await withSpace(make);
    const session = await openOverHttp(alice);
    const { envelope_version: _, ...plain } = tell("m-1", bob);
    const commit = commitOf(1, [set("task:1", "alice")], { sends: [plain] });
    expect(await commitOverHttp(alice, session, commit)).toMatchObject({
      status: 422,
      body: { error: "dm_not_sealed", index: 0 },
    });
    expect(await alice.call("GET", `${at}/entities/task:1`)).toMatchObject({ status: 404 });
    const sealed = commitOf(1, [set("task:1", "alice")], { sends: [tell("m-1", bob)] });
    expect(await commitOverHttp(alice, session, sealed)).toMatchObject({ status: 200, body: { seq: 1 } });
  });

  test("a send that can never be accepted rejects the commit for good, and nothing of it happens", async () => {
    const { alice, bob } = await withSpace(make);
    const session = await openOverHttp(alice);
    await alice.send("used", bob);
    const unknown = { client_message_id: "m-9", destination: { kind: "topic", ref: "nowhere" }, body: "claimed" };
    const cases: [object[], number, string][] = [
      [[tell("m-1", bob), tell("used", bob)], 1, "idempotency_key_reused"],
      [[tell("m-1", bob), tell("m-2", bob), tell("m-1", bob)], 2, "idempotency_key_reused"],
      [[unknown], 0, "destination_not_found"],
    ];
    for (const [n, [sends, index, code]] of cases.entries()) {
      const commit = commitOf(n + 1, [set("task:1", n)], { sends });
      for (const _ of ["first", "retry"]) {
        expect(await commitOverHttp(alice, session, commit)).toMatchObject({
          status: 409,
          body: { error: "send_rejected_error", name: "SendRejectedError", index, code },
        });
      }
    }
    expect(await alice.call("GET", `${at}/entities/task:1`)).toMatchObject({ status: 404 });
    expect(((await bob.call("GET", "/history")).body.items as unknown[]).length).toBe(1);
  });
}

function describeLimits(make: MakeWorld): void {
  const nested = (depth: number) => JSON.parse("[".repeat(depth) + "]".repeat(depth)) as unknown;

  test("documents as deep and commits as large as a space takes pass both transports; messages keep their bounds", async () => {
    const { alice, bob } = await withSpace(make);
    const session = await openOverHttp(alice);
    const deep = { op: "set", id: "deep:1", value: { value: nested(126) } };
    expect(await commitOverHttp(alice, session, commitOf(1, [deep]))).toMatchObject({ status: 200 });
    const { peer, held } = await openOverSocket(bob, "b-1");
    expect(await commitOver(peer, held, commitOf(1, [deep]))).toMatchObject({ status: 200 });
    const tooDeep = { op: "set", id: "deep:1", value: { value: nested(128) } };
    expect(await commitOver(peer, held, commitOf(2, [tooDeep]))).toMatchObject({
      status: 400,
      body: { error: "too_deep" },
    });

    const text = "x".repeat(1_000_000);
    const large = ["1", "2", "3", "4"].map((n) => set(`big:${n}`, text));
    expect(await commitOver(peer, held, commitOf(3, large))).toMatchObject({ status: 200 });
    expect(await commitOverHttp(alice, session, commitOf(2, large))).toMatchObject({ status: 200 });
    const tooLarge = commitOf(4, [...large, set("big:5", text)]);
    expect(await commitOver(peer, held, tooLarge)).toMatchObject({ status: 413, body: { error: "payload_too_large" } });
    const more = ["5", "6", "7", "8"].map((n) => set(`big:${n}`, text));
    expect(await commitOverHttp(alice, session, commitOf(3, more))).toMatchObject({ status: 200 });
    // A page ends after 4 MiB, and goes on behind its last entity.
    const page = async (cursor?: unknown) => {
      const { body } = await bob.call("POST", `${at}/query`, {
        prefix: "big:",
        ...(cursor !== undefined && { cursor }),
      });
      return { ids: (body.items as { id: string }[]).map(({ id }) => id), next: body.nextCursor };
    };
    expect(await page()).toEqual({ ids: ["big:1", "big:2", "big:3", "big:4", "big:5"], next: "big:5" });
    expect(await page("big:5")).toEqual({ ids: ["big:6", "big:7", "big:8"], next: null });
    const meta = nested(100);
    const send = { client_message_id: "m", destination: { kind: "dm", ref: bob.pubkey }, body: "", meta: { meta } };
    expect(await alice.call("POST", "/messages", send)).toMatchObject({ status: 400, body: { error: "too_deep" } });
    peer.sendText(JSON.stringify({ ...send, type: "send", id: 99 }));
    expect(await peer.closed).toMatchObject({ code: 4002, reason: "too_deep" });
  });
}
