// The end of a membership: taken from the link alone, kept over restarts, and over with the next hello that succeeds.
import type { LinkStatus } from "@claudemesh/client/internal/link-contract";
import { expect, it } from "vitest";
import { ManualClock } from "../testing/manual-clock.ts";
import { settle, testFeatures } from "../testing/scripted-link.ts";
import { openTestStores, recordingLog } from "../testing/test-stores.ts";
import { Membership } from "./membership.ts";

const offline = (reason: "member_revoked" | "unauthorized" | "unreachable"): LinkStatus => ({
  state: "offline",
  reason,
  detail: "the broker said so",
});
const member = { pubkey: "00", name: "me", role: "member" as const };
const online: LinkStatus = {
  state: "online",
  brokerKey: "b".repeat(64),
  hello: { mesh: "acme", mesh_id: "m", member },
  features: testFeatures,
};

async function setUp() {
  const clock = new ManualClock();
  const { membership: store } = await openTestStores(clock);
  const log = recordingLog();
  const open = () => new Membership({ mesh: "acme", store, clock, log });
  return { clock, log, open };
}

it("ends when the broker says so, is logged once, and stays ended after a restart", async () => {
  const { clock, log, open } = await setUp();
  const membership = open();
  const at = clock.nowMs();
  membership.applyLinkStatus(offline("member_revoked"));
  await settle();
  await clock.advance(60_000);
  membership.applyLinkStatus(offline("member_revoked"));
  await settle();
  for (const each of [membership, open()]) {
    expect(each.ended).toEqual({ at });
    expect(() => each.require()).toThrow(
      expect.objectContaining({ code: "membership_ended", status: 403, details: { mesh: "acme", ended_at: at } }),
    );
  }
  expect(log.events()).toEqual(["membership_ended"]);
});

it("is not ended by a broker that is away or refuses without that reason", async () => {
  const { open } = await setUp();
  const membership = open();
  membership.applyLinkStatus(offline("unreachable"));
  membership.applyLinkStatus(offline("unauthorized"));
  membership.require();
  expect(membership.ended).toBeUndefined();
});

it("is there again after a hello that succeeds, also after a restart", async () => {
  const { open } = await setUp();
  const membership = open();
  membership.applyLinkStatus(offline("member_revoked"));
  membership.applyLinkStatus(offline("unreachable"));
  expect(membership.ended).toBeDefined();
  membership.applyLinkStatus(online);
  membership.require();
  await settle();
  expect(open().ended).toBeUndefined();
});
