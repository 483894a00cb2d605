// Receivers that answer when the test lets them, and meshes with webhooks for them. No assertions.
import type { WebhookTry } from "../../core/webhook-delivery.ts";
import type { DeliverWebhooksPorts } from "../../services/deliver-webhooks.ts";
import { send, topic, type World } from "./world.ts";

type Post = { readonly url: string; readonly resolve: (tried: WebhookTry) => void };

export class Receivers {
  /** Requests that wait for their answer. */
  #open: Post[] = [];

  portsFor(world: World): Omit<DeliverWebhooksPorts, "store"> {
    return {
      post: (url) => new Promise((resolve) => this.#open.push({ url, resolve })),
      nowMs: () => world.nowMs,
      random: () => 0,
      rules: { attemptsMax: 16, backoff: { minMs: 1_000, maxMs: 3_600_000 } },
      leaseMs: 60_000,
      afterPost: () => undefined,
      onTried: () => undefined,
      onFailure: (error) => {
        throw error;
      },
      onFree: () => undefined,
    };
  }

  openOf(url: string): number {
    return this.#open.filter((post) => post.url === url).length;
  }

  answerAll(tried: WebhookTry): void {
    for (const { resolve } of this.#open.splice(0)) resolve(tried);
  }
}

/** Gives the mesh an owner and a topic that all its webhooks hear of. */
export async function startHooks(world: World) {
  const { meshId, store, nowMs } = world;
  const owner = await world.addMember();
  let sends = 0;
  await world.query(`UPDATE ${world.table("member")} SET role = 'owner' WHERE mesh_id = '${meshId}'`);
  await world.addTopic("builds");
  const incarnationOf = (url: string) => `hook ${meshId} ${url}`;
  return {
    incarnationOf,
    hook: async (url: string) => {
      const head = { meshId, id: url, incarnation: incarnationOf(url), url, topics: undefined };
      const secrets = { secret: "s".repeat(16), fingerprint: Buffer.alloc(32), createdBy: owner };
      await store.webhooks.create({ ...head, ...secrets }, nowMs, 100);
    },
    post: async (count: number) => {
      for (let n = 0; n < count; n++) await world.accept(owner, send(`m${++sends}`, topic("builds")));
    },
  };
}
