// A home and the meshes that it belongs to: one name is one mesh, whatever a command says later.
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { meshPaths, readMeshConfig } from "@claudemesh/client/home";
import { describe, expect, test } from "vitest";
import { makeTemporaryFolder, readAdminToken, startTestBroker } from "../../../../tests/support/broker-harness.ts";
import { createMembership } from "./membership.ts";

type Broker = Awaited<ReturnType<typeof startTestBroker>>;

const create = (home: string, broker: Broker, more: { readonly url?: string; readonly ca?: string } = {}) =>
  createMembership({
    home,
    mesh: "acme",
    broker: more.url ?? broker.url,
    adminToken: readAdminToken(broker),
    name: "alice",
    ca: more.ca,
  });

describe("creating a mesh", () => {
  test("again is answered with the same mesh, whichever way the broker's address is written", async () => {
    const [home, broker] = [makeTemporaryFolder(), await startTestBroker()];
    const first = await create(home, broker);
    expect(await create(home, broker)).toEqual(first);
    expect(await create(home, broker, { url: `${broker.url.replace("http", "ws")}/` })).toEqual(first);
  });

  test("under the name of a mesh that the home has on another broker is refused, here and there unmade", async () => {
    const home = makeTemporaryFolder();
    const [first, second] = [await startTestBroker(), await startTestBroker()];
    const { mesh_id } = await create(home, first);
    const paths = meshPaths(home, "acme");
    const before = readFileSync(paths.config, "utf8");
    const ca = join(makeTemporaryFolder(), "absent.pem");
    const refusal = await create(home, second, { ca }).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: "exists_with_other_content", status: 409, details: { mesh: "acme" } });
    expect((refusal as Error).message).toMatch(/another name.*CLAUDEMESH_HOME/);
    expect(readFileSync(paths.config, "utf8")).toBe(before);
    // The name is still free there: another home gets a mesh of its own.
    expect((await create(makeTemporaryFolder(), second)).mesh_id).not.toBe(mesh_id);
  });

  test("that the broker answers with another mesh than the home knows is refused and leaves the home as it was", async () => {
    const [home, folder, broker] = [makeTemporaryFolder(), makeTemporaryFolder(), await startTestBroker()];
    await create(home, broker);
    const url = broker.url;
    await broker.stop();
    // The same address and key with an empty store behind it.
    copyFileSync(`${broker.storePath}.broker-key`, join(folder, "broker.db.broker-key"));
    const emptied = await startTestBroker({ folder, flags: { listen: new URL(url).host } });
    const paths = meshPaths(home, "acme");
    const before = readFileSync(paths.config, "utf8");
    const refusal = await create(home, emptied).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: "exists_with_other_content" });
    expect((refusal as Error).message).toContain("another name");
    expect(readFileSync(paths.config, "utf8")).toBe(before);
  });

  test("keeps the broker's key, and tells a broker with another one nothing", async () => {
    const [home, broker] = [makeTemporaryFolder(), await startTestBroker()];
    await create(home, broker);
    const paths = meshPaths(home, "acme");
    expect(readMeshConfig(paths).broker_key).toBe(broker.brokerKey);
    const before = readFileSync(paths.config, "utf8");
    await broker.stop();
    const other = await startTestBroker({ flags: { listen: new URL(broker.url).host } });
    await expect(create(home, other)).rejects.toMatchObject({
      code: "not_our_broker",
      details: { expected_key: broker.brokerKey, seen_key: other.brokerKey },
    });
    expect(readFileSync(paths.config, "utf8")).toBe(before);
  });

  test("in a home that has settings for the mesh already keeps them", async () => {
    const [home, broker] = [makeTemporaryFolder(), await startTestBroker()];
    const paths = meshPaths(home, "acme");
    mkdirSync(paths.dir, { recursive: true });
    writeFileSync(paths.config, "[outbox]\nmax_bytes = 5\n");
    const { mesh_id } = await create(home, broker);
    expect(readMeshConfig(paths).id).toBe(mesh_id);
    expect(readFileSync(paths.config, "utf8")).toContain("max_bytes = 5");
    expect(existsSync(paths.keypair)).toBe(true);
  });
});
