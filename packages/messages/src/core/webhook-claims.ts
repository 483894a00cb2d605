// Which webhooks a broker turns to, and which of their due deliveries it takes. A receiver that is slow or away keeps a
// hand for as long as a try may last, and must not fill all hands: whoever has the fewest in hand comes first, a webhook
// whose last try failed gets one hand, such webhooks together get half of all hands, and the last quarter is for
// webhooks that do not fail and have nothing in hand.
// Why: docs/decisions/0034.

export type WebhookHands = {
  /** Of this broker, in all. */
  readonly hands: number;
  /** Of one webhook, at most. */
  readonly perWebhook: number;
  /** Incarnation → how many this broker has in hand. */
  readonly inHand: ReadonlyMap<string, number>;
  /** How many of them it took while their webhook was failing. */
  readonly failingInHand: number;
};

/** Up to `limit` webhooks, in the order of their turns, without those that can take no more. */
type Asking = { readonly limit: number; readonly passOver: readonly string[] };

export type WebhookWithDue<Due> = {
  readonly incarnation: string;
  readonly failing: boolean;
  /** In the order in which they are to be taken. */
  readonly due: readonly Due[];
};

export function webhooksToAsk(held: WebhookHands): { readonly healthy: Asking; readonly failing: Asking } {
  const { free, forFailing } = countFree(held);
  const all = [...held.inHand.keys()];
  const full = all.filter((incarnation) => !mayTakeMore(held.inHand.get(incarnation) ?? 0, held, free));
  // Those that have something in hand can be first in the order, and are last to be chosen.
  const healthy = { limit: free === 0 ? 0 : free + all.length - full.length, passOver: full };
  return { healthy, failing: { limit: forFailing, passOver: all } };
}

/** Of webhooks in the order of their turns: what to take, and of whom it is decided one delivery after the other. */
export function chooseFairly<Due>(webhooks: readonly WebhookWithDue<Due>[], held: WebhookHands): Due[] {
  const waiting = webhooks.map((webhook) => ({
    ...webhook,
    taken: 0,
    count: held.inHand.get(webhook.incarnation) ?? 0,
  }));
  let { free, forFailing } = countFree(held);
  const chosen: Due[] = [];
  for (;;) {
    const able = waiting.filter(({ failing, count, taken, due }) => {
      if (free === 0 || taken === due.length) return false;
      return failing ? count === 0 && forFailing > 0 : mayTakeMore(count, held, free);
    });
    const fewest = Math.min(...able.map(({ count }) => count));
    const next = able.find(({ count }) => count === fewest);
    if (next === undefined) return chosen;
    chosen.push(...next.due.slice(next.taken, next.taken + 1));
    next.taken += 1;
    next.count += 1;
    free -= 1;
    forFailing = Math.min(next.failing ? forFailing - 1 : forFailing, free - keptOf(held));
  }
}

function mayTakeMore(count: number, held: WebhookHands, free: number): boolean {
  return count === 0 || (count < held.perWebhook && free > keptOf(held));
}

const keptOf = ({ hands }: WebhookHands) => Math.floor(hands / 4);

function countFree(held: WebhookHands): { free: number; forFailing: number } {
  const taken = [...held.inHand.values()].reduce((sum, count) => sum + count, 0);
  const free = Math.max(held.hands - taken, 0);
  const ofHalf = Math.ceil(held.hands / 2) - held.failingInHand;
  return { free, forFailing: Math.max(Math.min(ofHalf, free - keptOf(held)), 0) };
}
