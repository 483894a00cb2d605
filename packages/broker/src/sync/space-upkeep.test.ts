// Spaces in a broker over time: commits whose notice was lost are found by looking, unused sessions are swept, budget
// is spent once, and the metrics say so.
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, expect, test, vi } from "vitest";
import {
  callBroker,
  createTestMesh,
  joinTestMesh,
  readAdminToken,
  startTestBroker,
} from "../../../../tests/support/broker-harness.ts";
import {
  commitOf,
  commitOverHttp,
  nextSync,
  openOverHttp,
  openOverSocket,
  set,
  watchOver,
} from "../testing/space-wire-world.ts";

afterEach(() => {
  vi.useRealTimers();
});

const dayMs = 86_400_000;

async function startWithSpace(options: Parameters<typeof startTestBroker>[0] = {}) {
  const broker = await startTestBroker(options);
  const alice = await createTestMesh(broker);
  await alice.call("POST", "/spaces", { name: "plan" });
  return { broker, alice };
}

test("a commit whose notice was lost is pushed at the next look", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  // Opening two sessions are the first two.
  const env = { CLAUDEMESH_FAILPOINTS: "commit.after_commit@3=error" };
  const { alice } = await startWithSpace({ env });
  const { peer, held } = await openOverSocket(alice, "watch");
  await watchOver(peer, held, { prefixes: [""] });
  const writer = await openOverHttp(alice, "write");
  const commit = commitOf(1, [set("a:1", 1)]);
  expect((await commitOverHttp(alice, writer, commit)).status).toBeGreaterThanOrEqual(500);
  await peer.request("space.list");
  expect(peer.arrived).toEqual([]);
  vi.advanceTimersByTime(5_000);
  expect(await nextSync(peer)).toMatchObject({ toSeq: 1, upserts: [{ id: "a:1" }] });
  expect((await commitOverHttp(alice, writer, commit)).body).toMatchObject({ seq: 1, replayed: true });
});

test("a session that is only watched stays in use; one that is not used is swept after 30 days", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const { broker, alice } = await startWithSpace();
  const { peer, held } = await openOverSocket(alice, "watch");
  await watchOver(peer, held, { prefixes: [""] });
  const idle = await openOverHttp(alice, "idle");
  const db = new DatabaseSync(broker.storePath);
  const used = () =>
    db.prepare("SELECT session_id, used_at FROM space_session").all() as { session_id: string; used_at: number }[];
  db.prepare("UPDATE space_session SET used_at = ?").run(Date.now() - 29 * dayMs);
  const watchedAt = () => used().find((row) => row.session_id === held.sessionId)?.used_at ?? 0;
  // So many looks go by until the sessions are looked at too; an answer in between lets each come to its end.
  for (let looks = 0; looks < 24 && Date.now() - watchedAt() > dayMs; looks += 1) {
    vi.advanceTimersByTime(5_000);
    await peer.request("space.list");
  }
  expect(Date.now() - watchedAt()).toBeLessThan(dayMs);
  db.prepare("UPDATE space_session SET used_at = used_at - ?").run(2 * dayMs);
  const token = readAdminToken(broker);
  expect((await callBroker(broker.url, "POST", "/v1/admin/sweep", { token })).body).toMatchObject({
    swept: { space_sessions: 1 },
  });
  expect(used().map((row) => row.session_id)).toEqual([held.sessionId]);
  db.close();
  expect(await commitOverHttp(alice, idle, commitOf(1, [set("a:1", 1)]))).toMatchObject({ status: 404 });
});

test("a commit over the mesh's budget is 429 and no verdict: later the same commit is accepted, and spends nothing twice", async () => {
  const { broker, alice } = await startWithSpace({ flags: { "rate-limit": "4/3600s" } });
  // A token, the space and an invite are created before it.
  const bob = await joinTestMesh(alice, "bob");
  const session = await openOverHttp(alice);
  const destination = { kind: "dm", ref: bob.pubkey };
  const tell = (id: string) => ({ client_message_id: id, destination, envelope_version: "2", body: "x" });
  const commit = commitOf(1, [set("a:1", 1)], { sends: [tell("m1"), tell("m2")] });
  const refused = await commitOverHttp(alice, session, commit);
  expect(refused).toMatchObject({ status: 429, body: { error: "rate_limited", retryable: true } });
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(await alice.call("GET", "/spaces/plan/entities/a:1")).toMatchObject({ status: 404 });
  const smaller = commitOf(1, [set("a:1", 1)], { sends: [tell("m1")] });
  expect(await commitOverHttp(alice, session, smaller)).toMatchObject({ status: 200, body: { seq: 1 } });
  expect(await commitOverHttp(alice, session, smaller)).toMatchObject({ status: 200, body: { replayed: true } });

  const text = await (await fetch(`${broker.url}/metrics`)).text();
  expect(text).toContain('cm_broker_space_commits_total{verdict="accepted"} 1');
  expect(text).toContain('cm_broker_space_commits_total{verdict="replayed"} 1');
  expect(text).toContain("cm_broker_space_sessions_held 0");
});

test("commits are counted by their bytes: over the budget they are 429 and no verdict, and a retry of an accepted one is free", async () => {
  const { alice } = await startWithSpace({ flags: { "commit-rate-limit": "10000/86400s" } });
  const session = await openOverHttp(alice);
  const text = "x".repeat(4_000);
  const first = commitOf(1, [set("a:1", text)]);
  expect(await commitOverHttp(alice, session, first)).toMatchObject({ status: 200 });
  // What is no verdict takes nothing out of it.
  const ahead = { confirmed: [], pending: [{ id: "a:1", path: ["value"], localSeq: 2 }] };
  for (let n = 0; n < 3; n += 1) {
    const early = commitOf(3, [set("a:1", text)], { reads: ahead });
    expect(await commitOverHttp(alice, session, early)).toMatchObject({ status: 422 });
  }
  expect(await commitOverHttp(alice, session, commitOf(2, [set("a:1", text)]))).toMatchObject({ status: 200 });
  const third = commitOf(3, [set("a:1", text)]);
  const refused = await commitOverHttp(alice, session, third);
  expect(refused).toMatchObject({ status: 429, body: { error: "rate_limited", retryable: true } });
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(await commitOverHttp(alice, session, first)).toMatchObject({ status: 200, body: { replayed: true, seq: 1 } });
  expect(await alice.call("GET", "/spaces/plan/entities/a:1")).toMatchObject({ status: 200, body: { seq: 2 } });
  // Something small still fits.
  expect(await commitOverHttp(alice, session, commitOf(3, [set("a:1", 3)]))).toMatchObject({ status: 200 });
});

test("a broker that starts again knows what was committed in the window", async () => {
  const flags = { "commit-rate-limit": "10000/86400s" };
  const { broker, alice } = await startWithSpace({ flags });
  const session = await openOverHttp(alice);
  expect(await commitOverHttp(alice, session, commitOf(1, [set("a:1", "x".repeat(9_500))]))).toMatchObject({
    status: 200,
  });
  await broker.stop();
  const again = await startTestBroker({ folder: dirname(broker.storePath), flags });
  alice.url = again.url;
  const large = commitOf(2, [set("a:1", "x".repeat(900))]);
  expect(await commitOverHttp(alice, session, large)).toMatchObject({ status: 429 });
});
