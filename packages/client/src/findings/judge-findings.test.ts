// Every finding, from facts that a test makes up. That the facts come about for real is tested with daemons and brokers.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { HealthBody } from "../daemon/report-bodies.ts";
import {
  type DaemonFacts,
  type Finding,
  type FindingCode,
  findingCodes,
  findingsBody,
  judgeBroker,
  judgeCertificate,
  judgeDaemon,
  type MeshHealth,
} from "./judge-findings.ts";

const nowMs = 1_700_000_000_000;
const dayMs = 86_400_000;

const health = {
  broker: { state: "online" },
  drain: { state: "running" },
  outbox: { pending: 0, inflight: 0, dead: 0, used_bytes: 0, max_bytes: 1_000 },
} as unknown as HealthBody;

const facts: DaemonFacts = {
  mesh: "acme",
  platform: "linux",
  nowMs,
  health,
  oldestOpenAtMs: undefined,
  freeBytes: 2 ** 40,
};

const sound: MeshHealth = {
  time: nowMs,
  store: "ok",
  limiter: "ok",
  parked: { messages: 0, queues: [] },
  uncertain: { keys: 0, first: [] },
  verify_failed: { keys: 0, first: [] },
  nightly_check: { ended_at: nowMs, found: 0, rules: [] },
};

const daemon = (given: object, more: Partial<DaemonFacts> = {}) =>
  judgeDaemon({ ...facts, ...more, health: { ...health, ...given } as HealthBody });
const outbox = (given: object) => daemon({ outbox: { ...health.outbox, ...given } });
const offline = (reason: string) => daemon({ broker: { state: "offline", reason, detail: "x" } });
const broker = (given: Partial<MeshHealth>, clockAheadMs = 0) =>
  judgeBroker("acme", "linux", { health: { ...sound, ...given }, clockAheadMs });

const cases: [string, Finding[], FindingCode, Finding["status"], RegExp][] = [
  ["a broker that is away", offline("unreachable"), "broker_away", "fail", /daemon reconnect --mesh acme/],
  ["an impostor at the broker's address", offline("not_our_broker"), "not_our_broker", "fail", /trust-broker/],
  ["a first try", daemon({ broker: { state: "connecting" } }), "broker_connecting", "warn", /reconnect/],
  ["a member who was removed", offline("member_revoked"), "membership_ended", "fail", /remint --mesh acme/],
  ["a member the broker does not know", offline("unauthorized"), "membership_ended", "fail", /remint/],
  ["a halted drain", daemon({ drain: { state: "halted" } }), "membership_ended", "fail", /remint/],
  ["a membership that ended before", daemon({ membership: { state: "ended" } }), "membership_ended", "fail", /remint/],
  ["a store that takes no writes", broker({ store: "unavailable" }), "store_unavailable", "fail", /readyz/],
  [
    "a store that is away",
    judgeBroker("acme", "linux", { refused: "storage_unavailable" }),
    "store_unavailable",
    "fail",
    /readyz/,
  ],
  [
    "a broker that does not answer over a connection that stands",
    judgeBroker("acme", "linux", { refused: undefined }),
    "broker_silent",
    "fail",
    /readyz/,
  ],
  ["a limiter that is away", broker({ limiter: "unavailable" }), "limiter_unavailable", "fail", /Redis/],
  ["sends that pass uncounted", broker({ limiter: "uncounted" }), "limiter_uncounted", "warn", /Redis/],
  [
    "a budget that is spent",
    daemon({ drain: { state: "resting", until: nowMs + 1_000, rate_limited_since: nowMs } }),
    "rate_limited",
    "fail",
    /--rate-limit/,
  ],
  ["rows that wait", daemon({}, { oldestOpenAtMs: nowMs - 600_001 }), "rows_waiting", "fail", /outbox list --pending/],
  ["dead rows", outbox({ dead: 2 }), "dead_rows", "fail", /outbox list --failed --mesh acme/],
  ["an outbox that fills", outbox({ used_bytes: 800 }), "outbox_full", "warn", /prune/],
  ["an outbox that is full", outbox({ used_bytes: 950 }), "outbox_full", "fail", /prune/],
  [
    "parked jobs",
    broker({ parked: { messages: 2, queues: ["jobs"] } }),
    "parked_jobs",
    "fail",
    /^claudemesh queue parked jobs/,
  ],
  [
    "an uncertain key",
    broker({ uncertain: { keys: 1, first: ["deploy"] } }),
    "once_uncertain",
    "fail",
    /^claudemesh once deploy --show/,
  ],
  [
    "a failed verification",
    broker({ verify_failed: { keys: 1, first: ["k"] } }),
    "verification_failed",
    "fail",
    /^claudemesh registrar status k/,
  ],
  [
    "rows that do not fit",
    broker({ nightly_check: { ended_at: nowMs, found: 3, rules: ["history_gap"] } }),
    "rows_do_not_fit",
    "fail",
    /broker check/,
  ],
  ["a clock that is off", broker({}, 2_001), "clock_off", "warn", /timedatectl/],
  ["a clock that is far off", broker({}, -300_001), "clock_off", "fail", /timedatectl/],
  ["a disk with little room", daemon({}, { freeBytes: 2 ** 28 }), "disk_low", "warn", /make room/],
  ["a full disk", daemon({}, { freeBytes: 1 }), "disk_low", "fail", /make room/],
  ["a certificate near its end", judgeCertificate(nowMs + 13 * dayMs, nowMs), "certificate_ends", "fail", /HUP/],
  ["planted faults", daemon({ failpoints: "a=crash" }), "fault_points", "fail", /^unset/],
];

describe("a finding", () => {
  it.each(cases)("for %s", (_, findings, code, status, fix) => {
    expect(findings).toEqual([{ code, status, means: expect.any(String), fix: expect.stringMatching(fix) }]);
    expect(findingsBody(findings).ok).toBe(status === "warn");
  });

  it("of a full outbox says that done rows still make room", () => {
    expect(outbox({ used_bytes: 950 })[0]?.means).toContain("done rows make room");
  });

  it("is there for every code", () => {
    expect(new Set(cases.map(([, , code]) => code))).toEqual(new Set(findingCodes));
  });

  it("has its row in docs/operations.md, and no other code has one", () => {
    const page = readFileSync(new URL("../../../../docs/operations.md", import.meta.url), "utf8");
    const [, section = ""] = page.split("\n## When it goes red\n");
    const rows = [...(section.split("\n## ")[0] ?? "").matchAll(/^\| `([a-z_]+)` \|/gm)].map(([, code]) => code);
    expect(rows).toEqual([...findingCodes]);
  });

  it("is none where all is well, or where the broker is too old for the question", () => {
    expect([...judgeDaemon(facts), ...broker({}, 2_000), ...broker({ nightly_check: null })]).toEqual([]);
    expect(daemon({}, { oldestOpenAtMs: nowMs - 600_000, freeBytes: undefined })).toEqual([]);
    expect(daemon({ drain: { state: "resting", until: nowMs } })).toEqual([]);
    expect(judgeBroker("acme", "linux", { refused: "unknown_operation" })).toEqual([]);
    expect(judgeCertificate(undefined, nowMs)).toEqual([]);
    expect(judgeCertificate(nowMs + 14 * dayMs, nowMs)).toEqual([]);
  });
});
