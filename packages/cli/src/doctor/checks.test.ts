// Every judgement of the doctor, from facts that a test makes up.
import { describe, expect, it } from "vitest";
import { judgeConnections } from "./connection-checks.ts";
import type { FileFinding, HomeFindings, Judgement, MeshFindings } from "./findings.ts";
import { judgeHome, shellWord, showBytes } from "./home-checks.ts";
import { judgeFolder } from "./mesh-checks.ts";

const gibibyte = 2 ** 30;
const folder: FileFinding = { path: "/h", kind: "folder", expectedKind: "folder", mode: 0o700, isOurs: true };
const file: FileFinding = { path: "/h/f", kind: "file", expectedKind: "file", mode: 0o600, isOurs: true };

const soundHome: HomeFindings = {
  commandVersion: "1.0.0",
  nodeVersion: "24.1.0",
  failpointsInShell: undefined,
  home: "/h",
  homeFolder: folder,
  freeBytes: gibibyte,
};

const health = {
  broker: { state: "online" },
  drain: { state: "running" },
  outbox: { used_bytes: 1_000, max_bytes: 1_000_000 },
};

const soundMesh: MeshFindings = {
  platform: "linux",
  mesh: "acme",
  dir: "/h/daemon/acme",
  files: [folder, file],
  membership: "readable",
  keys: "readable",
  folder: {
    lock: "held",
    settings: { type: "readable", clonePolicy: "refuse", outboxMaxBytes: 1_000_000 },
    host: "same",
    outbox: { type: "in use", bytes: 4_096 },
  },
  daemon: { type: "answers", version: "1.0.0", pid: 7, health },
  port: { type: "answers", port: 4_711 },
  brokerUrl: "ws://localhost:1",
  broker: { type: "negotiated", url: "ws://localhost:1", said: { refused: undefined }, lost: [] },
  clockAheadMs: 0,
  lastRun: undefined,
  findings: [],
};

const home = (given: Partial<HomeFindings>) => judgeHome({ ...soundHome, ...given });
const mesh = (given: Partial<MeshFindings>) => {
  const found = { ...soundMesh, ...given };
  return [...judgeFolder(found), ...judgeConnections(soundHome, found)];
};
const withFolder = (given: Partial<MeshFindings["folder"]>) => mesh({ folder: { ...soundMesh.folder, ...given } });
const withHealth = (given: object) =>
  mesh({ daemon: { type: "answers", version: "1.0.0", pid: 7, health: { ...health, ...given } } });
const wrong = (rows: readonly Judgement[]) => rows.filter(({ status }) => status !== "ok");

describe("a home in which all is well", () => {
  it("gets a row for every check, all of them ok and none with a fix", () => {
    const rows = [...home({}), ...mesh({})];
    expect(wrong(rows)).toEqual([]);
    expect(rows.map(({ check }) => check)).toEqual([
      "node",
      "home",
      "disk",
      "files",
      "settings",
      "keys",
      "host",
      "outbox",
      "daemon",
      "versions",
      "port",
      "broker",
      "findings",
    ]);
    expect(rows.filter(({ fix }) => fix !== undefined)).toEqual([]);
  });
});

describe("the machine", () => {
  const cases: [string, Partial<HomeFindings>, string, Judgement["status"], RegExp][] = [
    ["with an old Node", { nodeVersion: "22.9.0" }, "node", "fail", /Node 24/],
    ["without a home", { homeFolder: undefined }, "home", "fail", /^claudemesh up$/],
    ["with an open home", { homeFolder: { ...folder, mode: 0o755 } }, "home", "fail", /^chmod 700 \/h$/],
    ["with a home of another user", { homeFolder: { ...folder, isOurs: false } }, "home", "fail", /chown/],
    ["with a scarce disk", { freeBytes: 200 * 2 ** 20 }, "disk", "warn", /make room/],
    ["with a full disk", { freeBytes: 1_000 }, "disk", "fail", /make room/],
    ["with fault points in its shell", { failpointsInShell: "a=crash" }, "fault points", "warn", /^unset/],
  ];
  it.each(cases)("%s", (_, given, check, status, fix) => {
    expect(wrong(home(given))).toMatchObject([{ check, status, fix: expect.stringMatching(fix) }]);
  });

  it("whose free space is not known is not judged by it", () => {
    expect(home({ freeBytes: undefined }).map(({ check }) => check)).toEqual(["node", "home"]);
  });
});

describe("the files of a mesh", () => {
  it.each([
    ["a key file that others can read", { ...file, path: "/h/k", mode: 0o640 }, /^chmod 600 \/h\/k$/],
    ["a folder that others can enter", { ...folder, mode: 0o711 }, /^chmod 700 \/h$/],
    ["a link in a file's place", { ...file, kind: "link" as const }, /^mv /],
    ["a file of another user", { ...file, isOurs: false }, /chown/],
    ["a name with a blank", { ...file, path: "/my home/k", mode: 0o644 }, /^chmod 600 '\/my home\/k'$/],
  ])("fail for %s", (_, bad, fix) => {
    expect(wrong(mesh({ files: [folder, bad] }))).toMatchObject([
      { check: "files", status: "fail", fix: expect.stringMatching(fix) },
    ]);
  });

  it("get a row for each that is wrong", () => {
    const open = { ...file, mode: 0o666 };
    expect(wrong(mesh({ files: [open, { ...open, path: "/h/g" }] }))).toHaveLength(2);
  });
});

describe("the folder of a mesh", () => {
  const accept = /accept-host --mesh acme/;
  const recover = /^claudemesh daemon recover --mesh acme$/;
  const cases: [string, Partial<MeshFindings["folder"]>, string, Judgement["status"], RegExp | undefined][] = [
    ["settings that are not understood", { settings: { type: "refused", problem: "x" } }, "settings", "fail", /config/],
    ["a host that was not written down yet", { host: "not recorded" }, "host", "ok", undefined],
    ["a host that cannot be recognised", { host: "unknown" }, "host", "warn", /machine-id/],
    ["a fingerprint that cannot be read", { host: "unreadable" }, "host", "fail", accept],
    ["another host", { host: "changed" }, "host", "fail", accept],
    ["a recovery that was cut off", { outbox: { type: "recovery cut off" } }, "outbox", "fail", recover],
    [
      "an outbox on a disk that fails",
      { outbox: { type: "unreadable", problem: "disk I/O error" } },
      "outbox",
      "fail",
      /disk/,
    ],
    ["a damaged outbox", { outbox: { type: "damaged", problem: "page 3" } }, "outbox", "fail", recover],
    ["no outbox yet", { outbox: { type: "absent" } }, "outbox", "ok", undefined],
  ];
  it.each(cases)("with %s", (_, given, check, status, fix) => {
    const row = withFolder(given).find((each) => each.check === check);
    expect(row?.status).toBe(status);
    if (fix === undefined) expect(row?.fix).toBeUndefined();
    else expect(row?.fix).toMatch(fix);
  });

  it("that belongs to no mesh fails by its settings", () => {
    const rows = wrong(mesh({ membership: { problem: "config.toml says no [mesh] id" } }));
    expect(rows).toMatchObject([{ check: "settings", status: "fail", fix: expect.stringContaining("config.toml") }]);
  });

  it("on another host only warns where the policy lets a daemon start", () => {
    const settings = { type: "readable", clonePolicy: "warn", outboxMaxBytes: 1 } as const;
    const host = withFolder({ host: "changed", settings }).find(({ check }) => check === "host");
    expect(host).toMatchObject({ status: "warn", fix: expect.stringContaining("remint --mesh acme --invite") });
  });
});

describe("the keys", () => {
  it("fail where they are missing or damaged", () => {
    const daemon = { type: "absent" } as const;
    const keysRow = (keys: MeshFindings["keys"]) => mesh({ keys, daemon }).find(({ check }) => check === "keys");
    expect(keysRow("absent")).toMatchObject({ status: "fail", fix: expect.stringContaining("mesh join") });
    expect(keysRow({ problem: "no JSON" })).toMatchObject({ status: "fail", means: "no JSON" });
  });

  it("of an ephemeral daemon are in its memory, and no host is theirs", () => {
    const folderOfIt = { ...soundMesh.folder, host: "not recorded", outbox: { type: "absent" } } as const;
    const rows = mesh({ keys: "absent", broker: { type: "not asked" }, folder: folderOfIt });
    expect(wrong(rows)).toEqual([]);
    expect(rows.map(({ check }) => check)).not.toContain("host");
    expect(rows.find(({ check }) => check === "keys")?.means).toContain("ephemeral");
    expect(rows.find(({ check }) => check === "outbox")?.means).toContain("1000 bytes of");
  });
});

describe("the outbox", () => {
  const outboxRow = (rows: readonly Judgement[]) => rows.find(({ check }) => check === "outbox");

  it.each([
    [799_999, "ok"],
    [800_000, "warn"],
    [949_999, "warn"],
    [950_000, "fail"],
  ] as const)("with %i of 1,000,000 bytes used is %s", (used, status) => {
    const row = outboxRow(withHealth({ outbox: { used_bytes: used, max_bytes: 1_000_000 } }));
    expect(row?.status).toBe(status);
    expect(row?.fix === undefined).toBe(status === "ok");
    if (status === "fail") expect(row?.means).toContain("Done rows make room");
  });

  it("is judged by the size of its file where no daemon runs", () => {
    const found = { ...soundMesh.folder, lock: "free", outbox: { type: "sound", bytes: 990_000 } } as const;
    expect(outboxRow(mesh({ daemon: { type: "absent" }, folder: found }))?.status).toBe("fail");
  });
});

describe("the daemon", () => {
  const daemonRow = (given: Partial<MeshFindings>) => mesh(given).find(({ check }) => check === "daemon");
  const free = { ...soundMesh.folder, lock: "free" } as const;

  it("fails where none runs, and the fix starts one", () => {
    expect(daemonRow({ daemon: { type: "absent" }, folder: free })).toMatchObject({
      status: "fail",
      fix: "claudemesh daemon up --mesh acme",
    });
  });

  it("fails where one holds the lock and has no socket, or does not answer on it", () => {
    expect(daemonRow({ daemon: { type: "absent" } })?.means).toContain("lock");
    expect(daemonRow({ daemon: { type: "silent", why: "slow" } })).toMatchObject({ status: "fail" });
  });

  it("that is gone is reported with what it left, and two homes are never set on each other", () => {
    const gone = { daemon: { type: "absent" }, folder: free } as const;
    const run = { version: "1", pid: 7, started_at: 0, ended_at: 1_000 };
    const killed = daemonRow({ ...gone, lastRun: { ...run, state: "running" } });
    expect(killed?.means).toContain("ended without a word");
    const refused = daemonRow({
      ...gone,
      lastRun: { ...run, state: "ended", reason: "x", message: "the disk is full" },
    });
    expect(refused).toMatchObject({
      means: expect.stringContaining("the disk is full"),
      fix: expect.stringContaining("daemon up"),
    });
    for (const reason of ["replaced_by_newer", "older_connection_kept"]) {
      const replaced = daemonRow({ ...gone, lastRun: { ...run, state: "ended", reason, message: "another one" } });
      expect(replaced?.fix).toContain("claudemesh daemon remint --mesh acme");
      expect(replaced?.fix).not.toContain("daemon up");
    }
  });

  it("of another version is reported, with the way to have one", () => {
    const daemon = { type: "answers", version: "0.9.0", pid: undefined, health } as const;
    expect(wrong(mesh({ daemon }))).toMatchObject([
      { check: "versions", status: "warn", fix: "claudemesh daemon restart --mesh acme" },
    ]);
  });

  it("fails where its port belongs to another program, and is fine without one", () => {
    expect(wrong(mesh({ port: { type: "fails", port: 1, why: "status 401" } }))).toMatchObject([{ check: "port" }]);
    expect(wrong(mesh({ port: { type: "none" } }))).toEqual([]);
  });
});

describe("the broker", () => {
  it.each([
    ["away", { type: "away", detail: "ECONNREFUSED" }, /curl http:\/\/localhost:1\/healthz/],
    ["refusing", { type: "refused", detail: "revoked" }, /remint/],
    ["of another age", { type: "incompatible", detail: "dedupe" }, /npm install/],
  ] as const)("fails where it is %s", (_, broker, fix) => {
    expect(wrong(mesh({ broker }))).toMatchObject([
      { check: "broker", status: "fail", fix: expect.stringMatching(fix) },
    ]);
  });
});

describe("several brokers", () => {
  it("are fine as long as one can be used, and those that cannot are named", () => {
    const said = { refused: undefined };
    const lost = [{ url: "ws://localhost:2", why: "ECONNREFUSED" }];
    const rows = mesh({ broker: { type: "negotiated", url: "ws://localhost:3", said, lost } });
    expect(rows.find(({ check }) => check === "broker")).toMatchObject({
      status: "ok",
      means: expect.stringContaining("ws://localhost:3"),
    });
    expect(wrong(rows)).toMatchObject([
      { check: "other brokers", status: "warn", fix: "check that it runs: curl http://localhost:2/healthz" },
    ]);
  });
});

describe("what daemon and broker report", () => {
  const parked = { code: "parked_jobs", status: "fail", means: "2 jobs", fix: "claudemesh queue parked jobs" } as const;

  it("is a row each, with its code; what the doctor looks at itself is not reported twice", () => {
    const full = { code: "disk_low", status: "fail", means: "full", fix: "make room" } as const;
    const rows = wrong(mesh({ findings: [parked, full] }));
    expect(rows).toEqual([{ check: "parked jobs", ...parked }]);
    const dead = { code: "dead_rows", status: "fail", means: "2 rows", fix: "dismiss each" } as const;
    const outbox = { used_bytes: 1_000, max_bytes: 1_000_000, dead: 2, dismissed: 0 };
    const daemon = { type: "answers", version: "1.0.0", pid: 7, health: { ...health, outbox } } as const;
    const wrongRows = wrong(mesh({ daemon, findings: [dead] }));
    expect(wrongRows).toEqual([{ check: "dead rows", ...dead }]);
  });

  it("is nothing where neither could be asked", () => {
    const away = { daemon: { type: "absent" }, broker: { type: "away", detail: "x" } } as const;
    expect(mesh(away).find(({ check }) => check === "findings")).toBeUndefined();
  });
});

describe("the clock, where the broker could not be asked for its time", () => {
  const alone = { daemon: { type: "absent" }, broker: { type: "not asked" } } as const;
  const clockRow = (clockAheadMs: number, platform: NodeJS.Platform = "linux") =>
    mesh({ ...alone, clockAheadMs, platform }).find(({ check }) => check === "clock");

  it.each([
    [2_000, undefined],
    [-2_001, "warn"],
    [300_000, "warn"],
    [-300_001, "fail"],
  ] as const)("that is %i ms ahead is %s", (clockAheadMs, status) => {
    expect(clockRow(clockAheadMs)?.status).toBe(status);
  });

  it("is set in the way of its system", () => {
    expect(clockRow(60_000)?.fix).toContain("timedatectl");
    expect(clockRow(60_000, "darwin")?.fix).toContain("sntp");
  });
});

describe("what is shown", () => {
  it("has sizes that people read, and words that a shell takes as they are", () => {
    expect([0, 1_023, 1_024, 1_536, 2_147_483_648, 10 ** 15].map(showBytes)).toEqual([
      "0 bytes",
      "1023 bytes",
      "1.0 KiB",
      "1.5 KiB",
      "2.0 GiB",
      "909 TiB",
    ]);
    expect(shellWord("/a/b-c")).toBe("/a/b-c");
    expect(shellWord("/it's")).toBe("'/it'\\''s'");
  });
});

describe("the broker's address", () => {
  it("is warned of where it is another host without TLS", () => {
    const rows = wrong(mesh({ brokerUrl: "ws://mesh.example.org:7600" }));
    expect(rows).toMatchObject([{ check: "way", status: "warn", means: expect.stringContaining("without TLS") }]);
  });

  it("at which something else answers is a failure, with both keys and a way out", () => {
    const rows = wrong(mesh({ broker: { type: "stranger", detail: "it has the key ab, and this home trusts cd" } }));
    expect(rows).toMatchObject([{ check: "broker", status: "fail", fix: expect.stringContaining("trust-broker") }]);
    expect(rows[0]?.means).toContain("it has the key ab, and this home trusts cd");
  });
});
