// What a daemon finds wrong when its broker says nothing; what each finding means is tested with the judgement.
import { tmpdir } from "node:os";
import type { LinkOutcome, LinkStatus } from "@claudemesh/client/internal/link-contract";
import { expect, test } from "vitest";
import { reportFindings } from "./report-findings.ts";

async function codesWhere(status: LinkStatus, outcome: LinkOutcome): Promise<string[]> {
  const health = {
    mesh: { id: "m", name: "acme" },
    member: { name: "alice", pubkey: "a".repeat(64) },
    membership: { ended: undefined },
    linkStatus: () => status,
    drainMode: () => ({ state: "running" }) as const,
    outbox: { counts: () => ({ pending: 0, inflight: 0, dead: 0, dismissed: 0 }) },
    inbox: { unreadable: () => 0, rebuildAfter: () => undefined },
    gauge: { usedBytes: () => 0, maxBytes: 1_000 },
    startedAt: 0,
    streams: () => 0,
  };
  const { ok, findings } = await reportFindings({
    health,
    outbox: { oldestOpenEnqueuedAt: () => undefined },
    link: { request: async () => outcome },
    clock: { nowMs: () => 0 },
    folder: tmpdir(),
    brokerUrl: () => "ws://127.0.0.1:1",
  });
  const codes = findings.map(({ code }) => code).filter((code) => code !== "disk_low");
  expect(ok).toBe(codes.length === 0);
  return codes;
}

const online = { state: "online" } as unknown as LinkStatus;

test("a broker that is connected and does not answer is never taken for a healthy one", async () => {
  expect(await codesWhere(online, { type: "timed_out" })).toEqual(["broker_silent"]);
  expect(await codesWhere(online, { type: "connection_lost" })).toEqual(["broker_silent"]);
});

test("a broker that could not be asked is away, and said to be so once", async () => {
  const offline: LinkStatus = { state: "offline", reason: "unreachable", detail: "x" };
  expect(await codesWhere(offline, { type: "not_sent" })).toEqual(["broker_away"]);
});
