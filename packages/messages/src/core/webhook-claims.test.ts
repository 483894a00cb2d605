import { describe, expect, test } from "vitest";
import { chooseFairly, type DeliverySlots, type WebhookWithDue, webhooksToAsk } from "./webhook-claims.ts";

const slots = (slotsInUse: Record<string, number> = {}, overrides: Partial<DeliverySlots> = {}): DeliverySlots => ({
  slots: 32,
  perWebhook: 8,
  slotsInUse: new Map(Object.entries(slotsInUse)),
  failingSlotsInUse: 0,
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

describe("delivery slots", () => {
  test("go to one webhook up to its share, in the order of its deliveries", () => {
    expect(countsOf(chooseFairly([webhook("a")], slots()))).toEqual({ a: 8 });
    expect(countsOf(chooseFairly([webhook("a")], slots({ a: 5 })))).toEqual({ a: 3 });
    const due = { incarnation: "a", failing: false, due: [3, 1, 2] };
    expect(chooseFairly([due], slots())).toEqual([3, 1, 2]);
  });

  test("go to the webhook with the fewest in use, and among equals in the order of turns", () => {
    const webhooks = [webhook("a"), webhook("b"), webhook("c", 1)];
    expect(chooseFairly(webhooks, slots({ a: 2 }, { slots: 6 }))).toEqual(["b", "c", "b"]);
    expect(countsOf(chooseFairly(webhooks, slots({ a: 7 })))).toEqual({ a: 1, b: 8, c: 1 });
  });

  test("are reserved, the last quarter of them, for webhooks that have none in use", () => {
    const silent = named(4, "silent");
    const first = countsOf(
      chooseFairly(
        silent.map((name) => webhook(name)),
        slots(),
      ),
    );
    expect(Object.values(first)).toEqual([6, 6, 6, 6]);
    expect(chooseFairly([...silent.map((name) => webhook(name)), webhook("fresh")], slots(first))).toEqual(["fresh"]);
  });

  test("are one for a webhook that fails, and half of all for those that fail together", () => {
    expect(chooseFairly([failing("a")], slots())).toEqual(["a"]);
    expect(chooseFairly([failing("a")], slots({ a: 1 }, { failingSlotsInUse: 1 }))).toEqual([]);
    const many = named(40, "away").map(failing);
    expect(chooseFairly(many, slots())).toHaveLength(16);
    expect(chooseFairly(many, slots({ x: 1, y: 1 }, { failingSlotsInUse: 2 }))).toHaveLength(14);
    expect(countsOf(chooseFairly([...many, webhook("well")], slots()))).toMatchObject({ well: 8 });
  });

  test("that are reserved are not taken by a webhook that fails", () => {
    const busy = Object.fromEntries(named(3, "busy").map((name) => [name, 8]));
    expect(chooseFairly([failing("a"), webhook("b")], slots(busy))).toEqual(["b"]);
  });

  test("are enough for one delivery, however few there are", () => {
    expect(chooseFairly([webhook("a")], slots({}, { slots: 1 }))).toEqual(["a"]);
    expect(chooseFairly([failing("a")], slots({}, { slots: 1 }))).toEqual(["a"]);
  });

  test("that are all full take nothing", () => {
    expect(chooseFairly([webhook("a")], slots({ b: 32 }))).toEqual([]);
    expect(chooseFairly([webhook("a")], slots({ b: 40 }))).toEqual([]);
  });
});

describe("the webhooks that are asked for what is due", () => {
  test("are as many as there are free slots, and those in front of them that can take more", () => {
    expect(webhooksToAsk(slots())).toEqual({
      healthy: { limit: 32, except: [] },
      failing: { limit: 16, except: [] },
    });
    expect(webhooksToAsk(slots({ a: 8, b: 1 }, { failingSlotsInUse: 1 }))).toEqual({
      healthy: { limit: 24, except: ["a"] },
      failing: { limit: 15, except: ["a", "b"] },
    });
  });

  test("are none with a slot in use where only the last quarter is left, and none at all where no slot is free", () => {
    expect(webhooksToAsk(slots({ a: 8, b: 8, c: 7, d: 1 }))).toEqual({
      healthy: { limit: 8, except: ["a", "b", "c", "d"] },
      failing: { limit: 0, except: ["a", "b", "c", "d"] },
    });
    expect(webhooksToAsk(slots({ a: 32 }))).toMatchObject({ healthy: { limit: 0 }, failing: { limit: 0 } });
  });
});
