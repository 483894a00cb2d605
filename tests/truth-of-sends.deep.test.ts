// What a sender learns, with real processes: what cannot arrive is refused at once, what waits says why, what died can be
// let go, and a former member hears it from every command.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runCli, runJson } from "./support/process.ts";
import { type Peer, until, untilOnline, World } from "./support/world.ts";

const world = new World();
let alice: Peer;
let bob: Peer;
let carol: Peer;

beforeAll(async () => {
  [alice, bob] = await world.startWithPair();
  carol = await world.addPeer("carol");
  await Promise.all([alice.start(), bob.start(), carol.start()]);
  await Promise.all([alice, bob, carol].map(untilOnline));
});
afterAll(() => world.end());

const cli = (peer: Peer, ...args: string[]) => runCli(args, { home: peer.home });
const refusal = async (peer: Peer, ...args: string[]) => {
  const { code, stdout } = await cli(peer, ...args, "--json");
  return { code, body: JSON.parse(stdout) as Record<string, unknown> };
};
const rowsOf = async (peer: Peer) => (await peer.outbox()).map((row) => row.client_message_id);

describe("with the broker connected", () => {
  test("a topic, queue or key that is not there is refused with the next step, and its id is free afterwards", async () => {
    for (const [to, next] of [
      ["#builds", "claudemesh topic create builds"],
      ["queue:jobs", "claudemesh queue create jobs"],
      [`dm:${"ab".repeat(32)}`, "claudemesh mesh members"],
    ] as const) {
      const { code, body } = await refusal(alice, "send", to, "hello", "--id", "first");
      expect([code, body.error]).toEqual([5, "destination_not_found"]);
      expect(body.message).toContain(next);
    }
    expect(await rowsOf(alice)).toEqual([]);
    await runJson(["topic", "create", "builds"], { home: bob.home });
    const sent = await runJson<object>(["send", "#builds", "hello", "--id", "first"], { home: alice.home });
    expect(sent).toMatchObject({ duplicate: false, subscribers: 0 });
  });

  test("a topic without other subscribers is reported, by send and by status, and delivery is not waited for", async () => {
    const sent = await cli(alice, "send", "#builds", "anyone?", "--id", "lonely", "--wait", "delivered");
    expect(sent.code).toBe(1);
    expect(sent.stdout).toContain("Nobody else is subscribed");
    expect((await cli(alice, "status", "lonely")).stdout).toContain("reaches no one");
    await runJson(["topic", "subscribe", "builds"], { home: bob.home });
    const second = await until("the subscription is seen", async () => {
      const { stdout } = await cli(alice, "send", "#builds", "hello", "--json");
      const body = JSON.parse(stdout) as { subscribers?: number };
      return body.subscribers === undefined ? body : undefined;
    });
    expect(second).not.toHaveProperty("subscribers");
  });

  test("--wait ends when the message is as far as it should be", async () => {
    const delivered = await cli(alice, "send", "@bob", "hello", "--id", "w1", "--wait", "delivered", "--json");
    expect(delivered.code).toBe(0);
    expect(JSON.parse(delivered.stdout)).toMatchObject({
      client_message_id: "w1",
      wait: { stage: "delivered", outcome: "reached", state: "delivered" },
    });
    const stored = await cli(alice, "send", "#builds", "hello", "--id", "w2", "--wait", "stored");
    expect([stored.code, stored.stdout]).toEqual([0, expect.stringMatching(/^w2 {2}(stored|delivered)/)]);
    await runJson(["topic", "create", "unread"], { home: alice.home });
    const unread = await cli(alice, "send", "#unread", "anyone?", "--wait", "stored");
    expect([unread.code, unread.stdout]).toEqual([0, expect.stringContaining("Nobody else is subscribed")]);
    const later = await cli(alice, "send", "@bob", "x", "--wait", "handled");
    expect([later.code, later.stderr]).toEqual([2, expect.stringContaining("wait for stored or delivered")]);
    const alone = await cli(alice, "send", "@bob", "x", "--timeout", "5s");
    expect([alone.code, alone.stderr]).toEqual([2, expect.stringContaining("--wait")]);
  });

  test("a topic that was deleted, and a member who was revoked, are refused at the next send", async () => {
    await runJson(["send", "@carol", "hello", "--id", "c1"], { home: alice.home });
    await runJson(["topic", "create", "short"], { home: alice.home });
    await runJson(["send", "#short", "hello", "--id", "s1"], { home: bob.home });
    await runJson(["mesh", "revoke", carol.pubkey], { home: alice.home });
    await until("carol is refused", async () => {
      const { code, body } = await refusal(bob, "send", `dm:${carol.pubkey}`, "hello");
      return code === 5 && body.error === "destination_not_found" ? true : undefined;
    });
    expect((await refusal(bob, "send", "@carol", "hello")).body.error).toBe("destination_not_found");
  });
});

describe("a former member's daemon", () => {
  test("refuses new sends, and every command says why, also after a restart; what is known is answered", async () => {
    const ended = () =>
      until("carol knows", async () => {
        const { body } = await carol.client.health();
        return (body as { membership?: { state: string } }).membership?.state === "ended" || undefined;
      });
    const expectNotice = async () => {
      const { code, body } = await refusal(carol, "send", "@bob", "hello");
      expect([code, body.error]).toEqual([1, "membership_ended"]);
      expect(body.message).toContain("claudemesh daemon remint");
      for (const command of [["inbox"], ["daemon", "status"], ["status", "none"], ["peers"]]) {
        expect((await cli(carol, ...command)).stderr).toContain("removed from acme");
      }
      expect((await cli(carol, "doctor")).stdout).toContain("This member was removed from the mesh");
    };
    await ended();
    await expectNotice();
    // This one asks the broker itself.
    const direct = await refusal(carol, "mesh", "members");
    expect([direct.code, direct.body.error]).toEqual([1, "membership_ended"]);
    await carol.kill("SIGTERM");
    // No broker is there to say it again.
    await world.broker.kill("SIGTERM");
    await carol.start();
    await ended();
    await expectNotice();
    await world.startBroker();
    await Promise.all([alice, bob].map(untilOnline));
  });
});

describe("with the broker away", () => {
  test("a send is queued and says so; once it is back, what cannot arrive dies, with advice, and can be let go", async () => {
    await world.whileBrokerIsAway(async () => {
      const sent = await cli(alice, "send", "#nowhere", "hello", "--id", "dead-1");
      expect(sent.stdout).toContain("The broker is away");
      const waited = await cli(alice, "send", "#nowhere", "x", "--id", "dead-2", "--wait", "stored", "--timeout", "1s");
      expect([waited.code, waited.stderr]).toEqual([7, expect.stringContaining("claudemesh status dead-2")]);
    });
    await until("both rows are dead", async () => {
      const rows = await alice.outbox();
      return rows.filter((row) => row.status === "dead").length === 2 || undefined;
    });
    const { stdout } = await cli(alice, "status", "dead-1");
    expect(stdout).toMatch(/topic create nowhere.*requeue dead-1.*dismiss dead-1/);
    expect((await cli(alice, "doctor")).stdout).toContain("2 rows are dead");
    for (const id of ["dead-1", "dead-2"]) {
      const dismissed = await runJson<object>(["daemon", "outbox", "dismiss", id, "--why", "a typo"], {
        home: alice.home,
      });
      expect(dismissed).toMatchObject({ client_message_id: id, status: "dead", dismissed_why: "a typo" });
    }
    expect((await cli(alice, "doctor")).stdout).not.toContain("rows are dead");
    expect((await cli(alice, "status", "dead-1")).stdout).toContain("It was dismissed: a typo");
    const { body } = await alice.client.health();
    expect(body).toMatchObject({ outbox: { dead: 0, dismissed: 2 } });
    const again = await refusal(alice, "daemon", "outbox", "dismiss", "first", "--why", "x");
    expect([again.code, again.body.error]).toEqual([4, "not_dismissible"]);
    const { body: audit } = await alice.client.audit();
    expect(audit).toMatchObject({
      balanced: true,
      layers: expect.arrayContaining([
        expect.objectContaining({ layer: "outbox", classes: expect.objectContaining({ dead_dismissed: 2 }) }),
      ]),
    });
  });
});
