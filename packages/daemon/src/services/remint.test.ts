import { chmodSync, copyFileSync, readdirSync, readFileSync, statSync } from "node:fs";
import { readMeshConfig } from "@claudemesh/client/home";
import { readKeyFile } from "@claudemesh/client/keys";
import { MeshError } from "@claudemesh/protocol/errors";
import { describe, expect, it } from "vitest";
import type { HostFacts } from "../core/host-fingerprint.ts";
import { settle } from "../testing/scripted-link.ts";
import { startTestDaemon, type TestHome, temporaryHome } from "../testing/test-daemon.ts";
import { type RemintPorts, type RemintStep, remintKeys } from "./remint.ts";

const here: HostFacts = { hostId: "here", mac: undefined, hostIdUnreadable: false };
const there: HostFacts = { hostId: "there", mac: undefined, hostIdUnreadable: false };
const invite = {
  broker: "ws://127.0.0.1:1",
  mesh: "acme",
  mesh_id: "01890000-0000-7000-8000-000000000000",
  secret: "cms_secret",
};

/** A broker whose invite is good for one key. */
function openInvite() {
  const keys: string[] = [];
  const join: RemintPorts["join"] = async ({ name, keys: { ed25519 } }) => {
    const [first = ed25519.public_key] = keys;
    if (first !== ed25519.public_key) throw new MeshError("invite_refused");
    keys.push(first);
    return {
      mesh: "acme",
      mesh_id: invite.mesh_id,
      member_pubkey: first,
      name,
      role: "member",
      broker_key: "0b".repeat(32),
    };
  };
  return { keys, join };
}

function portsOf(given: Partial<RemintPorts> = {}): RemintPorts {
  return { join: openInvite().join, readHost: () => there, nowMs: () => Date.UTC(2030, 0, 2), ...given };
}

const keyFiles = (at: TestHome) =>
  readdirSync(at.paths.dir)
    .filter((name) => name.startsWith("keypair.json"))
    .sort();

describe("new keys", () => {
  it("make a new member; the old keys lie beside them, and each file is for its owner alone", async () => {
    const at = temporaryHome();
    const oldText = readFileSync(at.paths.keypair, "utf8");
    const reminted = await remintKeys(at.paths, { invite, name: "me-again" }, portsOf());
    const keys = readKeyFile(at.paths.keypair);
    expect(reminted).toEqual({
      mesh: "acme",
      name: "me-again",
      role: "member",
      old_pubkey: at.keys.ed25519.public_key,
      new_pubkey: keys.ed25519.public_key,
      old_keys: `${at.paths.keypair}.2030-01-02T00-00-00-000Z`,
      rows_retired: 0,
    });
    expect(keys.ed25519.public_key).not.toBe(at.keys.ed25519.public_key);
    expect(readFileSync(reminted.old_keys, "utf8")).toBe(oldText);
    expect(keyFiles(at)).toEqual(["keypair.json", "keypair.json.2030-01-02T00-00-00-000Z"]);
    for (const name of keyFiles(at)) expect(statSync(`${at.paths.dir}/${name}`).mode & 0o777).toBe(0o600);
    expect(readMeshConfig(at.paths).member_name).toBe("me-again");
  });

  it("belong to the host that they were made on", async () => {
    const at = temporaryHome();
    await (await startTestDaemon({ at, readHost: () => here })).daemon.stop();
    await expect(startTestDaemon({ at, readHost: () => there })).rejects.toMatchObject({ reason: "host_changed" });
    await remintKeys(at.paths, { invite }, portsOf());
    await startTestDaemon({ at, readHost: () => there });
  });

  it("add their beginning to the home's name, which the old key keeps, where no other is given", async () => {
    const at = temporaryHome();
    const ports = (day: number) => portsOf({ nowMs: () => Date.UTC(2030, 0, day) });
    const first = await remintKeys(at.paths, { invite }, ports(1));
    expect(first.name).toBe(`me-${first.new_pubkey.slice(0, 8)}`);
    const second = await remintKeys(at.paths, { invite }, ports(2));
    expect(second.name).toBe(`me-${second.new_pubkey.slice(0, 8)}`);
    const named = await remintKeys(at.paths, { invite: { ...invite, name: "laptop" } }, ports(3));
    expect(named.name).toBe("laptop");
  });

  it("leave the ids that were used consumed", async () => {
    const at = temporaryHome();
    const daemon = await startTestDaemon({ at });
    daemon.link.goOnline();
    const send = { to: "@self", message: "once", client_message_id: "order-1" };
    await daemon.send(send);
    (await daemon.link.requested("send")).answer(201, { broker_message_id: "b", history_id: 1, duplicate: false });
    await settle();
    await daemon.daemon.stop();
    await remintKeys(at.paths, { invite }, portsOf({ readHost: () => here }));
    const again = await startTestDaemon({ at, readHost: () => here });
    expect((await again.send(send)).body).toMatchObject({ status: "done", duplicate: true, broker_message_id: "b" });
  });
});

describe("new keys are refused", () => {
  const untouched = (at: TestHome) => {
    expect(keyFiles(at)).toEqual(["keypair.json"]);
    expect(readKeyFile(at.paths.keypair)).toEqual(at.keys);
  };

  it("while the daemon runs", async () => {
    const daemon = await startTestDaemon();
    await expect(remintKeys(daemon.paths, { invite }, portsOf())).rejects.toMatchObject({ reason: "daemon_running" });
    untouched(daemon);
  });

  it("by an invite to another mesh", async () => {
    const at = temporaryHome();
    const other = { ...invite, mesh_id: "01890000-0000-7000-8000-000000000001" };
    await expect(remintKeys(at.paths, { invite: other }, portsOf())).rejects.toMatchObject({ reason: "other_mesh" });
    untouched(at);
  });

  it.each([
    ["pending", "status = 'pending'", { pending: 1, inflight: 0, dead_of_unknown_fate: 0 }],
    ["inflight", "status = 'inflight'", { pending: 0, inflight: 1, dead_of_unknown_fate: 0 }],
    [
      "dead with an unknown fate",
      "status = 'dead', attempts = 1, unanswered = 1",
      { pending: 0, inflight: 0, dead_of_unknown_fate: 1 },
    ],
  ])("while a row is %s", async (_, change, counts) => {
    const at = temporaryHome();
    const daemon = await startTestDaemon({ at });
    await daemon.send({ to: "@self", message: "m" });
    await daemon.daemon.stop();
    daemon.outboxDb().exec(`UPDATE outbox SET ${change}`);
    await expect(remintKeys(at.paths, { invite }, portsOf())).rejects.toMatchObject({
      reason: "outbox_unsettled",
      message: expect.stringMatching(
        /removed from the mesh.*claudemesh daemon outbox dismiss --all --why <text> --mesh acme/,
      ),
      body: { error: "outbox_unsettled", ...counts },
    });
    untouched(at);
  });

  it("by a broker, and the old ones stay in use", async () => {
    const at = temporaryHome();
    const join = () => Promise.reject(new MeshError("invite_refused"));
    await expect(remintKeys(at.paths, { invite }, portsOf({ join }))).rejects.toMatchObject({ code: "invite_refused" });
    expect(readKeyFile(at.paths.keypair)).toEqual(at.keys);
    await startTestDaemon({ at });
  });
});

describe("dead rows that were refused", () => {
  it("stay as they are, but for direct messages, which no key could open any more", async () => {
    const at = temporaryHome();
    const daemon = await startTestDaemon({ at });
    await daemon.send({ to: "@self", message: "sealed", client_message_id: "sealed" });
    await daemon.send({ to: "#general", message: "open", client_message_id: "open" });
    await daemon.daemon.stop();
    daemon.outboxDb().exec("UPDATE outbox SET status = 'dead', attempts = 1, last_error = 'refused'");
    const reminted = await remintKeys(at.paths, { invite }, portsOf({ readHost: () => here }));
    expect(reminted.rows_retired).toBe(1);
    const again = await startTestDaemon({ at, readHost: () => here });
    const rowOf = async (id: string) => (await again.call("GET", `/v1/outbox/${id}`)).body.row;
    expect(await rowOf("sealed")).toMatchObject({ status: "aborted", aborted_by: "remint" });
    expect(await rowOf("open")).toMatchObject({ status: "dead" });
    const requeued = await again.call("POST", "/v1/outbox/requeue", { json: { id: "sealed" } });
    expect([requeued.status, requeued.body.error]).toEqual([409, "not_requeueable"]);
  });
});

it("a former member whose rows were let go has new keys at once, what may have arrived is never sent again, and the audit balances", async () => {
  const at = temporaryHome();
  const former = await startTestDaemon({ at });
  for (const id of ["untried", "tried"]) await former.send({ to: "#general", message: id, client_message_id: id });
  former.outboxDb().exec("UPDATE outbox SET attempts = 1, unanswered = 1 WHERE client_message_id = 'tried'");
  former.link.become({ state: "offline", reason: "member_revoked", detail: "unauthorized" });
  for (const id of ["untried", "tried"]) {
    const dismissed = await former.call("POST", "/v1/outbox/dismiss", { json: { id, why: "removed" } });
    expect(dismissed).toMatchObject({ status: 200, body: { client_message_id: id, status: "dead" } });
  }
  await former.daemon.stop();
  expect((await remintKeys(at.paths, { invite }, portsOf({ readHost: () => here }))).rows_retired).toBe(1);
  const again = await startTestDaemon({ at, readHost: () => here });
  const rowOf = async (id: string) => (await again.call("GET", `/v1/outbox/${id}`)).body.row;
  expect(await rowOf("untried")).toMatchObject({ status: "dead", fate: "unsent" });
  expect(await rowOf("tried")).toMatchObject({ status: "aborted", aborted_by: "remint", fate: "unknown" });
  const { body } = await again.call("GET", "/v1/audit");
  expect(body.layers.find(({ layer }: { layer: string }) => layer === "outbox")).toMatchObject({
    classes: { dead_dismissed: 1, aborted: 1 },
    balanced: true,
  });
});

describe("a remint that is cut off", () => {
  const steps: RemintStep[] = ["new_keys_written", "joined", "rows_retired", "old_keys_kept"];
  it.each(steps)("after %s leaves the old keys in use, and is finished by the same command", async (step) => {
    const at = temporaryHome();
    const { keys, join } = openInvite();
    const afterStep = (done: RemintStep) => {
      if (done === step) throw new Error("the power went");
    };
    await expect(remintKeys(at.paths, { invite }, portsOf({ join, afterStep }))).rejects.toThrow("the power went");
    expect(readKeyFile(at.paths.keypair)).toEqual(at.keys);
    const again = { join, readHost: () => here, nowMs: () => Date.UTC(2030, 0, 3) };
    const reminted = await remintKeys(at.paths, { invite }, again);
    expect(new Set(keys)).toEqual(new Set([reminted.new_pubkey]));
    expect(readKeyFile(at.paths.keypair).ed25519.public_key).toBe(reminted.new_pubkey);
    expect(keyFiles(at)).not.toContain("keypair.json.next");
    await startTestDaemon({ at, readHost: () => here });
  });

  it("after the keys were replaced has them, and only the host is still to be accepted", async () => {
    const at = temporaryHome();
    await (await startTestDaemon({ at, readHost: () => here })).daemon.stop();
    const afterStep = (done: RemintStep) => {
      if (done === "keys_replaced") throw new Error("the power went");
    };
    await expect(remintKeys(at.paths, { invite }, portsOf({ afterStep }))).rejects.toThrow("the power went");
    expect(readKeyFile(at.paths.keypair)).not.toEqual(at.keys);
    await expect(startTestDaemon({ at, readHost: () => there })).rejects.toThrow(/accept-host/);
  });

  it("does not go on with keys that others could have read", async () => {
    const at = temporaryHome();
    copyFileSync(at.paths.keypair, `${at.paths.keypair}.next`);
    chmodSync(`${at.paths.keypair}.next`, 0o644);
    await expect(remintKeys(at.paths, { invite }, portsOf())).rejects.toMatchObject({ problem: "unsafe" });
  });
});
