// Brings messages to webhooks: writes deliveries from history, claims those that are due, posts them, and settles each by how
// its try ended. A bounded number is under way at a time, shared among webhooks so that a receiver that is away holds up no
// other. Everything is in the store: what is under way when a process dies comes due again by the clock.
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
  /** A fault point: the receiver has answered, and that is not written down yet. */
  readonly afterPost: () => Promise<void> | void;
  readonly onTried: (state: "delivered" | "pending" | "parked") => void;
  /** Settling failed: the delivery comes due again after its lease. */
  readonly onFailure: (error: unknown) => void;
  /** A slot has become free. */
  readonly onFree: () => void;
};

const slots = 32;
const perWebhook = 8;

export class WebhookDeliveries {
  readonly #ports: DeliverWebhooksPorts;
  readonly #slotsInUse = new Map<string, number>();
  #failingSlotsInUse = 0;
  readonly #underWay = new Set<Promise<void>>();

  constructor(ports: DeliverWebhooksPorts) {
    this.#ports = ports;
  }

  /** Writes one stretch of history and claims as many deliveries as there are free slots. True where there may be more to do. */
  async step(): Promise<boolean> {
    const { store, nowMs, leaseMs } = this.#ports;
    const wrote = await store.writeNext(nowMs());
    const terms = {
      slots,
      perWebhook,
      slotsInUse: this.#slotsInUse,
      failingSlotsInUse: this.#failingSlotsInUse,
      leaseMs,
    };
    const { claimed, expired } = await store.claim(terms, nowMs());
    for (const delivery of claimed) this.#start(delivery);
    return wrote || claimed.length > 0 || expired > 0;
  }

  /** Resolves when no delivery is under way. */
  async idle(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  #start(delivery: ClaimedDelivery): void {
    const { incarnation, failing } = delivery;
    this.#slotsInUse.set(incarnation, (this.#slotsInUse.get(incarnation) ?? 0) + 1);
    if (failing) this.#failingSlotsInUse += 1;
    const work = this.#deliver(delivery)
      .catch(this.#ports.onFailure)
      .finally(() => {
        this.#underWay.delete(work);
        const inUse = (this.#slotsInUse.get(incarnation) ?? 1) - 1;
        if (inUse === 0) this.#slotsInUse.delete(incarnation);
        else this.#slotsInUse.set(incarnation, inUse);
        if (failing) this.#failingSlotsInUse -= 1;
        this.#ports.onFree();
      });
    this.#underWay.add(work);
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
