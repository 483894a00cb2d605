// The replica in a real browser: its sources served from here, connected to a real broker by the browser's own socket,
// with a key that WebCrypto holds. It works beside a replica in Node, loses its connection, and comes back. Needs
// Chromium; without it the test says so, and fails where every test must run.
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { connectSpaces } from "@claudemesh/client/space";
import { decodeInvite } from "@claudemesh/protocol/wire/invite";
import { describe, expect, onTestFinished, test } from "vitest";
import { callBroker, createTestMesh, makeTemporaryFolder, startTestBroker } from "./support/broker-harness.ts";
import { SourceServer } from "./support/source-server.ts";

const browsers = ["chromium", "chromium-browser", "google-chrome"];
const findBrowser = () => browsers.find((name) => spawnSync(name, ["--version"]).status === 0);

/** Debian's package, where this machine is ours to change: as root, and in a run that must skip nothing. */
function installBrowser(): string | undefined {
  if (process.env.CLAUDEMESH_REQUIRE_SERVICES !== "1" || process.getuid?.() !== 0) return undefined;
  const apt = ["install", "--yes", "--no-install-recommends", "chromium"];
  for (const args of [["update"], apt]) spawnSync("apt-get", args, { stdio: "ignore", timeout: 180_000 });
  return findBrowser();
}

const browser = findBrowser() ?? installBrowser();
if (browser === undefined) {
  const message = "skipped: tests/browser-space.deep.test.ts needs chromium";
  if (process.env.CLAUDEMESH_REQUIRE_SERVICES === "1") throw new Error(message);
  process.stdout.write(`${message}\n`);
}

const page = readFileSync(new URL("./support/space-page.html", import.meta.url), "utf8");

describe.runIf(browser !== undefined)("a replica in a browser", () => {
  test("works beside one in Node, and comes back after its connection broke", { timeout: 60_000 }, async () => {
    const broker = await startTestBroker();
    const owner = await createTestMesh(broker);
    const sign = (bytes: Uint8Array) => new Uint8Array(Buffer.from(owner.keys.sign(bytes), "hex"));
    const identity = { meshId: owner.meshId, publicKey: owner.pubkey, sign };
    const client = connectSpaces({ url: owner.url, identity, agent: "browser-test/1" });
    onTestFinished(() => client.close());
    const space = await client.space("plan", { create: true });
    space.subscribe("page:1", (document) => {
      if (document === undefined || space.peek("reply:1") !== undefined) return;
      void space.transact((tx) => tx.set("reply:1", { value: "seen" }));
    });

    const { promise: result, resolve } = Promise.withResolvers<unknown>();
    const invited = await owner.call("POST", "/invites");
    const { mesh_id: meshId, secret } = decodeInvite(String(invited.body.invite));
    const server = await SourceServer.start(page, async (path, body) => {
      if (path === "/invite") return { url: owner.url, meshId, secret };
      if (path === "/join") return (await callBroker(owner.url, "POST", `/v1/meshes/${meshId}/join`, { body })).body;
      resolve(body);
      return undefined;
    });
    onTestFinished(() => server.stop());
    const flags = ["--headless", "--no-sandbox", "--disable-gpu", `--user-data-dir=${makeTemporaryFolder()}`];
    const process = spawn(browser ?? "", [...flags, server.url], { stdio: "ignore" });
    onTestFinished(async () => {
      process.kill("SIGKILL");
      await new Promise((ended) =>
        process.exitCode === null && process.signalCode === null ? process.once("exit", ended) : ended(0),
      );
    });
    expect(await result).toEqual({
      heard: [
        ["commit", 1],
        ["commit", 2],
      ],
      reply: "seen",
      attempts: [1, 1],
      sockets: 2,
    });
    expect((await space.query({ ids: ["page:1"] })).items).toMatchObject([
      { document: { value: { n: 2, bytes: new Uint8Array([7]) } } },
    ]);
  });
});
