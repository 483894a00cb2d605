import { type Space, type SpaceClient, spacesOver } from "@claudemesh/client/space";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CuttableWire } from "./support/cuttable-wire.ts";
import { SpaceServer } from "./support/space-server.ts";

const alice = "a".repeat(64);
const bob = "b".repeat(64);
const quick = { sleep: () => new Promise<void>((resolve) => setImmediate(resolve)), random: () => 0 };

let server: SpaceServer;
const clients: SpaceClient[] = [];

beforeEach(async () => {
  server = await SpaceServer.start([alice, bob]);
});
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  server.stop();
  expect(server.failures).toEqual([]);
});

async function open(member: string): Promise<{ space: Space; wire: CuttableWire }> {
  const wire = new CuttableWire(server, member);
  const client = spacesOver(wire, quick);
  clients.push(client);
  return { space: await client.space("plan"), wire };
}

const task = (owner: string | null) => ({ value: { title: "paint", owner } });

describe("a replica", () => {
  it("applies a transaction at once, tells of it synchronously, and resolves with the commit's seq", async () => {
    const { space } = await open(alice);
    await space.get("task:1");
    const heard: unknown[] = [];
    space.subscribe("task:1", (document, cause) => heard.push([cause, document]));
    const result = space.transact((tx) => tx.set("task:1", task(null)));
    expect(heard).toEqual([["commit", task(null)]]);
    expect(space.peek("task:1")).toEqual(task(null));
    expect(await result).toMatchObject({ seq: 1, localSeq: 1, attempts: 1, replayed: false });
    await server.settle();
    expect(heard).toHaveLength(1);
    expect(await server.documents()).toEqual({ "task:1": task(null) });
  });

  it("loads what a transaction asks for and runs it again", async () => {
    const { space } = await open(alice);
    await space.transact((tx) => tx.set("task:1", task("bob")));
    const { space: other } = await open(bob);
    const { value } = await other.transact((tx) => tx.get<ReturnType<typeof task>>("task:1")?.value.owner);
    expect(value).toBe("bob");
  });

  it("integrates what others commit, and is silent where own work shadows it", async () => {
    const { space: a } = await open(alice);
    const { space: b } = await open(bob);
    await a.transact((tx) => tx.set("task:1", task(null)));
    await b.get("task:1");
    const heard: unknown[] = [];
    b.subscribe("task:1", (document, cause) => heard.push([cause, document?.value]));
    await a.transact((tx) => tx.patch("task:1", [{ op: "replace", path: "/value/owner", value: "alice" }]));
    await server.settle();
    await until(() => heard.length > 0);
    expect(heard).toEqual([["integrate", task("alice").value]]);
  });

  it("builds anew after a conflict, on what is there by then", async () => {
    const { space: a } = await open(alice);
    const { space: b } = await open(bob);
    await a.transact((tx) => tx.set("count:1", { value: { n: 0 } }));
    await Promise.all([a.get("count:1"), b.get("count:1")]);
    const add = (space: Space) =>
      space.transact((tx) => {
        const n = tx.get<{ value: { n: number } }>("count:1")?.value.n ?? 0;
        tx.patch("count:1", [{ op: "replace", path: "/value/n", value: n + 1 }]);
      });
    const results = await Promise.all([add(a), add(b), add(a), add(b)]);
    expect(await server.documents()).toEqual({ "count:1": { value: { n: 4 } } });
    expect(results.some(({ attempts }) => attempts > 1)).toBe(true);
  });
});

async function until(isDone: () => boolean): Promise<void> {
  for (let turns = 0; turns < 1_000 && !isDone(); turns++) await new Promise((resolve) => setImmediate(resolve));
}
