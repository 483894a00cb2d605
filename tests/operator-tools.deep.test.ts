// The commands for the operator of a host, as an operator runs them: doctor, accept-host, remint, backup, recover.
import { chmodSync, cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runCli, runJson } from "./support/process.ts";
import { type Peer, until, World } from "./support/world.ts";

type Check = { readonly code?: string; readonly check: string; readonly status: string; readonly fix?: string };

let world: World;
let alice: Peer;
let bob: Peer;

beforeEach(async () => {
  world = new World();
  [alice, bob] = await world.startWithPair();
});
afterEach(() => world.end());

const invite = async () => (await runJson<{ invite: string }>(["mesh", "invite"], { home: alice.home })).invite;
const inboxOf = (peer: Peer, body: string) =>
  until(`${peer.name} has received ${body}`, async () => (await peer.inbox()).some((item) => item.body === body));

/** As if the home had been copied from another machine. */
function pretendOtherHost(peer: Peer): void {
  const path = join(peer.folder, "host_fingerprint.json");
  const record = JSON.parse(readFileSync(path, "utf8"));
  writeFileSync(path, JSON.stringify({ ...record, host_id_sha256: "0".repeat(64), mac_sha256: "1".repeat(64) }));
}

async function examine(peer: Peer): Promise<{ code: number; wrong: Check[] }> {
  const { code, stdout } = await runCli(["doctor", "--json"], { home: peer.home });
  const { checks } = JSON.parse(stdout) as { checks: Check[] };
  return { code, wrong: checks.filter(({ status }) => status !== "ok") };
}

describe("claudemesh doctor", () => {
  test("finds nothing wrong with a mesh that works, and names what is, with the command that helps", async () => {
    expect(await examine(bob)).toMatchObject({
      code: 1,
      wrong: [{ check: "daemon", fix: "claudemesh daemon up --mesh acme" }],
    });
    await bob.start();
    await until("bob is connected", async () => (await examine(bob)).code === 0 || undefined);
    expect((await examine(bob)).wrong).toEqual([]);

    chmodSync(join(bob.folder, "keypair.json"), 0o644);
    const opened = await examine(bob);
    expect(opened.code).toBe(1);
    expect(opened.wrong).toMatchObject([
      { check: "files", fix: expect.stringMatching(/^chmod 600 .*keypair\.json$/) },
      { check: "keys", status: "fail" },
    ]);
    chmodSync(join(bob.folder, "keypair.json"), 0o600);

    await world.broker.kill();
    const alone = await until("bob knows that the broker is away", async () => {
      const { wrong } = await examine(bob);
      return wrong.some(({ code }) => code === "broker_away") ? wrong : undefined;
    });
    expect(alone.map(({ check }) => check)).toEqual(["broker", "broker away"]);

    const people = await runCli(["doctor"], { home: bob.home });
    expect(people.code).toBe(1);
    expect(people.stdout).toMatch(/What to do:\n {2}broker: /);
  });
});

describe("a home that has come to another host", () => {
  test("refuses to start and says what to do; accept-host keeps the keys", async () => {
    await bob.start();
    await bob.kill("SIGTERM");
    pretendOtherHost(bob);
    const refused = await runCli(["daemon", "up", "--foreground", "--json"], { home: bob.home });
    expect(refused.code).toBe(1);
    expect(JSON.parse(refused.stdout)).toMatchObject({ error: "host_changed" });
    expect(refused.stderr).toContain("claudemesh daemon accept-host --mesh acme");
    expect((await examine(bob)).wrong.map(({ check }) => check)).toEqual(["host", "daemon"]);

    expect(await runJson(["daemon", "accept-host"], { home: bob.home })).toMatchObject({ was: "changed" });
    await bob.start();
    const running = await runCli(["daemon", "accept-host", "--json"], { home: bob.home });
    expect(running.code).toBe(1);
    expect(JSON.parse(running.stdout)).toMatchObject({ error: "daemon_running" });
  });

  test("becomes a member of its own by remint, while the original goes on", async () => {
    await bob.start();
    await bob.kill("SIGTERM");
    const copyHome = join(world.folder, "copy");
    cpSync(bob.home, copyHome, { recursive: true });
    const args = ["daemon", "remint", "--invite", await invite(), "--name", "bob-2"];
    const reminted = await runJson<{ new_pubkey: string; old_pubkey: string }>(args, { home: copyHome });
    expect(reminted.old_pubkey).toBe(bob.pubkey);
    expect(reminted.new_pubkey).not.toBe(bob.pubkey);

    await bob.start();
    await runJson(["daemon", "up"], { home: copyHome });
    try {
      await alice.start();
      await runJson(["send", "@bob-2", "to the new one"], { home: alice.home });
      await runJson(["send", "@bob", "to the old one"], { home: alice.home });
      await inboxOf(bob, "to the old one");
      await until("the copy has its message", async () => {
        const { items } = await runJson<{ items: { body: string }[] }>(["inbox"], { home: copyHome });
        return items.some(({ body }) => body === "to the new one");
      });
      const { items } = await runJson<{ items: { body: string }[] }>(["inbox"], { home: copyHome });
      expect(items.map(({ body }) => body)).toEqual(["to the new one"]);
    } finally {
      await runCli(["daemon", "down"], { home: copyHome });
    }
  });

  test("keeps its keys while rows are unsettled, and needs an invite for new ones", async () => {
    await world.broker.kill();
    await bob.start();
    await runJson(["send", "#general", "waits"], { home: bob.home });
    await bob.kill("SIGTERM");
    await world.startBroker();
    expect((await runCli(["daemon", "remint"], { home: bob.home })).code).toBe(2);
    const line = await invite();
    const refused = await runCli(["daemon", "remint", "--invite", line, "--json"], { home: bob.home });
    expect(refused.code).toBe(1);
    expect(JSON.parse(refused.stdout)).toMatchObject({ error: "outbox_unsettled", pending: 1 });
    expect(readdirSync(bob.folder).filter((name) => name.startsWith("keypair"))).toEqual(["keypair.json"]);
  });
});

describe("claudemesh daemon backup", () => {
  test("is taken while the daemon runs; put back, nothing is lost and nothing lands twice", async () => {
    await alice.start();
    await bob.start();
    await runJson(["send", "@bob", "before", "--id", "before"], { home: alice.home });
    await inboxOf(bob, "before");
    const folder = join(world.folder, "backup");
    expect(await runJson(["daemon", "backup", folder], { home: alice.home })).toMatchObject({ outbox_rows: 1 });
    expect((await runCli(["daemon", "backup", folder], { home: alice.home })).code).toBe(1);
    expect(readdirSync(folder)).not.toContain("keypair.json");
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    await runJson(["send", "@bob", "after", "--id", "after"], { home: alice.home });
    await inboxOf(bob, "after");

    await alice.kill("SIGTERM");
    for (const name of readdirSync(alice.folder)) {
      if (/^(outbox|inbox)\.db/.test(name)) rmSync(join(alice.folder, name));
    }
    for (const name of ["outbox.db", "inbox.db"]) cpSync(join(folder, name), join(alice.folder, name));
    await alice.start();
    const again = await runJson<{ status: string }>(["send", "@bob", "after", "--id", "after"], { home: alice.home });
    expect(again.status).not.toBe("done");
    await until("the broker has answered that it knows it", async () => {
      const [row] = (await alice.outbox()).filter((each) => each.client_message_id === "after");
      return row?.status === "done" || undefined;
    });
    await runJson(["send", "@bob", "last"], { home: alice.home });
    await inboxOf(bob, "last");
    expect((await bob.inbox()).map(({ body }) => body)).toEqual(["before", "after", "last"]);
  });
});

describe("claudemesh daemon recover", () => {
  test("brings a damaged outbox back to work, and what was to be sent arrives once", async () => {
    await world.broker.kill();
    await alice.start();
    for (let n = 0; n < 30; n++) {
      await alice.client.send({
        to: `dm:${bob.pubkey}`,
        message: `${n} ${"x".repeat(1_500)}`,
        client_message_id: `m-${n}`,
      });
    }
    await alice.kill("SIGTERM");
    const path = join(alice.folder, "outbox.db");
    const bytes = readFileSync(path);
    const leaves = Array.from({ length: bytes.length / 4_096 }, (_, page) => page).filter(
      (page) =>
        page > 0 && bytes[page * 4_096] === 13 && bytes.subarray(page * 4_096, (page + 1) * 4_096).includes("m-1"),
    );
    const [ruined = 0] = leaves.slice(Math.floor(leaves.length / 2));
    bytes.fill(0x5a, ruined * 4_096, (ruined + 1) * 4_096);
    writeFileSync(path, bytes);

    const refused = await runCli(["daemon", "up", "--foreground"], { home: alice.home });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain("claudemesh daemon recover");
    expect((await examine(alice)).wrong).toContainEqual(
      expect.objectContaining({ check: "outbox", fix: "claudemesh daemon recover --mesh acme" }),
    );
    const recovered = await runJson<{ rows_read: number; rows_lost: number; lost_client_message_ids: string[] }>(
      ["daemon", "recover"],
      { home: alice.home },
    );
    expect(recovered.rows_lost).toBeGreaterThan(0);
    expect(recovered.rows_read).toBe(30 - recovered.rows_lost);

    await world.startBroker();
    await alice.start();
    await bob.start();
    await until("bob has what was read", async () => (await bob.inbox()).length === recovered.rows_read || undefined);
    // A caller that was answered before sends again what is lost, under the same id.
    for (const id of recovered.lost_client_message_ids) {
      const n = id.slice(2);
      const message = `${n} ${"x".repeat(1_500)}`;
      const { status } = await alice.client.send({ to: `dm:${bob.pubkey}`, message, client_message_id: id });
      expect(status).toBe(202);
    }
    await until("bob has all", async () => (await bob.inbox()).length === 30 || undefined);
    expect(new Set((await bob.inbox()).map((item) => item.client_message_id)).size).toBe(30);
    expect(await runJson(["daemon", "recover"], { home: bob.home }).catch((error: Error) => error.message)).toMatch(
      /is running/,
    );
  });
});
