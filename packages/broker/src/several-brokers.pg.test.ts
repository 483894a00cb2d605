// Brokers on one PostgreSQL tell clients of each other: in the answer to the hello, when the list changes, and in invites.
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { createTestMesh, makeTemporaryFolder, startTestBroker } from "../../../tests/support/broker-harness.ts";
import { createTestDatabase, findRedis } from "../../../tests/support/services.ts";

const database = await createTestDatabase("several");
const redis = database === undefined ? undefined : await findRedis();
afterAll(async () => {
  await redis?.stop?.();
  await database?.drop();
});

const [one, two] = ["https://one.example.org", "https://two.example.org"];

describe.skipIf(redis === undefined)("brokers on one PostgreSQL", () => {
  test("tell of each other, and of one that ends", async () => {
    const folder = makeTemporaryFolder();
    const start = (publicUrl: string) =>
      startTestBroker({
        folder,
        flags: {
          store: database?.url ?? "",
          redis: redis?.url ?? "",
          "admin-token-file": join(folder, "admin"),
          "public-url": publicUrl,
        },
      });
    const first = await start(one);
    const alice = await createTestMesh(first);
    const peer = await alice.connect("client");
    expect((await alice.call("GET", "/health")).body.brokers).toEqual([one]);
    const second = await start(two);
    const pushed = await peer.next((frame) => frame.type === "brokers_changed");
    expect(pushed).toEqual({ type: "brokers_changed", brokers: [one, two] });
    const other = await alice.connect("client");
    expect((await other.request("mesh.health")).body.brokers).toEqual([one, two]);
    await second.stop();
    expect(await peer.next((frame) => frame.type === "brokers_changed")).toMatchObject({ brokers: [one] });
  });
});
