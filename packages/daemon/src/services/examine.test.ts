import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { StorageError } from "@claudemesh/storage/errors";
import { describe, expect, it } from "vitest";
import type { HostFacts } from "../core/host-fingerprint.ts";
import { recoveringPath } from "../stores/sqlite/open-databases.ts";
import { startTestDaemon, type TestHome, temporaryHome } from "../testing/test-daemon.ts";
import { examineFolder } from "./examine.ts";

const here: HostFacts = { hostId: "here", mac: undefined, hostIdUnreadable: false };
const there: HostFacts = { hostId: "there", mac: undefined, hostIdUnreadable: false };
const examine = (at: TestHome, facts = here) => examineFolder(at.paths, {}, () => facts);

async function usedHome(): Promise<TestHome> {
  const at = temporaryHome();
  await (await startTestDaemon({ at, readHost: () => here })).daemon.stop();
  return at;
}

describe("looking at a daemon's folder", () => {
  it("finds nothing where no daemon has run, and makes nothing", async () => {
    const at = temporaryHome();
    const before = readdirSync(at.paths.dir);
    expect(await examine(at)).toMatchObject({ lock: "free", host: "not recorded", outbox: { type: "absent" } });
    expect(readdirSync(at.paths.dir)).toEqual(before);
  });

  it("tells a daemon that runs from one that has ended, and leaves it running", async () => {
    const at = temporaryHome();
    const daemon = await startTestDaemon({ at, readHost: () => here });
    const settings = { type: "readable", clonePolicy: "refuse", outboxMaxBytes: 2 ** 31 };
    const outbox = { type: "in use", bytes: expect.any(Number) };
    expect(await examine(at)).toEqual({ lock: "held", settings, host: "same", outbox });
    expect((await daemon.call("GET", "/v1/version")).status).toBe(200);
    await daemon.daemon.stop();
    expect(await examine(at)).toMatchObject({ lock: "free", outbox: { type: "sound" } });
  });

  it("finds another host, and a fingerprint that cannot be read", async () => {
    const at = await usedHome();
    expect((await examine(at, there)).host).toBe("changed");
    writeFileSync(at.paths.hostFingerprint, "{");
    expect((await examine(at)).host).toBe("unreadable");
  });

  it("finds settings that would stop a start", async () => {
    const at = await usedHome();
    appendFileSync(at.paths.config, "\n[outbox]\nmax_byte = 5\n");
    expect((await examine(at)).settings).toMatchObject({
      type: "refused",
      problem: expect.stringContaining("max_byte"),
    });
  });

  it("finds a damaged outbox and a recovery that was cut off, and changes neither", async () => {
    const at = await usedHome();
    const sound = readFileSync(at.paths.outboxDb);
    const damaged = Buffer.from(sound).fill(0x5a, 4_096 + 8, sound.length - 16);
    writeFileSync(at.paths.outboxDb, damaged);
    expect((await examine(at)).outbox.type).toBe("damaged");
    expect(readFileSync(at.paths.outboxDb)).toEqual(damaged);
    writeFileSync(recoveringPath(at.paths.outboxDb), "half");
    expect((await examine(at)).outbox.type).toBe("recovery cut off");
  });

  it("finds an outbox that cannot be opened, and calls it neither damaged nor sound", async () => {
    const at = await usedHome();
    for (const suffix of ["", "-wal", "-shm"]) rmSync(at.paths.outboxDb + suffix, { force: true });
    mkdirSync(at.paths.outboxDb);
    expect((await examine(at)).outbox).toMatchObject({ type: "unreadable" });
  });

  it("on a full disk, where the lock cannot be asked for, looks at the rest", async () => {
    const { paths } = await usedHome();
    const full = () => Promise.reject(new StorageError("disk_full", "database or disk is full"));
    expect(await examineFolder(paths, {}, () => here, full)).toMatchObject({
      lock: "unknown",
      outbox: { type: "sound" },
    });
  });
});
