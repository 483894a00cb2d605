// What the sender of a message without an outbox hears: as much of its delivery as the broker tells, and never more.
import type { BrokerCall } from "@claudemesh/client/broker";
import { MeshError } from "@claudemesh/protocol/errors";
import type { AcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import { expect, it } from "vitest";
import { followDirect } from "./direct-delivery.ts";
import { refusedDirectly } from "./direct-send.ts";

const counts = (unsettled: number, delivered = 0, expired = 0) => ({ unsettled, delivered, expired });
const waitFor = (stage: "stored" | "delivered", timeoutMs = 5_000) => ({ stage, timeoutMs });

/** A broker that says one after the other, and the last for ever. */
function broker(...said: (ReturnType<typeof counts> | undefined)[]) {
  let asked = 0;
  const call: BrokerCall = async (operation) => {
    expect(operation).toBe("message.state");
    const next = said[Math.min(asked++, said.length - 1)];
    if (next === undefined) throw new MeshError("broker_unreachable");
    return { counts: next };
  };
  return { call, asked: () => asked };
}

it.each([
  ["a member is to get it", counts(1), "reached", "stored", true],
  ["no member was subscribed", counts(0), "reached", "stored", false],
  ["all have it", counts(0, 2), "reached", "delivered", true],
  ["the broker does not say", undefined, "reached", "stored", true],
] as const)("asks once where delivery is not waited for: %s", async (_, said, outcome, state, hasRecipients) => {
  for (const waiting of [undefined, waitFor("stored")]) {
    const { call, asked } = broker(said);
    expect(await followDirect(call, "m", waiting)).toEqual({ outcome, state, hasRecipients });
    expect(asked()).toBe(1);
  }
});

it("waits until each recipient has it", async () => {
  const { call, asked } = broker(counts(2), undefined, counts(1, 1), counts(0, 2));
  const delivery = await followDirect(call, "m", waitFor("delivered"));
  expect(delivery).toEqual({ outcome: "reached", state: "delivered", hasRecipients: true });
  expect(asked()).toBe(4);
});

it.each([
  ["it waits still when the time is over", counts(1, 1), "not_yet", true],
  ["the broker does not say", undefined, "not_yet", true],
  ["no member is to get it", counts(0), "ended", false],
  ["it expired", counts(0, 0, 1), "ended", true],
] as const)("is not called delivered where %s", async (_, said, outcome, hasRecipients) => {
  const delivery = await followDirect(broker(said).call, "m", waitFor("delivered", 1));
  expect(delivery).toEqual({ outcome, state: "stored", hasRecipients });
});

it("names the next step where the broker refuses a destination, and passes every other failure on", () => {
  const to = (kind: "topic" | "queue", ref: string) => ({ destination: { kind, ref } }) as AcceptRequest;
  const missing = new MeshError("destination_not_found");
  expect(refusedDirectly(missing, to("topic", "news"))).toMatchObject({
    code: "destination_not_found",
    message: expect.stringContaining("claudemesh topic create news"),
  });
  expect(refusedDirectly(missing, to("queue", "jobs"))).toHaveProperty(
    "message",
    expect.stringContaining("claudemesh queue create jobs"),
  );
  expect(refusedDirectly(new MeshError("not_subscribed"), to("topic", "news"))).toMatchObject({
    code: "not_subscribed",
    message: expect.stringContaining("claudemesh topic subscribe news"),
  });
  const other = new MeshError("rate_limited");
  expect(refusedDirectly(other, to("topic", "news"))).toBe(other);
});
