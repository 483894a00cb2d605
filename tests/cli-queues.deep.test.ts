// A queue from a shell: what the commands print is what the broker answered, and all of it.
import { afterAll, beforeAll, expect, test } from "vitest";
import { runCli, runJson } from "./support/process.ts";
import { type Peer, until, World } from "./support/world.ts";

type Lease = { readonly lease_token: string | null; readonly items: readonly { readonly broker_message_id: string }[] };

const world = new World();
let alice: Peer;

beforeAll(async () => {
  await world.startBroker();
  alice = await world.addPeer("alice");
  await alice.start();
});

afterAll(() => world.end());

const print = async (...args: readonly string[]) => {
  const { code, stdout, stderr } = await runCli(["queue", ...args], { home: alice.home });
  expect(code, stderr).toBe(0);
  return stdout.trim();
};

/** A queue whose messages have one delivery, with these in it. */
async function fill(queue: string, bodies: readonly string[]): Promise<void> {
  await print("create", queue, "--max-deliveries", "1");
  for (const [index, message] of bodies.entries()) {
    const request = { to: `queue:${queue}`, message, client_message_id: `${queue}-${index}` };
    expect(await alice.client.send(request)).toMatchObject({ status: 202 });
  }
  await until("the broker has all of them", async () => (await alice.outbox()).every((row) => row.status === "done"));
}

async function lease(queue: string): Promise<{ readonly token: string; readonly ids: readonly string[] }> {
  const leased = await runJson<Lease>(["queue", "lease", queue, "--max", "100"], { home: alice.home });
  return { token: leased.lease_token ?? "", ids: leased.items.map((item) => item.broker_message_id) };
}

test("a settlement and a revival say what became of each message, not what was asked", async () => {
  await fill("builds", ["one", "two"]);
  const { token, ids } = await lease("builds");
  const [one = "", two = ""] = ids;
  expect(await print("ack", "builds", one, "--token", token)).toBe("1 message is done.");
  expect(await print("nack", "builds", one, two, "--token", token)).toBe(
    "1 message is given back. 1 message was acknowledged with this token before: that stands.",
  );
  expect(await print("revive", "builds", one, two)).toBe(
    "1 message waits in builds again. 1 message was not parked: nothing changed there.",
  );
  expect(await print("revive", "builds", two)).toBe("1 message was not parked: nothing changed there.");
});

test("parked messages are listed to the end, however many answers they take", async () => {
  const bodies = Array.from({ length: 24 }, (_, n) => `${n % 10}`.repeat(60_000));
  await fill("large", bodies);
  const all: string[] = [];
  for (let { token, ids } = await lease("large"); ids.length > 0; { token, ids } = await lease("large")) {
    await print("nack", "large", ...ids, "--token", token);
    all.push(...ids);
  }
  expect(all).toHaveLength(bodies.length);
  const parked = await runJson<Lease>(["queue", "parked", "large"], { home: alice.home });
  expect(parked.items.map((item) => item.broker_message_id)).toEqual(all);
  const table = await print("parked", "large");
  for (const id of all) expect(table).toContain(id);
});
