// What a former member's daemon answers on each of its routes: that the membership is over, and never that the broker is away.
import { expect, it, vi } from "vitest";
import { readMembershipEnd } from "../read-membership-end.ts";
import { startTestDaemon } from "../testing/test-daemon.ts";

async function startFormerMember() {
  const daemon = await startTestDaemon();
  const send = () => daemon.send({ to: "#general", message: "hello", client_message_id: "order-1" });
  await send();
  daemon.link.become({ state: "offline", reason: "member_revoked", detail: "unauthorized" });
  return { daemon, send };
}

it("answers an exact retry, and says in its answer and in its status why the message waits", async () => {
  const { daemon, send } = await startFormerMember();
  const { status, body } = await send();
  expect([status, body]).toMatchObject([202, { status: "queued", membership_ended_at: expect.any(Number) }]);
  expect(body).not.toHaveProperty("broker");
  const facts = (await daemon.call("GET", "/v1/messages/order-1")).body;
  expect(facts.notes.map((note: { code: string }) => note.code)).toEqual(["membership_ended"]);
});

it("is known as one to commands that read its home beside it", async () => {
  const daemon = await startTestDaemon();
  expect(readMembershipEnd(daemon.paths)).toBeUndefined();
  daemon.link.become({ state: "offline", reason: "member_revoked", detail: "unauthorized" });
  await vi.waitFor(() => expect(readMembershipEnd(daemon.paths)).toEqual(expect.any(Number)));
});

it("makes no new row by a requeue, and leaves the old one as it was", async () => {
  const { daemon } = await startFormerMember();
  const requeue = () => daemon.call("POST", "/v1/outbox/requeue", { json: { id: "order-1" } });
  expect(await requeue()).toMatchObject({ status: 403, body: { error: "membership_ended", retryable: false } });
  expect((await daemon.call("GET", "/v1/outbox/order-1")).body.row).toMatchObject({
    status: "pending",
    aborted_at: null,
  });
  expect(daemon.rowCount()).toBe(1);
});

it.each([
  ["GET", "/v1/topic/list", undefined, "topic.list"],
  ["GET", "/v1/peers", undefined, "peers.list"],
  ["POST", "/v1/topic/subscribe", { topic: "general" }, "topic.subscribe"],
] as const)("answers %s %s with the end of the membership and the next step", async (method, path, json, operation) => {
  const { daemon } = await startFormerMember();
  daemon.link.automatic.set(operation, () => ({ type: "not_sent" }));
  const { status, body } = await daemon.call(method, path, json === undefined ? {} : { json });
  expect([status, body.error, body.retryable]).toEqual([403, "membership_ended", false]);
  expect(body.message).toContain("claudemesh daemon remint");
});
