// What the daemon's log says of a broker whose announcement it could use in part.
import { expect, test } from "vitest";
import { recordingLog } from "../testing/test-stores.ts";
import { type FollowPorts, followLink } from "./follow-link.ts";

test("a parameter that has its default because it made no sense is a warning, and the daemon goes on", () => {
  const log = recordingLog();
  let linkUps = 0;
  const done = async () => undefined;
  const ports = {
    limits: { adopt: async () => ({ ok: true, hours: 1 }) },
    directory: { refresh: done },
    drain: { linkUp: () => linkUps++ },
    expiry: { sweep: done, settleUnknownFates: done },
    rebuild: { run: done },
    events: { brokerStatus: () => undefined },
    noticeSleep: () => undefined,
    membership: { applyLinkStatus: () => undefined },
    destinations: { forgetAll: () => undefined },
    log,
  } as unknown as FollowPorts;
  const member = { pubkey: "a".repeat(64), name: "alice", role: "owner" as const };
  followLink(ports).onStatus({
    state: "online",
    hello: { mesh: "acme", mesh_id: "01890000-0000-7000-8000-000000000001", member },
    features: { dedupe: { mode: "permanent" }, inlineBytes: 65_536, connectionPolicy: "prefer_newest" },
    brokerKey: "b".repeat(64),
    defaulted: ["default_policy is unknown; prefer_newest is assumed"],
  });
  expect(log.lines).toContainEqual({
    level: "warn",
    event: "feature_parameter_defaulted",
    msg: "default_policy is unknown; prefer_newest is assumed",
  });
  expect(linkUps).toBe(1);
});
