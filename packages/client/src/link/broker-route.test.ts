// The order in which a link goes through brokers that share a store.
import { expect, it } from "vitest";
import { BrokerRoute, brokersMax } from "./broker-route.ts";

const [a, b, c] = ["http://a:1", "http://b:1", "http://c:1"];

it("stays with the broker it has, and goes round when that fails; a round is over when all have failed", () => {
  const route = new BrokerRoute(a, [b, c]);
  expect([route.current, route.others]).toEqual([a, [b, c]]);
  expect([route.failed(), route.current]).toEqual([false, b]);
  route.worked();
  expect([route.failed(), route.current]).toEqual([false, c]);
  expect([route.failed(), route.current]).toEqual([false, a]);
  expect(route.isRoundOver).toBe(false);
  expect([route.failed(), route.current]).toEqual([true, b]);
  expect(route.isRoundOver).toBe(true);
  route.worked();
  expect(route.isRoundOver).toBe(false);
});

it("with one broker every failure ends a round", () => {
  const route = new BrokerRoute(a);
  expect([route.failed(), route.failed(), route.current, route.others]).toEqual([true, true, a, []]);
});

it("learns of others, keeps those that were given, and forgets those that are not told of any more", () => {
  const route = new BrokerRoute(a, [b]);
  route.learn([c, "ws://b:1", a, "ftp://x", ""]);
  expect(route.others).toEqual([b, c]);
  route.learn([]);
  expect(route.others).toEqual([b]);
  route.learn(Array.from({ length: 50 }, (_, n) => `http://h${n}:1`));
  expect(route.others).toHaveLength(brokersMax - 1);
});

it("leaves a broker that is told of no longer once it fails", () => {
  const route = new BrokerRoute(a);
  route.learn([b, c]);
  route.failed();
  expect(route.current).toBe(b);
  route.learn([c]);
  expect(route.current).toBe(b);
  route.failed();
  expect([a, c]).toContain(route.current);
});
