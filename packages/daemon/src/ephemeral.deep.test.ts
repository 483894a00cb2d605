import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ensureMeshDir, listMeshes, meshPaths } from "@claudemesh/client/home";
import { generateMemberKeys, signerOf, writeKeyFile } from "@claudemesh/client/keys";
import { encodeHex } from "@claudemesh/protocol/encoding/hex";
import { provePath } from "@claudemesh/protocol/wire/frames";
import { httpProofBytes } from "@claudemesh/protocol/wire/signing";
import { describe, expect, it, onTestFinished } from "vitest";
import type { EphemeralOrder } from "./ephemeral.ts";
import { ManualClock } from "./testing/manual-clock.ts";
import { settle } from "./testing/scripted-link.ts";
import { startTestDaemon, type TestHome, temporaryHome } from "./testing/test-daemon.ts";

const brokerKeys = generateMemberKeys();
const meshId = "01890000-0000-7000-8000-000000000000";
const hourMs = 3_600_000;

/** A broker that proves its key, lets every member in, and counts them. */
async function openBroker(): Promise<{ readonly order: EphemeralOrder; readonly joined: string[] }> {
  const joined: string[] = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += String(chunk);
    response.setHeader("content-type", "application/json");
    if (request.url === provePath) {
      const { nonce, mesh_id = "" } = JSON.parse(text) as { nonce: string; mesh_id?: string };
      response.end(JSON.stringify(prove(nonce, mesh_id)));
      return;
    }
    const { pubkey, name } = JSON.parse(text) as { pubkey: string; name: string };
    joined.push(pubkey);
    response.end(JSON.stringify({ mesh: "acme", mesh_id: meshId, member_pubkey: pubkey, name, role: "member" }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const broker = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const invite = { broker, mesh: "acme", mesh_id: meshId, secret: "cms_x" };
  return { order: { invite, name: "job-1", ttlMs: 2 * hourMs }, joined };
}

function prove(nonce: string, mesh_id: string) {
  const broker_key = brokerKeys.ed25519.public_key;
  return { broker_key, signature: encodeHex(signerOf(brokerKeys)(httpProofBytes({ nonce, mesh_id, broker_key }))) };
}

function emptyHome(): TestHome {
  const home = mkdtempSync(join(tmpdir(), "cm-"));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  return { home, paths: meshPaths(home, "acme"), keys: generateMemberKeys() };
}

const filesUnder = (folder: string): string[] => readdirSync(folder, { recursive: true }).map(String);
const dataFolders = (at: TestHome) => readdirSync(at.paths.dir).filter((name) => name.startsWith("ephemeral-"));

describe("an ephemeral daemon", () => {
  it("joins with keys of its own, and no file ever holds them", async () => {
    const at = emptyHome();
    const { order, joined } = await openBroker();
    const daemon = await startTestDaemon({ at, ephemeral: order });
    const { body } = await daemon.call("GET", "/v1/version");
    expect(joined).toEqual([body.member_pubkey]);
    await daemon.send({ to: "@self", message: "m" });
    expect(filesUnder(at.home).filter((name) => /keypair|host_fingerprint/.test(name))).toEqual([]);
    expect(listMeshes(at.home)).toEqual(["acme"]);
    expect((await daemon.call("GET", "/v1/health")).body.member.name).toBe("job-1");
  });

  it("keeps its data in a folder for its owner alone, and leaves none of it behind", async () => {
    const at = emptyHome();
    const { order } = await openBroker();
    const { daemon } = await startTestDaemon({ at, ephemeral: order });
    const [data = ""] = dataFolders(at);
    expect(statSync(join(at.paths.dir, data)).mode & 0o777).toBe(0o700);
    expect(readdirSync(join(at.paths.dir, data))).toEqual(expect.arrayContaining(["inbox.db", "outbox.db"]));
    expect(existsSync(at.paths.outboxDb)).toBe(false);
    await daemon.stop();
    expect(readdirSync(at.paths.dir).sort()).toEqual(["daemon.log", "last_run.json", "lock.db"]);
    expect(listMeshes(at.home)).toEqual([]);
    expect(await daemon.stopped).toMatchObject({ reason: "stopped", exitCode: 0 });
  });

  it("can be followed by another in the same home, which knows nothing of it", async () => {
    const at = emptyHome();
    const { order, joined } = await openBroker();
    await (await startTestDaemon({ at, ephemeral: order })).daemon.stop();
    const second = await startTestDaemon({ at, ephemeral: order });
    expect(new Set(joined).size).toBe(2);
    expect((await second.call("GET", "/v1/outbox")).body.items).toEqual([]);
  });

  it("ends when its time is over, not a moment before, and counts time that the machine slept", async () => {
    const clock = new ManualClock();
    const { order } = await openBroker();
    const { daemon } = await startTestDaemon({ at: emptyHome(), ephemeral: order, clock });
    let over = false;
    void daemon.stopped.then(() => {
      over = true;
    });
    clock.advance(2 * hourMs - 1);
    await settle();
    expect(over).toBe(false);
    clock.advance(1);
    expect(await daemon.stopped).toMatchObject({ reason: "ttl_over", exitCode: 0 });
  });

  it("says so, and fails, where accepted messages are lost with it", async () => {
    const { order } = await openBroker();
    const daemon = await startTestDaemon({ at: emptyHome(), ephemeral: order });
    await daemon.send({ to: "#general", message: "m" });
    await daemon.daemon.stop();
    expect(await daemon.daemon.stopped).toMatchObject({
      reason: "messages_discarded",
      exitCode: 1,
      message: expect.stringContaining("1 message "),
    });
  });

  it("waits a moment at its end for what is on its way", async () => {
    const { order } = await openBroker();
    const daemon = await startTestDaemon({ at: emptyHome(), ephemeral: order });
    daemon.link.goOnline();
    await daemon.send({ to: "#general", message: "m" });
    const frame = await daemon.link.requested("send");
    const stopping = daemon.daemon.stop();
    frame.answer(201, { broker_message_id: "b", history_id: 1, duplicate: false });
    await stopping;
    expect(await daemon.daemon.stopped).toMatchObject({ reason: "stopped", exitCode: 0 });
  });
});

describe("the home of an ephemeral daemon", () => {
  it("has its settings back afterwards, and they hold meanwhile", async () => {
    const at = emptyHome();
    ensureMeshDir(at.paths);
    const settings = "# ours\n[ipc]\nmax_in_flight = 5\n";
    writeFileSync(at.paths.config, settings);
    const { order } = await openBroker();
    const { daemon } = await startTestDaemon({ at, ephemeral: order });
    expect(readFileSync(at.paths.config, "utf8")).toContain("member_name");
    await daemon.stop();
    expect(readFileSync(at.paths.config, "utf8")).toBe(settings);
  });

  it("is put in order at the next start where the daemon was killed", async () => {
    const at = emptyHome();
    ensureMeshDir(at.paths);
    const settings = "[ipc]\nmax_in_flight = 5\n";
    const leftover = join(at.paths.dir, "ephemeral-00000000");
    mkdirSync(leftover);
    writeFileSync(join(leftover, "outbox.db"), "old");
    writeFileSync(join(leftover, "config.before"), settings);
    writeFileSync(at.paths.config, `${settings}[mesh]\nid = "old"\n`);
    const { order } = await openBroker();
    const { daemon } = await startTestDaemon({ at, ephemeral: order });
    expect(existsSync(leftover)).toBe(false);
    await daemon.stop();
    expect(readFileSync(at.paths.config, "utf8")).toBe(settings);
  });

  it("that has joined since keeps its settings, and only the leftovers go", async () => {
    const at = temporaryHome();
    mkdirSync(join(at.paths.dir, "ephemeral-00000000"));
    const before = readFileSync(at.paths.config, "utf8");
    await startTestDaemon({ at });
    expect(dataFolders(at)).toEqual([]);
    expect(readFileSync(at.paths.config, "utf8")).toBe(before);
  });

  it("must have no keys of its own: the invite is not spent, and the keys are left alone", async () => {
    const at = emptyHome();
    ensureMeshDir(at.paths);
    writeKeyFile(at.paths.keypair, at.keys);
    const { order, joined } = await openBroker();
    await expect(startTestDaemon({ at, ephemeral: order })).rejects.toMatchObject({ reason: "keys_in_the_way" });
    expect(joined).toEqual([]);
  });

  it("holds one daemon: a second one spends no invite", async () => {
    const at = emptyHome();
    const { order, joined } = await openBroker();
    await startTestDaemon({ at, ephemeral: order });
    await expect(startTestDaemon({ at, ephemeral: order })).rejects.toMatchObject({ reason: "already_running" });
    expect(joined).toHaveLength(1);
    expect(listMeshes(at.home)).toEqual(["acme"]);
  });

  it("is as it was, but for how the start ended, where the broker does not let it in", async () => {
    const at = emptyHome();
    const { order } = await openBroker();
    const closed = { ...order, invite: { ...order.invite, broker: "http://127.0.0.1:1" } };
    await expect(startTestDaemon({ at, ephemeral: closed })).rejects.toMatchObject({ code: "broker_unreachable" });
    expect(readdirSync(at.paths.dir)).toEqual(["last_run.json", "lock.db"]);
    await startTestDaemon({ at, ephemeral: order });
  });
});
