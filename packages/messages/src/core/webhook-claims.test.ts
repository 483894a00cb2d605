import { describe, expect, test } from "vitest";
import { chooseFairly, type WebhookHands, type WebhookWithDue, webhooksToAsk } from "./webhook-claims.ts";

const held = (inHand: Record<string, number> = {}, overrides: Partial<WebhookHands> = {}): WebhookHands => ({
  hands: 32,
  perWebhook: 8,
  inHand: new Map(Object.entries(inHand)),
  failingInHand: 0,
  ...overrides,
});
/** A webhook of that name with so many due deliveries, each called by the webhook's name. */
const webhook = (incarnation: string, count = 100, failing = false): WebhookWithDue<string> => ({
  incarnation,
  failing,
  due: Array.from({ length: count }, () => incarnation),
});
const failing = (incarnation: string) => webhook(incarnation, 100, true);
const named = (count: number, name: string) => Array.from({ length: count }, (_, n) => `${name}${n}`);
const countsOf = (chosen: readonly string[]) =>
  Object.fromEntries([...Map.groupBy(chosen, (name) => name)].map(([name, all]) => [name, all.length]));

describe("hands for webhooks", () => {
  test("go to one webhook up to its share, in the order of its deliveries", () => {
    expect(countsOf(chooseFairly([webhook("a")], held()))).toEqual({ a: 8 });
    expect(countsOf(chooseFairly([webhook("a")], held({ a: 5 })))).toEqual({ a: 3 });
    const due = { incarnation: "a", failing: false, due: [3, 1, 2] };
    expect(chooseFairly([due], held())).toEqual([3, 1, 2]);
  });

  test("go to whoever has the fewest in hand, and among equals in the order of turns", () => {
    const webhooks = [webhook("a"), webhook("b"), webhook("c", 1)];
    expect(chooseFairly(webhooks, held({ a: 2 }, { hands: 6 }))).toEqual(["b", "c", "b"]);
    expect(countsOf(chooseFairly(webhooks, held({ a: 7 })))).toEqual({ a: 1, b: 8, c: 1 });
  });

  test("are kept, the last quarter of them, for webhooks that have nothing in hand", () => {
    const silent = named(4, "silent");
    const first = countsOf(
      chooseFairly(
        silent.map((name) => webhook(name)),
        held(),
      ),
    );
    expect(Object.values(first)).toEqual([6, 6, 6, 6]);
    expect(chooseFairly([...silent.map((name) => webhook(name)), webhook("fresh")], held(first))).toEqual(["fresh"]);
  });

  test("are one for a webhook that fails, and half of all for those that fail together", () => {
    expect(chooseFairly([failing("a")], held())).toEqual(["a"]);
    expect(chooseFairly([failing("a")], held({ a: 1 }, { failingInHand: 1 }))).toEqual([]);
    const many = named(40, "away").map(failing);
    expect(chooseFairly(many, held())).toHaveLength(16);
    expect(chooseFairly(many, held({ x: 1, y: 1 }, { failingInHand: 2 }))).toHaveLength(14);
    expect(countsOf(chooseFairly([...many, webhook("well")], held()))).toMatchObject({ well: 8 });
  });

  test("are not taken from what is kept by a webhook that fails", () => {
    const busy = Object.fromEntries(named(3, "busy").map((name) => [name, 8]));
    expect(chooseFairly([failing("a"), webhook("b")], held(busy))).toEqual(["b"]);
  });

  test("are enough for one delivery, however few there are", () => {
    expect(chooseFairly([webhook("a")], held({}, { hands: 1 }))).toEqual(["a"]);
    expect(chooseFairly([failing("a")], held({}, { hands: 1 }))).toEqual(["a"]);
  });

  test("that are all full take nothing", () => {
    expect(chooseFairly([webhook("a")], held({ b: 32 }))).toEqual([]);
    expect(chooseFairly([webhook("a")], held({ b: 40 }))).toEqual([]);
  });
});

describe("the webhooks that are asked for what is due", () => {
  test("are as many as there are hands, and those that can take more in front of them", () => {
    expect(webhooksToAsk(held())).toEqual({
      healthy: { limit: 32, passOver: [] },
      failing: { limit: 16, passOver: [] },
    });
    expect(webhooksToAsk(held({ a: 8, b: 1 }, { failingInHand: 1 }))).toEqual({
      healthy: { limit: 24, passOver: ["a"] },
      failing: { limit: 15, passOver: ["a", "b"] },
    });
  });

  test("are none with anything in hand where only the last quarter is left, and none at all where nothing is", () => {
    expect(webhooksToAsk(held({ a: 8, b: 8, c: 7, d: 1 }))).toEqual({
      healthy: { limit: 8, passOver: ["a", "b", "c", "d"] },
      failing: { limit: 0, passOver: ["a", "b", "c", "d"] },
    });
    expect(webhooksToAsk(held({ a: 32 }))).toMatchObject({ healthy: { limit: 0 }, failing: { limit: 0 } });
  });
});
