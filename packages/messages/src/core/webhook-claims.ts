// Which of the deliveries that are due a broker takes: a receiver that is slow or away must not fill all hands.

type Terms = {
  readonly limit: number;
  readonly perWebhook: number;
  readonly inHand: ReadonlyMap<string, number>;
};

/** In the order given: up to `limit` in all, and of each webhook no more than makes `perWebhook` in hand. */
export function chooseWithinCaps<Due extends { readonly incarnation: string }>(
  due: readonly Due[],
  { limit, perWebhook, inHand }: Terms,
): Due[] {
  const counts = new Map(inHand);
  const chosen: Due[] = [];
  for (const one of due) {
    if (chosen.length >= limit) break;
    const count = counts.get(one.incarnation) ?? 0;
    if (count >= perWebhook) continue;
    counts.set(one.incarnation, count + 1);
    chosen.push(one);
  }
  return chosen;
}
