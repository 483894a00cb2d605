// Webhooks of a mesh, as their suites speak of them. No assertions.
import type { JudgedTry, WebhookDeliveryState } from "../../core/webhook-delivery.ts";
import type { ClaimedDelivery, ClaimTerms, NewWebhook, WebhookStore } from "../../ports/webhooks.ts";
import { send, topic, type World } from "./world.ts";

export const delivered: JudgedTry = { state: "delivered", status: 200 };
export const parked: JudgedTry = { state: "parked", status: 500, error: "answered 500" };

/** Of a mesh with an owner, a member who posts, and two topics. */
export async function createHooks(world: World) {
  const [owner, member] = await world.threeMembers();
  let sends = 0;
  const { webhooks } = world.store;
  const setRole = (role: "owner" | "member") =>
    world.query(`UPDATE ${world.table("member")} SET role = '${role}' WHERE pubkey = '${owner}'`);
  await setRole("owner");
  await world.addTopic("builds");
  await world.addTopic("alerts");

  const webhook = (id = "ci", overrides: Partial<NewWebhook> = {}): NewWebhook => ({
    meshId: world.meshId,
    id,
    incarnation: `of-${id}`,
    url: "https://receiver.example/hook",
    topics: undefined,
    secret: "s".repeat(16),
    fingerprint: Buffer.alloc(32, 1),
    createdBy: owner,
    ...overrides,
  });
  const create = (hook = webhook(), max = 100) => webhooks.create(hook, world.nowMs, max);
  const post = async (name = "builds") => {
    sends += 1;
    const result = await world.accept(member, send(`m${sends}`, topic(name), `body ${sends}`));
    if (result.type !== "accepted") throw new Error(`not accepted: ${result.type}`);
    return result.historyId;
  };
  const writeAll = async () => {
    while (await webhooks.writeNext(world.nowMs));
  };
  const terms = (overrides: Partial<ClaimTerms> = {}): ClaimTerms => ({
    slots: 100,
    perWebhook: 100,
    slotsInUse: new Map(),
    failingSlotsInUse: 0,
    leaseMs: 10_000,
    ...overrides,
  });
  const items = async (id = "ci", state?: WebhookDeliveryState) =>
    (await webhooks.deliveries({ meshId: world.meshId, id, state, after: 0, limit: 1_000 }))?.items;
  return {
    owner,
    member,
    setRole,
    webhook,
    create,
    post,
    writeAll,
    /** Creates the webhook with so many deliveries that are due, and returns their history ids. */
    createWithDue: async (count = 1) => {
      await create();
      const ids: number[] = [];
      for (let n = 0; n < count; n++) ids.push(await post());
      await writeAll();
      return ids;
    },
    terms,
    claim: async (overrides: Partial<ClaimTerms> = {}, store: WebhookStore = webhooks) =>
      (await store.claim(terms(overrides), world.nowMs)).claimed,
    settle: (delivery: ClaimedDelivery, judged: JudgedTry) =>
      webhooks.settle({ ...delivery, historyId: delivery.item.history_id }, judged, world.nowMs),
    items,
    list: async (id = "ci", state?: WebhookDeliveryState) =>
      (await items(id, state))?.map((item) => [item.historyId, item.state]),
    later: (ms: number): JudgedTry => ({
      state: "pending",
      dueAtMs: world.nowMs + ms,
      status: undefined,
      error: "ECONNREFUSED",
      failed: true,
    }),
  };
}

export type Hooks = Awaited<ReturnType<typeof createHooks>>;
