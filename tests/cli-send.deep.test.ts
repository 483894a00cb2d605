// `claudemesh send` with and without a daemon, against a real broker: directly only when connecting to the daemon
// fails, sealed all the same, with one identity whichever way it goes; and never a second way once a daemon has it.
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { runCli, runJson } from "./support/process.ts";
import { type Peer, until, World } from "./support/world.ts";

type Stored = {
  readonly client_message_id: string;
  readonly broker_message_id: string;
  readonly status: string;
  readonly duplicate: boolean;
  readonly via?: string;
};

const world = new World();
let alice: Peer;
let bob: Peer;

beforeAll(async () => {
  [alice, bob] = await world.startWithPair();
});
afterEach(() => alice.kill());
afterAll(() => world.end());

/** Every text that the peer received under this id. */
const received = async (peer: Peer, id: string) =>
  until(`${peer.name} has ${id}`, async () => {
    const bodies = (await peer.inbox()).filter((item) => item.client_message_id === id).map((item) => item.body);
    return bodies.length > 0 ? bodies : undefined;
  });

/** How often the broker has accepted this id. */
function timesAccepted(id: string): number {
  const db = new DatabaseSync(world.storePath, { readOnly: true });
  try {
    return Number(db.prepare("SELECT count(*) AS n FROM message_history WHERE client_message_id = ?").get(id)?.n);
  } finally {
    db.close();
  }
}

/** Everything that the broker keeps, byte by byte. */
function brokerFiles(): Buffer {
  const names = readdirSync(world.folder).filter((name) => name.startsWith(basename(world.storePath)));
  return Buffer.concat(names.map((name) => readFileSync(join(world.folder, name))));
}

const asAlice = (...args: string[]) => runCli(["send", ...args, "--json"], { home: alice.home });
const sentByAlice = (...args: string[]) => runJson<Stored>(["send", ...args], { home: alice.home });

describe("without a daemon", () => {
  test("a direct message goes to the broker sealed, says so, and is readable once the recipient is up", async () => {
    const text = "a secret that no broker reads";
    const sent = await asAlice("@bob", text);
    expect(sent.code).toBe(0);
    expect(sent.stderr).toContain("directly");
    const stored = JSON.parse(sent.stdout) as Stored;
    const id = stored.client_message_id;
    expect(stored).toMatchObject({ status: "stored", via: "broker", duplicate: false });
    expect(timesAccepted(id)).toBe(1);
    expect(brokerFiles().includes(id)).toBe(true);
    expect(brokerFiles().includes(text)).toBe(false);
    await bob.start();
    expect(await received(bob, id)).toEqual([text]);
    const item = (await bob.inbox()).find((each) => each.client_message_id === id);
    expect(item?.sender_pubkey).toBe(alice.pubkey);
  });

  test("the same id again is a duplicate, and with other content a conflict", async () => {
    const args = ["@bob", "once", "--id", "direct-1", "--priority", "now", "--meta", '{"build":42}'];
    const first = await sentByAlice(...args);
    const again = await sentByAlice(...args);
    expect(first).toMatchObject({ client_message_id: "direct-1", duplicate: false });
    expect(again).toMatchObject({ broker_message_id: first.broker_message_id, duplicate: true });
    const other = await asAlice("@bob", "another text", "--id", "direct-1");
    expect(other.code).toBe(4);
    expect(JSON.parse(other.stdout)).toMatchObject({ error: "idempotency_key_reused" });
    expect(timesAccepted("direct-1")).toBe(1);
  });

  test("one id is one message, whether the daemon or the command carried it", async () => {
    const byDaemon = ["@bob", "by the daemon first", "--id", "both-1"];
    await alice.start();
    await sentByAlice(...byDaemon);
    await until("the broker has it", () => timesAccepted("both-1") === 1);
    await alice.kill("SIGTERM");
    expect(await sentByAlice(...byDaemon)).toMatchObject({ via: "broker", duplicate: true });

    const direct = ["@bob", "directly first", "--id", "both-2"];
    const stored = await sentByAlice(...direct);
    expect(stored).toMatchObject({ via: "broker", duplicate: false });
    await alice.start();
    expect((await sentByAlice(...direct)).via).toBeUndefined();
    const row = await until("the outbox row is done", async () =>
      (await alice.outbox()).find((each) => each.client_message_id === "both-2" && each.status === "done"),
    );
    expect(row.broker_message_id).toBe(stored.broker_message_id);
    expect(await received(bob, "both-2")).toEqual(["directly first"]);
    expect([timesAccepted("both-1"), timesAccepted("both-2")]).toEqual([1, 1]);
  });

  test("topics and oneself are reached too", async () => {
    await runJson(["topic", "create", "builds"], { home: alice.home });
    await runJson(["topic", "subscribe", "builds"], { home: bob.home });
    await sentByAlice("#builds", "green", "--id", "topic-1");
    await sentByAlice("@self", "note", "--id", "self-1");
    await alice.start();
    expect(await received(bob, "topic-1")).toEqual(["green"]);
    expect(await received(alice, "self-1")).toEqual(["note"]);
  });

  test("who is not there is not found, and what is no id is refused", async () => {
    const refused = await asAlice("@nobody", "x", "--id", "nobody-1");
    expect(refused.code).toBe(5);
    expect(JSON.parse(refused.stdout)).toMatchObject({ error: "destination_not_found" });
    const bad = await asAlice("@bob", "x", "--id", "has space");
    expect(bad.code).toBe(2);
    expect(JSON.parse(bad.stdout)).toMatchObject({ error: "invalid_client_message_id" });
    expect([timesAccepted("nobody-1"), timesAccepted("has space")]).toEqual([0, 0]);
  });

  test("and without a broker it is unreachable: exit code 3", async () => {
    await world.broker.kill("SIGTERM");
    const sent = await asAlice("@bob", "x");
    expect(sent.code).toBe(3);
    expect(JSON.parse(sent.stdout)).toMatchObject({ error: "broker_unreachable", retryable: true });
    await world.startBroker();
  });

  test("a broker that dies before it answers leaves a doubt with a name: the same id again settles it", async () => {
    await world.broker.kill("SIGTERM");
    await world.startBroker({ failpoints: "accept.after_commit=crash" });
    const sent = await asAlice("@bob", "in doubt");
    expect(sent.code).toBe(3);
    const { client_message_id: id, ...doubt } = JSON.parse(sent.stdout) as { client_message_id: string };
    expect(doubt).toMatchObject({ error: "broker_unreachable", sent: true });
    expect(sent.stderr).toContain(`--id ${id}`);
    await world.startBroker();
    expect((await sentByAlice("@bob", "in doubt", "--id", id)).duplicate).toBe(true);
    expect(timesAccepted(id)).toBe(1);
  });
});

describe("once a daemon has been written to", () => {
  test.for(["outbox.before_commit", "outbox.after_commit"])(
    "there is no other way, even if it dies at %s: exit code 3, nothing sent directly, and the same id settles it",
    async (point) => {
      await alice.start({ failpoints: `${point}=crash` });
      const sent = await asAlice("@bob", "one way only");
      expect(sent.code).toBe(3);
      expect((await alice.process.exited).signal).toBe("SIGKILL");
      const { client_message_id: id, ...doubt } = JSON.parse(sent.stdout) as { client_message_id: string };
      expect(doubt).toMatchObject({ error: "daemon_unreachable", sent: true, retryable: true });
      expect(sent.stderr).toContain(`--id ${id}`);
      expect(sent.stderr).not.toContain("directly");
      expect(timesAccepted(id)).toBe(0);

      await alice.start();
      const again = await sentByAlice("@bob", "one way only", "--id", id);
      expect(again.duplicate).toBe(point === "outbox.after_commit");
      expect(await received(bob, id)).toEqual(["one way only"]);
      expect(timesAccepted(id)).toBe(1);
    },
  );
});
