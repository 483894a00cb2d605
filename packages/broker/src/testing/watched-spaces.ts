// What the spaces contract says of watching and of sessions that get a new holder, for brokers on either store.
import { expect, test } from "vitest";
import {
  at,
  commitOf,
  commitOver,
  commitOverHttp,
  type MakeWorld,
  nextSync,
  openOverHttp,
  openOverSocket,
  readOf,
  set,
  watchOver,
  withSpace,
} from "./space-wire-world.ts";

export function describeWatchedSpaces(make: MakeWorld): void {
  describeWatching(make);
  describeOrder(make);
  describeSessions(make);
}

function describeWatching(make: MakeWorld): void {
  test("a watch of ids and prefixes is sent the latest state, of these and nothing else, in the order of seq", async () => {
    const { alice, bob } = await withSpace(make);
    const writer = await openOverHttp(alice);
    await commitOverHttp(alice, writer, commitOf(1, [set("task:1", 1), set("note:1", 1), set("note:2", 1)]));
    const { peer, held } = await openOverSocket(bob, "b-1");
    const watched = await watchOver(peer, held, { ids: ["task:1"], prefixes: ["note:1"], seenSeq: 0 });
    expect(watched).toMatchObject({ status: 200, body: { seq: 1 } });
    // The catch-up came before the answer.
    expect(peer.arrived).toEqual([
      {
        type: "sync",
        space: "plan",
        sessionId: held.sessionId,
        branch: "",
        fromSeq: 0,
        toSeq: 1,
        caughtUpLocalSeq: 0,
        upserts: [
          { branch: "", id: "task:1", seq: 1, document: { value: 1 } },
          { branch: "", id: "note:1", seq: 1, document: { value: 1 } },
        ],
        removes: [],
      },
    ]);
    await nextSync(peer);
    await commitOverHttp(alice, writer, commitOf(2, [set("note:2", 2)]));
    await commitOverHttp(alice, writer, commitOf(3, [set("note:11", 3), { op: "delete", id: "task:1" }]));
    expect(await nextSync(peer)).toMatchObject({
      fromSeq: 1,
      toSeq: 3,
      upserts: [
        { id: "note:11", seq: 3, document: { value: 3 } },
        { id: "task:1", seq: 3, deleted: true },
      ],
    });
  });

  test("a client that reports what it has seen gets exactly what is newer, also where it lies before a fork", async () => {
    const { alice, bob } = await withSpace(make);
    const writer = await openOverHttp(alice);
    for (const n of [1, 2, 3]) await commitOverHttp(alice, writer, commitOf(n, [set(`task:${n}`, n)]));
    const { sessionId, sessionToken } = writer;
    await alice.call("POST", `${at}/branches`, { sessionId, sessionToken, localSeq: 4, name: "draft" });
    await commitOverHttp(alice, writer, commitOf(5, [set("task:4", 4)]));
    const { peer, held } = await openOverSocket(bob, "b-1");
    const idsOf = async () => ((await nextSync(peer)).upserts as { id: string }[]).map(({ id }) => id);
    await watchOver(peer, held, { prefixes: ["task:"], seenSeq: 2 });
    expect(await idsOf()).toEqual(["task:3", "task:4"]);
    await watchOver(peer, held, { branch: "draft", prefixes: ["task:"], seenSeq: 2 });
    expect(await idsOf()).toEqual(["task:3"]);
    expect(await watchOver(peer, held, { prefixes: ["task:"], seenSeq: 5 })).toMatchObject({ body: { seq: 5 } });
    expect(peer.arrived).toEqual([]);
    expect(await watchOver(peer, held, { prefixes: [""], seenSeq: 6 })).toMatchObject({
      status: 400,
      body: { error: "seq_out_of_range" },
    });
    expect(await watchOver(peer, held, { branch: "none", prefixes: [""] })).toMatchObject({ status: 404 });
  });

  test("another watch replaces the first: what left it is pushed once, and then no more", async () => {
    const { alice, bob } = await withSpace(make);
    const writer = await openOverHttp(alice);
    const { peer, held } = await openOverSocket(bob, "b-1");
    await watchOver(peer, held, { ids: ["task:1", "task:2"] });
    await watchOver(peer, held, { ids: ["task:2"] });
    expect(await nextSync(peer)).toMatchObject({ upserts: [], removes: ["task:1"] });
    await commitOverHttp(alice, writer, commitOf(1, [set("task:1", 1)]));
    await commitOverHttp(alice, writer, commitOf(2, [set("task:2", 2)]));
    expect(await nextSync(peer)).toMatchObject({ toSeq: 2, upserts: [{ id: "task:2" }] });
  });
}

function describeOrder(make: MakeWorld): void {
  test("a verdict comes after the frames that explain it, accepted or not", async () => {
    const { alice, bob } = await withSpace(make);
    const writer = await openOverHttp(alice);
    const { peer, held } = await openOverSocket(bob, "b-1");
    await watchOver(peer, held, { prefixes: ["task:"] });
    for (let n = 1; n <= 20; n += 1) {
      await commitOverHttp(alice, writer, commitOf(n, [set("task:1", n)]));
      const stale = commitOf(2 * n - 1, [set("task:2", n)], {
        reads: { confirmed: [readOf("task:1", 0)], pending: [] },
      });
      const [rejected, accepted] = await Promise.all([
        commitOver(peer, held, stale),
        commitOver(peer, held, commitOf(2 * n, [set("task:3", n)])),
      ]);
      expect([rejected.status, accepted.status]).toEqual([409, 200]);
      const { conflicts } = rejected.body as { conflicts: { actual: { seq: number } }[] };
      // Both answers are here, and so is all that came before them.
      const frames = peer.arrived.filter(({ type }) => type === "sync").map(({ toSeq }) => Number(toSeq));
      expect(Math.max(...frames)).toBeGreaterThanOrEqual(Number(accepted.body.seq));
      expect(conflicts[0]?.actual.seq).toBeLessThanOrEqual(Math.max(...frames));
      expect(frames).toEqual(frames.toSorted((a, b) => a - b));
      const last = peer.arrived.filter(({ type }) => type === "sync").at(-1);
      expect(Number(last?.caughtUpLocalSeq)).toBeGreaterThanOrEqual(2 * n);
    }
  });

  test("a peer that does not read holds up no other, keeps its connection, and gets the last state when it reads", async () => {
    const { alice, bob } = await withSpace(make);
    const writer = await openOverHttp(alice);
    const { peer, held } = await openOverSocket(bob, "b-1");
    await watchOver(peer, held, { ids: ["big:1"] });
    peer.socket.pause();
    const text = "x".repeat(900_000);
    const commits = 20;
    for (let n = 1; n <= commits; n += 1) {
      expect((await commitOverHttp(alice, writer, commitOf(n, [set("big:1", `${n} ${text}`)]))).status).toBe(200);
    }
    peer.socket.resume();
    const seqs: number[] = [];
    while (seqs.at(-1) !== commits) seqs.push(Number((await nextSync(peer)).toSeq));
    // Some filled the buffers of the two hosts; what came after that was pushed as one.
    expect(seqs.length).toBeLessThan(commits);
    expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
  });

  test("a change too large for one frame comes in several, and the seq moves with the last", async () => {
    const { alice, bob } = await withSpace(make);
    const writer = await openOverHttp(alice);
    const text = "x".repeat(700_000);
    await commitOverHttp(
      alice,
      writer,
      commitOf(
        1,
        ["1", "2", "3"].map((n) => set(`big:${n}`, text)),
      ),
    );
    const { peer, held } = await openOverSocket(bob, "b-1");
    await watchOver(peer, held, { prefixes: ["big:"] });
    const frames = [await nextSync(peer), await nextSync(peer), await nextSync(peer)];
    expect(frames.map(({ fromSeq, toSeq }) => [fromSeq, toSeq])).toEqual([
      [0, 0],
      [0, 0],
      [0, 1],
    ]);
    expect(peer.arrived).toEqual([]);
  });
}

function describeSessions(make: MakeWorld): void {
  test("the same openId gets the same session and token; another open takes the session, and the older connection is notified", async () => {
    const { alice } = await withSpace(make);
    const older = await openOverSocket(alice, "o-1");
    expect((await older.peer.request("space.open", { space: "plan", openId: "o-1" })).body).toEqual(older.body);
    await watchOver(older.peer, older.held, { prefixes: [""] });
    const newer = await openOverHttp(alice, "o-2", older.held);
    expect(newer).toMatchObject({ sessionId: older.held.sessionId, resumed: true });
    const { sessionId } = older.held;
    expect(await older.peer.next(({ type }) => type === "session.revoked")).toEqual({
      type: "session.revoked",
      space: "plan",
      sessionId,
    });
    const revoked = { status: 403, body: { error: "session_revoked_error", name: "SessionRevokedError" } };
    expect(await commitOver(older.peer, older.held, commitOf(1, [set("a:1", 1)]))).toMatchObject(revoked);
    expect(await commitOverHttp(alice, older.held, commitOf(1, [set("a:1", 1)]))).toMatchObject(revoked);
    expect(await watchOver(older.peer, older.held, { prefixes: [""] })).toMatchObject(revoked);
    expect(await commitOverHttp(alice, newer, commitOf(1, [set("a:1", 1)]))).toMatchObject({ status: 200 });
    // Nothing of that reached who lost the session.
    await older.peer.request("space.list");
    expect(older.peer.arrived).toEqual([]);
  });

  test("a connection that resumes its own session keeps it, and goes on watching", async () => {
    const { alice, bob } = await withSpace(make);
    const { peer, held } = await openOverSocket(bob, "o-1");
    await watchOver(peer, held, { prefixes: [""] });
    const { body } = await peer.request("space.open", { space: "plan", openId: "o-2", ...held });
    expect(body).toMatchObject({ sessionId: held.sessionId, resumed: true });
    await commitOverHttp(alice, await openOverHttp(alice), commitOf(1, [set("a:1", 1)]));
    await nextSync(peer);
    expect(peer.arrived).toEqual([]);
  });

  test("one connection holds no more than 256 sessions, however many opens are on their way at once", async () => {
    const { alice } = await withSpace(make);
    const peer = await alice.connect("client");
    const opens = Array.from({ length: 300 }, (_, n) =>
      peer.request("space.open", { space: "plan", openId: `many-${n}` }),
    );
    const answers = await Promise.all(opens);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(256);
    const refused = answers.filter(({ status }) => status !== 200);
    expect(new Set(refused.map(({ status, body }) => `${status} ${body.error} ${body.limit}`))).toEqual(
      new Set(["400 invalid_request 256"]),
    );
  });

  test("over HTTP an open that reports what was seen brings what is newer along", async () => {
    const { alice } = await withSpace(make);
    const session = await openOverHttp(alice);
    for (const n of [1, 2]) await commitOverHttp(alice, session, commitOf(n, [set(`a:${n}`, n)]));
    const { sessionId, sessionToken } = session;
    expect(await openOverHttp(alice, "o-2", { sessionId, sessionToken, seenSeq: 1 })).toMatchObject({
      seq: 2,
      lastLocalSeq: 2,
      resumed: true,
      sync: { fromSeq: 1, toSeq: 2, caughtUpLocalSeq: 2, upserts: [{ id: "a:2", seq: 2 }], removes: [] },
    });
    const future = await alice.call("POST", `${at}/sessions`, { openId: "o-3", seenSeq: 3 });
    expect(future).toMatchObject({ status: 400, body: { error: "seq_out_of_range" } });
  });

  test("an owner can require signed writes; then a commit without a signature is refused", async () => {
    const { alice, bob } = await withSpace(make);
    const policy = { signedWrites: "required" };
    expect(await bob.call("PUT", `${at}/policy`, policy)).toMatchObject({ status: 403, body: { error: "forbidden" } });
    expect(await alice.call("PUT", `${at}/policy`, policy)).toMatchObject({ status: 200, body: policy });
    const session = await openOverHttp(bob);
    expect(await commitOverHttp(bob, session, commitOf(1, [set("a:1", 1)]))).toMatchObject({
      status: 403,
      body: { error: "forbidden", field: "invocation" },
    });
    expect(await bob.call("GET", `${at}/invocations/none`)).toMatchObject({ status: 404 });
  });
}
