// Which webhooks a broker asks for due deliveries, and how it shares its delivery slots among them. A slot is one request under
// way. A receiver that is slow or away occupies a slot for as long as a try may last, and must not occupy all of them:
//
//   - The webhook with the fewest slots in use comes first.
//   - A webhook whose last try failed gets one slot, and all such webhooks together get half of the slots.
//   - The last quarter is reserved for webhooks that do not fail and have no slot in use.
//
// Why: docs/decisions/0034.

export type DeliverySlots = {
  /** How many deliveries this broker may have under way. */
  readonly slots: number;
  /** How many of them may be of one webhook. */
  readonly perWebhook: number;
  /** Incarnation → how many of its deliveries are under way. */
  readonly slotsInUse: ReadonlyMap<string, number>;
  /** How many were claimed while their webhook was failing. */
  readonly failingSlotsInUse: number;
};

/** Asks for up to `limit` webhooks, in the order of their turns, without those in `except`, which can take no more. */
type TurnQuery = { readonly limit: number; readonly except: readonly string[] };

export type WebhookWithDue<Due> = {
  readonly incarnation: string;
  readonly failing: boolean;
  /** In the order in which they are to be claimed. */
  readonly due: readonly Due[];
};

export function webhooksToAsk(slots: DeliverySlots): { readonly healthy: TurnQuery; readonly failing: TurnQuery } {
  const { free, forFailing } = countFree(slots);
  const all = [...slots.slotsInUse.keys()];
  const full = all.filter((incarnation) => !mayTakeMore(slots.slotsInUse.get(incarnation) ?? 0, slots, free));
  // Webhooks with slots in use may come first in the order of turns, but are chosen last.
  const healthy = { limit: free === 0 ? 0 : free + all.length - full.length, except: full };
  return { healthy, failing: { limit: forFailing, except: all } };
}

/** Which deliveries to claim, given webhooks in the order of their turns. Decides about one delivery after the other. */
export function chooseFairly<Due>(webhooks: readonly WebhookWithDue<Due>[], slots: DeliverySlots): Due[] {
  const waiting = webhooks.map((webhook) => ({
    ...webhook,
    taken: 0,
    count: slots.slotsInUse.get(webhook.incarnation) ?? 0,
  }));
  let { free, forFailing } = countFree(slots);
  const chosen: Due[] = [];
  for (;;) {
    const able = waiting.filter(({ failing, count, taken, due }) => {
      if (free === 0 || taken === due.length) return false;
      return failing ? count === 0 && forFailing > 0 : mayTakeMore(count, slots, free);
    });
    const fewest = Math.min(...able.map(({ count }) => count));
    const next = able.find(({ count }) => count === fewest);
    if (next === undefined) return chosen;
    chosen.push(...next.due.slice(next.taken, next.taken + 1));
    next.taken += 1;
    next.count += 1;
    free -= 1;
    forFailing = Math.min(next.failing ? forFailing - 1 : forFailing, free - reservedOf(slots));
  }
}

function mayTakeMore(count: number, slots: DeliverySlots, free: number): boolean {
  return count === 0 || (count < slots.perWebhook && free > reservedOf(slots));
}

const reservedOf = ({ slots }: DeliverySlots) => Math.floor(slots / 4);

function countFree(slots: DeliverySlots): { free: number; forFailing: number } {
  const inUse = [...slots.slotsInUse.values()].reduce((sum, count) => sum + count, 0);
  const free = Math.max(slots.slots - inUse, 0);
  const ofHalf = Math.ceil(slots.slots / 2) - slots.failingSlotsInUse;
  return { free, forFailing: Math.max(Math.min(ofHalf, free - reservedOf(slots)), 0) };
}
