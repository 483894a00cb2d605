// The replica in a real browser: its sources served from here, connected to a real broker by the browser's own socket,
// with a key that WebCrypto holds. It works beside a replica in Node, loses its connection, and comes back. Needs
// Chromium; without it the test says so, and fails where every test must run.
import { spawn, spawnSync } from "node:child_process";
import { connectSpaces } from "@claudemesh/client/space";
import { decodeInvite } from "@claudemesh/protocol/wire/invite";
import { describe, expect, onTestFinished, test } from "vitest";
import { callBroker, createTestMesh, makeTemporaryFolder, startTestBroker } from "./support/broker-harness.ts";
import { SourceServer } from "./support/source-server.ts";

const browsers = ["chromium", "chromium-browser", "google-chrome"];
const browser = browsers.find((name) => spawnSync(name, ["--version"]).status === 0);
if (browser === undefined) {
  const message = "skipped: tests/browser-space.deep.test.ts needs chromium";
  if (process.env.CLAUDEMESH_REQUIRE_SERVICES === "1") throw new Error(message);
  process.stdout.write(`${message}\n`);
}

/** Runs in the browser. What it finds is posted, and judged here. */
const page = `<!doctype html><script type="module">
import { connectSpaces, webCryptoIdentity } from "/packages/client/src/space/browser.ts";
import { encodeHex } from "/packages/protocol/src/encoding/hex.ts";
import { joinBytes } from "/packages/protocol/src/wire/signing.ts";

const post = async (path, body) => (await fetch(path, { method: "POST", body: JSON.stringify(body) })).json();
const sockets = [];
globalThis.WebSocket = class extends WebSocket {
  constructor(url) {
    super(url);
    sockets.push(this);
  }
};
try {
  const { privateKey, publicKey } = await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"]);
  const pubkey = encodeHex(new Uint8Array(await crypto.subtle.exportKey("raw", publicKey)));
  const { url, meshId, secret } = await post("/invite", {});
  const identity = webCryptoIdentity(meshId, pubkey, privateKey);
  const signature = await identity.sign(joinBytes({ mesh_id: meshId, secret, name: "page", pubkey }));
  await post("/join", { secret, name: "page", pubkey, signature: encodeHex(signature) });
  const client = connectSpaces({ url, identity, agent: "page/1", connectBackoff: { minMs: 1, maxMs: 50 } });
  const space = await client.space("plan");
  const heard = [];
  const answered = new Promise((resolve) => space.subscribe("reply:1", (document) => document && resolve(document)));
  await space.get("page:1");
  space.subscribe("page:1", (document, cause) => heard.push([cause, document.value.n]));
  const first = await space.transact((tx) => tx.set("page:1", { value: { n: 1, bytes: new Uint8Array([7]) } }));
  const reply = await answered;
  const offline = space.transact((tx) => {
    const n = tx.get("page:1").value.n;
    tx.patch("page:1", [{ op: "replace", path: "/value/n", value: n + 1 }]);
  });
  sockets.at(-1).close();
  const second = await offline;
  await post("/result", { heard, reply: reply.value, attempts: [first.attempts, second.attempts], sockets: sockets.length });
} catch (error) {
  await post("/result", { error: String(error?.stack ?? error) });
}
</script>`;

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
