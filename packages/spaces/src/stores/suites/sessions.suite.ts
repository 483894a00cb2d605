// Sessions: opened once per openId, held by the last opener, and kept by the store.
import { expect, test } from "vitest";
import { sessionUnusedMs } from "../../core/session.ts";
import { holdSession } from "../../services/hold-session.ts";
import { openSession } from "../../services/open-session.ts";
import { findVerdict } from "../../services/query.ts";
import { sweepAllSessions } from "../../services/spaces.ts";
import { alice, bob, brief, refusal, Session, set, type World } from "./world.ts";

export function describeSessions(world: () => World): void {
  test("a lost answer to open: the same openId gets the same session and token", async () => {
    const first = await world().open(alice, "o1");
    expect(first).toMatchObject({ seq: 0, lastLocalSeq: 0, resumed: false });
    await world().reopen();
    expect(await world().open(alice, "o1")).toEqual(first);
    expect(await world().count("space_session")).toBe(1);
  });

  test("the spaces and sessions of one mesh are counted up to a bound", async () => {
    await world().open(alice, "o1");
    await world().open(bob, "o1");
    const { meshId } = world().space;
    const counted = (what: "spaces" | "sessions") =>
      Promise.all([0, 1, 9].map((upTo) => world().store.count(meshId, what, upTo)));
    expect([await counted("spaces"), await counted("sessions")]).toEqual([
      [0, 1, 1],
      [0, 1, 2],
    ]);
    expect(await world().store.count("01890000-0000-7000-8000-00000000ffff", "sessions", 9)).toBe(0);
  });

  test("the same openId of another member opens a session of its own", async () => {
    const first = await world().open(alice, "o1");
    const other = await world().open(bob, "o1");
    expect(other.sessionId).not.toBe(first.sessionId);
    expect(other.sessionToken).not.toBe(first.sessionToken);
  });

  test("many opens with one openId at once are one session", async () => {
    const second = await world().openAnother();
    const opens = [world().store, second, world().store, second].map((store) =>
      openSession(world().ports(store), world().space, alice, { openId: "o1" }),
    );
    const opened = await Promise.all(opens);
    expect(new Set(opened.map(({ sessionId, sessionToken }) => `${sessionId} ${sessionToken}`)).size).toBe(1);
    expect(await world().count("space_session")).toBe(1);
  });

  test("a resumed session keeps its last localSeq, gets another token and notifies the older holder", async () => {
    const session = await world().session();
    await session.write([set("task:1", { n: 1 })]);
    const resumed = await world().open(alice, "o2", session.opened);
    expect(resumed).toMatchObject({ sessionId: session.opened.sessionId, seq: 1, lastLocalSeq: 1, resumed: true });
    expect(resumed.sessionToken).not.toBe(session.opened.sessionToken);
    expect(world().taken).toEqual([{ sessionId: resumed.sessionId, epoch: 2 }]);
  });

  test("a stale token is revoked: it commits nothing, replays nothing and opens nothing", async () => {
    const session = await world().session();
    const commit = session.build([set("task:1", { n: 1 })]);
    await session.send(commit);
    const old = session.opened;
    session.opened = await world().open(alice, "o2", old);
    expect(await refusal(session.send(commit, old))).toBe("session_revoked_error");
    expect(await refusal(session.send(session.build([set("task:2", { n: 2 })]), old))).toBe("session_revoked_error");
    expect(await refusal(world().open(alice, "o3", old))).toBe("session_revoked_error");
    expect(await world().lastSeq()).toBe(1);
    // Nothing of it was consumed: the holder goes on as if the older one had been silent.
    expect(brief(await session.send(session.build([set("task:3", { n: 3 })], { localSeq: 2 })))).toBe(2);
  });

  test("an openId whose session was opened again since is revoked, not opened anew", async () => {
    const first = await world().open(alice, "o1");
    const second = await world().open(alice, "o2", first);
    expect(await refusal(world().open(alice, "o1"))).toBe("session_revoked_error");
    expect(await refusal(world().open(alice, "o1", first))).toBe("session_revoked_error");
    expect(await world().open(alice, "o2", first)).toEqual(second);
  });

  test("an openId is good for one session", async () => {
    await world().open(alice, "o1");
    const other = await world().open(alice, "o2");
    expect(await refusal(world().open(alice, "o1", other))).toBe("invalid_request");
  });

  test("another member's session is unknown, with its token and without", async () => {
    const session = await world().session();
    expect(await refusal(world().open(bob, "o9", session.opened))).toBe("session_not_found");
    const thief = new Session(world(), bob, session.opened);
    expect(await refusal(thief.commit([set("task:1", { n: 1 })]))).toBe("session_not_found");
  });

  test("a session that was not used for 30 days is over; its verdicts stay", async () => {
    const session = await world().session();
    await session.write([set("task:1", { n: 1 })]);
    world().nowMs += sessionUnusedMs - 1;
    await session.write([set("task:1", { n: 2 })]);
    world().nowMs += sessionUnusedMs;
    expect(await refusal(session.commit([set("task:1", { n: 3 })]))).toBe("session_revoked_error");
    expect(await refusal(world().open(alice, "o2", session.opened))).toBe("session_revoked_error");
    world().nowMs += 1;
    expect(await sweepAllSessions(world().ports())).toBe(1);
    expect(await sweepAllSessions(world().ports())).toBe(0);
    expect(await refusal(session.commit([set("task:1", { n: 3 })]))).toBe("session_not_found");
    const kept = (member: string) => findVerdict(world().ports(), world().space, member, session.opened.sessionId, 2);
    expect(await kept(alice)).toMatchObject({ type: "accepted", seq: 2 });
    expect(await refusal(kept(bob))).toBe("session_not_found");
  });

  test("a session that only watches stays, as long as it is held", async () => {
    const opened = await world().open();
    const holder = { memberPubkey: alice, ...opened };
    const hold = (over = {}) => holdSession(world().ports(), world().space, { ...holder, ...over });
    for (let round = 0; round < 3; round++) {
      world().nowMs += sessionUnusedMs - 1;
      expect(await hold()).toMatchObject({ sessionId: opened.sessionId, usedAtMs: world().nowMs });
    }
    expect(await refusal(hold({ sessionToken: "another" }))).toBe("session_revoked_error");
    expect(await refusal(hold({ memberPubkey: bob }))).toBe("session_not_found");
    world().nowMs += sessionUnusedMs;
    expect(await refusal(hold())).toBe("session_revoked_error");
  });

  test("a revoked member is refused before its session is looked at", async () => {
    const session = await world().session();
    await world().query(`UPDATE ${world().table("member")} SET revoked_at = joined_at WHERE pubkey = '${alice}'`);
    expect(await refusal(session.commit([set("task:1", { n: 1 })]))).toBe("unauthorized");
    expect(await refusal(world().open(alice))).toBe("unauthorized");
  });

  test("the store does not hold what a token is made of", async () => {
    const { sessionToken } = await world().open(alice, "the-open-id");
    for (const table of ["space_session", "space_session_open"]) {
      const text = JSON.stringify(await world().query(`SELECT * FROM ${world().table(table)}`));
      expect(text).not.toContain(sessionToken);
      expect(text).not.toContain("the-open-id");
    }
  });

  test("an open that races with commits of the older holder: what it let pass is behind it", async () => {
    const second = await world().openAnother();
    for (let round = 0; round < 10; round++) {
      const session = await world().session();
      const commits = [1, 2, 3].map((n) => session.build([set(`task:${round}`, { n })]));
      const outcomes = await Promise.allSettled([
        ...commits.map((commit) => session.send(commit)),
        openSession(world().ports(second), world().space, alice, { openId: `race-${round}`, ...session.opened }),
        session.send(session.build([set(`task:${round}`, { n: 4 })]), session.opened, second),
      ]);
      const opened = outcomes[3];
      if (opened?.status !== "fulfilled" || !("lastLocalSeq" in opened.value)) throw new Error("the open failed");
      const accepted = await world().query(
        `SELECT max(local_seq) AS n FROM ${world().table("space_commit")} WHERE session_id = '${session.opened.sessionId}'`,
      );
      expect(Number(accepted[0]?.n ?? 0)).toBe(opened.value.lastLocalSeq);
    }
  });
}
