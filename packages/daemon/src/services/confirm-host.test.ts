import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { ClonePolicy, HostFacts } from "../core/host-fingerprint.ts";
import { startTestDaemon, type TestHome, temporaryHome } from "../testing/test-daemon.ts";
import { acceptHost } from "./accept-host.ts";

const here: HostFacts = { hostId: "here", mac: "a4:83:e7:00:00:01", hostIdUnreadable: false };
const there: HostFacts = { hostId: "there", mac: "a4:83:e7:00:00:02", hostIdUnreadable: false };

async function startAndStop(at: TestHome, facts: HostFacts, policy?: ClonePolicy): Promise<void> {
  const overrides = policy === undefined ? {} : { clone: { policy } };
  await (await startTestDaemon({ at, readHost: () => facts, overrides })).daemon.stop();
}

const eventsOf = (at: TestHome): string[] =>
  readFileSync(at.paths.log, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line).event);

describe("the first start", () => {
  it("writes down its host, for the owner's eyes alone and without the id itself", async () => {
    const at = temporaryHome();
    await startAndStop(at, here);
    expect(statSync(at.paths.hostFingerprint).mode & 0o777).toBe(0o600);
    const text = readFileSync(at.paths.hostFingerprint, "utf8");
    expect(JSON.parse(text)).toEqual({
      version: 1,
      fingerprint: expect.stringMatching(/^[0-9a-f]{64}$/),
      host_id_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      mac_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(text).not.toContain(here.mac);
    await startAndStop(at, here);
    expect(readFileSync(at.paths.hostFingerprint, "utf8")).toBe(text);
  });
});

describe("a start on another host", () => {
  it("is refused, names both ways out, changes nothing, and lets go of the folder", async () => {
    const at = temporaryHome();
    await startAndStop(at, here);
    const before = readFileSync(at.paths.hostFingerprint, "utf8");
    await expect(startAndStop(at, there)).rejects.toMatchObject({ reason: "host_changed" });
    await expect(startAndStop(at, there)).rejects.toThrow(/daemon accept-host --mesh acme.*daemon remint --mesh acme/);
    expect(readFileSync(at.paths.hostFingerprint, "utf8")).toBe(before);
    await startAndStop(at, here);
  });

  it.each([
    ["warn", 40],
    ["allow", 30],
  ] as const)("goes on where the policy is %s, every time, and the log says so", async (policy, level) => {
    const at = temporaryHome();
    await startAndStop(at, here);
    await startAndStop(at, there, policy);
    await startAndStop(at, there, policy);
    const lines = readFileSync(at.paths.log, "utf8").trim().split("\n");
    const logged = lines.map((line) => JSON.parse(line)).filter(({ event }) => event === "host_changed");
    expect(logged).toMatchObject([
      { level, policy },
      { level, policy },
    ]);
    await startAndStop(at, here);
  });

  it("is fine once the operator has said that the host is the right one", async () => {
    const at = temporaryHome();
    await startAndStop(at, here);
    expect(await acceptHost(at.paths, () => there)).toMatchObject({ mesh: "acme", was: "changed" });
    await startAndStop(at, there);
    await expect(startAndStop(at, here)).rejects.toMatchObject({ reason: "host_changed" });
  });
});

describe("a host that has nothing to be recognised by", () => {
  it("starts, and says so in the log", async () => {
    const at = temporaryHome();
    const nothing: HostFacts = { hostId: undefined, mac: undefined, hostIdUnreadable: false };
    await startAndStop(at, nothing);
    await startAndStop(at, nothing);
    expect(eventsOf(at)).toContain("host_unknown");
    await startAndStop(at, here);
    await expect(startAndStop(at, there)).rejects.toMatchObject({ reason: "host_changed" });
  });
});

describe("a fingerprint file that cannot be read", () => {
  it("refuses the start and names accept-host, which writes it anew", async () => {
    const at = temporaryHome();
    await startAndStop(at, here);
    for (const text of ["{", "null", '{"version":2}', '{"version":1,"host_id_sha256":"short"}']) {
      writeFileSync(at.paths.hostFingerprint, text);
      await expect(startAndStop(at, here)).rejects.toMatchObject({
        reason: "files_unusable",
        message: expect.stringContaining("accept-host"),
      });
    }
    expect(await acceptHost(at.paths, () => here)).toMatchObject({ was: "unreadable" });
    await startAndStop(at, here);
    chmodSync(at.paths.hostFingerprint, 0o644);
    await expect(startAndStop(at, here)).rejects.toMatchObject({ reason: "files_unusable" });
  });
});

describe("accepting a host", () => {
  it("is refused while the daemon runs", async () => {
    const daemon = await startTestDaemon({ readHost: () => here });
    const before = readFileSync(daemon.paths.hostFingerprint, "utf8");
    await expect(acceptHost(daemon.paths, () => there)).rejects.toMatchObject({
      reason: "daemon_running",
      message: expect.stringContaining("claudemesh daemon down"),
    });
    expect(readFileSync(daemon.paths.hostFingerprint, "utf8")).toBe(before);
  });

  it("writes down a host that none was written down for", async () => {
    const at = temporaryHome();
    expect(await acceptHost(at.paths, () => here)).toMatchObject({ was: "not recorded", mesh: "acme" });
    expect((await acceptHost(at.paths, () => here)).was).toBe("same");
    await expect(startAndStop(at, there)).rejects.toMatchObject({ reason: "host_changed" });
  });
});
