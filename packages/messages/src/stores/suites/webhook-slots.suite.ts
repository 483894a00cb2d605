// How webhooks share a broker's delivery slots, with the store and the service together: receivers that do not answer, or fail,
// hold up no other receiver, however much they have waiting.
import { beforeEach, expect, test } from "vitest";
import type { WebhookTry } from "../../core/webhook-delivery.ts";
import { WebhookDeliveries } from "../../services/deliver-webhooks.ts";
import { Receivers, startHooks } from "./webhook-receivers.ts";
import type { World } from "./world.ts";

const refused: WebhookTry = { type: "failed", reason: "ECONNREFUSED" };
const taken: WebhookTry = { type: "answered", status: 200, retryAfterMs: 0 };

export function describeSharedSlots(world: () => World): void {
  let receivers: Receivers;
  let deliveries: WebhookDeliveries;

  beforeEach(() => {
    receivers = new Receivers();
    deliveries = new WebhookDeliveries({ ...receivers.portsFor(world()), store: world().store.webhooks });
  });

  const takeAll = async () => {
    while (await deliveries.step());
  };
  const answerAll = async (tried: WebhookTry) => {
    receivers.answerAll(tried);
    await deliveries.idle();
    world().nowMs += 1_000;
    await takeAll();
  };
  const startAway = async (count: number, messages: number) => {
    const mesh = await startHooks(world());
    const urls = Array.from({ length: count }, (_, n) => `away-${n}`);
    for (const url of urls) await mesh.hook(url);
    await mesh.post(messages);
    await takeAll();
    return { mesh, urls };
  };
  const openOf = (url: string) => receivers.openOf(url);

  test("receivers that do not answer leave a slot for a message of any other webhook, at once", async () => {
    await startAway(4, 20);
    const other = await world().startOther("mesh-2");
    const { hook, post } = await startHooks(other);
    await hook("well");
    await post(1);
    await takeAll();
    expect(openOf("well")).toBe(1);
    await other.close();
  });

  test("receivers that fail have one slot each and half of all together, and others have their share", async () => {
    const { mesh, urls } = await startAway(20, 10);
    for (let round = 0; round < 3; round++) await answerAll(refused);
    expect(urls.map(openOf).toSorted()).toEqual([...Array(4).fill(0), ...Array(16).fill(1)]);
    await mesh.hook("well");
    await mesh.post(10);
    await takeAll();
    expect(openOf("well")).toBe(8);
    expect(urls.map(openOf).filter((open) => open > 0)).toHaveLength(16);
  });

  test("receivers that fail have their turns one after the other, those first that have waited longest", async () => {
    const { urls } = await startAway(20, 10);
    for (let round = 0; round < 3; round++) await answerAll(refused);
    const passedOver = urls.filter((url) => openOf(url) === 0);
    expect(passedOver).toHaveLength(4);
    await answerAll(refused);
    expect(passedOver.map(openOf)).toEqual([1, 1, 1, 1]);
  });

  test("a receiver that takes a message again has its share again", async () => {
    await startAway(1, 10);
    expect(openOf("away-0")).toBe(8);
    await answerAll(refused);
    expect(openOf("away-0")).toBe(1);
    await answerAll(taken);
    expect(openOf("away-0")).toBe(8);
  });

  test("messages that retention removed are passed in a few steps, each of which goes on to the next", async () => {
    const mesh = await startHooks(world());
    await mesh.hook("well");
    await mesh.post(1);
    await takeAll();
    receivers.answerAll(taken);
    await deliveries.idle();
    // As if the messages of a long outage were gone.
    const columns = "mesh_id, incarnation, history_id, broker_message_id, state, attempts, due_at";
    const values = Array.from(
      { length: 900 },
      (_, n) => `('mesh-1', '${mesh.incarnationOf("well")}', ${1_000_000 + n}, 'broker-x', 'pending', 0, 1)`,
    );
    await world().query(`INSERT INTO ${world().table("webhook_delivery")} (${columns}) VALUES ${values.join(", ")}`);
    await mesh.post(1);
    let steps = 1;
    while (await deliveries.step()) steps += 1;
    expect(openOf("well")).toBe(1);
    expect(steps).toBeLessThan(40);
  });

  test("a request that the broker itself broke off does not count as a failure of the receiver", async () => {
    await startAway(1, 10);
    await answerAll({ type: "interrupted" });
    expect(openOf("away-0")).toBe(8);
  });
}
