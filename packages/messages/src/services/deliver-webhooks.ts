// Brings messages to webhooks: writes deliveries from history, takes those that are due, posts them, and settles what
// came of it. A bounded number at a time, and shared among webhooks so that receivers that are away hold up nobody
// else. Everything is in the store: whatever a process has in hand when it dies comes due again by the clock.
// Why: docs/decisions/0034.
import { judgeWebhookTry, type WebhookRetryRules, type WebhookTry } from "../core/webhook-delivery.ts";
import { composeWebhookRequest, type WebhookRequest } from "../core/webhook-request.ts";
import type { ClaimedDelivery, WebhookStore } from "../ports/webhooks.ts";

export type DeliverWebhooksPorts = {
  readonly store: WebhookStore;
  /** One request, without following redirects. Never rejects, and ends within the lease. */
  readonly post: (url: string, request: WebhookRequest) => Promise<WebhookTry>;
  readonly nowMs: () => number;
  readonly random: () => number;
  readonly rules: WebhookRetryRules;
  /** Longer than any `post`. */
  readonly leaseMs: number;
  /** A fault point: the receiver has answered, and nobody has written it down. */
  readonly afterPost: () => Promise<void> | void;
  readonly onTried: (state: "delivered" | "pending" | "parked") => void;
  /** Settling failed: the delivery comes due again after its lease. */
  readonly onFailure: (error: unknown) => void;
  /** Hands are free. */
  readonly onFree: () => void;
};

const hands = 32;
const perWebhook = 8;

export class WebhookDeliveries {
  readonly #ports: DeliverWebhooksPorts;
  readonly #inHand = new Map<string, number>();
  #failingInHand = 0;
  readonly #underway = new Set<Promise<void>>();

  constructor(ports: DeliverWebhooksPorts) {
    this.#ports = ports;
  }

  /** One stretch of history and as many deliveries as there are hands. True: there is more to do. */
  async step(): Promise<boolean> {
    const { store, nowMs, leaseMs } = this.#ports;
    const wrote = await store.writeNext(nowMs());
    const terms = { hands, perWebhook, inHand: this.#inHand, failingInHand: this.#failingInHand, leaseMs };
    const { claimed, expired } = await store.claim(terms, nowMs());
    for (const delivery of claimed) this.#take(delivery);
    return wrote || claimed.length > 0 || expired > 0;
  }

  /** Resolves when nothing is in hand. */
  async idle(): Promise<void> {
    await Promise.all(this.#underway);
  }

  #take(delivery: ClaimedDelivery): void {
    const { incarnation, failing } = delivery;
    this.#inHand.set(incarnation, (this.#inHand.get(incarnation) ?? 0) + 1);
    if (failing) this.#failingInHand += 1;
    const work = this.#deliver(delivery)
      .catch(this.#ports.onFailure)
      .finally(() => {
        this.#underway.delete(work);
        const left = (this.#inHand.get(incarnation) ?? 1) - 1;
        if (left === 0) this.#inHand.delete(incarnation);
        else this.#inHand.set(incarnation, left);
        if (failing) this.#failingInHand -= 1;
        this.#ports.onFree();
      });
    this.#underway.add(work);
  }

  async #deliver(delivery: ClaimedDelivery): Promise<void> {
    const { store, post, nowMs, random, rules, afterPost, onTried } = this.#ports;
    const request = composeWebhookRequest(delivery, delivery.secret, delivery.attempt, nowMs());
    const tried = await post(delivery.url, request);
    await afterPost();
    const judged = judgeWebhookTry(tried, delivery.attempt, rules, nowMs(), random());
    await store.settle({ ...delivery, historyId: delivery.item.history_id }, judged, nowMs());
    onTried(judged.state);
  }
}
