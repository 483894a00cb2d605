// What the daemon believes of destinations: never that one is missing without having just asked, and never for long that
// one is there.
import type { LinkOutcome } from "@claudemesh/client/internal/link-contract";
import type { Destination } from "@claudemesh/protocol/messages/addresses";
import { describe, expect, it } from "vitest";
import { ManualClock } from "../testing/manual-clock.ts";
import { ScriptedLink } from "../testing/scripted-link.ts";
import { DestinationDirectory } from "./destination-directory.ts";

const news: Destination = { kind: "topic", ref: "news" };
const bob: Destination = { kind: "dm", ref: "b0".repeat(32) };
const open = { refusal: undefined, hasRecipients: true };
const missing = { refusal: "destination_not_found", hasRecipients: false };

function setUp() {
  const clock = new ManualClock();
  const link = new ScriptedLink();
  link.automatic.clear();
  link.goOnline();
  const directory = new DestinationDirectory({ link, clock });
  const answer = async (refusal: string | null, hasRecipients = refusal === null) => {
    const request = await link.requested("destination.state");
    request.answer(200, { ...request.input, refusal, has_recipients: hasRecipients });
  };
  const asked = () => link.ofKind("destination.state").length;
  return { clock, link, directory, answer, asked };
}

describe("a destination that takes messages", () => {
  it.each([
    ["a minute", bob, 60_000],
    ["five seconds where it is a topic, whose readers leave without a push,", news, 5_000],
  ])("is asked about once, and again when %s has passed", async (_, destination, trustedMs) => {
    const { clock, directory, answer, asked } = setUp();
    const first = directory.find(destination);
    await answer(null);
    expect(await first).toEqual(open);
    await clock.advance(trustedMs - 1);
    expect(await directory.find(destination)).toEqual(open);
    expect(asked()).toBe(1);
    await clock.advance(1);
    expect(directory.known(destination)).toBeUndefined();
    const again = directory.find(destination);
    await answer("destination_not_found");
    expect(await again).toEqual(missing);
  });

  it("is asked about again after a second while no other member reads it", async () => {
    const { clock, directory, answer } = setUp();
    const first = directory.find(news);
    await answer(null, false);
    expect(await first).toEqual({ refusal: undefined, hasRecipients: false });
    expect(directory.known(news)).toEqual({ refusal: undefined, hasRecipients: false });
    await clock.advance(1_000);
    expect(directory.known(news)).toBeUndefined();
  });

  it("is forgotten when a push or a dead row says so, also while its answer is on its way", async () => {
    const { directory, answer, asked } = setUp();
    const first = directory.find(news);
    await answer(null);
    await first;
    directory.forget(news);
    const second = directory.find(news);
    directory.forget(news);
    await answer(null);
    expect(await second).toEqual(open);
    expect(directory.known(news)).toBeUndefined();
    expect(asked()).toBe(2);
  });

  it("is forgotten with every topic when a member is gone, who may have been its last reader", async () => {
    const { directory, answer } = setUp();
    for (const destination of [news, bob]) {
      const found = directory.find(destination);
      await answer(null);
      await found;
    }
    directory.forget({ kind: "dm", ref: "ca".repeat(32) });
    expect([directory.known(news), directory.known(bob)]).toEqual([undefined, open]);
  });

  it("is asked about anew on every connection", async () => {
    const { directory, answer } = setUp();
    const first = directory.find(news);
    await answer(null);
    await first;
    directory.forgetAll();
    expect(directory.known(news)).toBeUndefined();
  });
});

describe("a destination that does not", () => {
  it("is never remembered: each send asks, so that one that was made just now is found", async () => {
    const { directory, answer } = setUp();
    const first = directory.find(news);
    await answer("destination_not_found");
    expect(await first).toEqual(missing);
    const second = directory.find(news);
    await answer(null);
    expect(await second).toEqual(open);
  });

  it("is asked about after the call: a caller that comes while a question is under way shares the next one", async () => {
    const { directory, answer, asked } = setUp();
    const first = directory.find(news);
    const later = [directory.find(news), directory.find(news), directory.find(news)];
    expect(asked()).toBe(1);
    await answer("destination_not_found");
    expect(await first).toEqual(missing);
    await answer(null);
    expect(await Promise.all(later)).toEqual([open, open, open]);
    expect(asked()).toBe(2);
  });

  it("may be one to which only subscribers post", async () => {
    const { directory, answer } = setUp();
    const found = directory.find(news);
    await answer("not_subscribed", true);
    expect(await found).toEqual({ refusal: "not_subscribed", hasRecipients: true });
    expect(directory.known(news)).toBeUndefined();
  });
});

describe("a question without an answer", () => {
  const ends: [string, LinkOutcome][] = [
    ["a time-out", { type: "timed_out" }],
    ["a broker that is busy", { type: "answered", status: 429, body: {} }],
    ["an answer that says nothing", { type: "answered", status: 200, body: {} }],
  ];
  it.each(ends)("(%s) takes sends unasked for a while, instead of making each wait", async (_, outcome) => {
    const { clock, link, directory, asked } = setUp();
    const found = directory.find(news);
    (await link.requested("destination.state")).end(outcome);
    expect(await found).toBeUndefined();
    expect(directory.mayAsk).toBe(false);
    expect(await directory.find(news)).toBeUndefined();
    expect(asked()).toBe(1);
    await clock.advance(5_000);
    expect(directory.mayAsk).toBe(true);
  });

  it("is not asked again of a broker that does not know it, until the next connection", async () => {
    const { clock, link, directory } = setUp();
    const found = directory.find(news);
    (await link.requested("destination.state")).answer(400, { error: "invalid_request" });
    expect(await found).toBeUndefined();
    await clock.advance(3_600_000);
    expect(directory.mayAsk).toBe(false);
    directory.forgetAll();
    expect(directory.mayAsk).toBe(true);
  });

  it("makes no caller wait while the broker is away", async () => {
    const { link, directory, asked } = setUp();
    link.goOffline();
    expect(await directory.find(news)).toBeUndefined();
    expect(asked()).toBe(0);
  });

  it("because the connection was lost does not silence the next connection", async () => {
    const { link, directory } = setUp();
    const found = directory.find(news);
    (await link.requested("destination.state")).end({ type: "connection_lost" });
    expect(await found).toBeUndefined();
    expect(directory.mayAsk).toBe(true);
  });
});

it("remembers a bounded number of destinations", async () => {
  const { link, directory } = setUp();
  link.automatic.set("destination.state", ({ kind, ref }) => ({
    type: "answered",
    status: 200,
    body: { kind, ref, refusal: null, has_recipients: true },
  }));
  for (let n = 0; n <= 4_096; n++) await directory.find({ kind: "queue", ref: `q${n}` });
  expect(directory.known({ kind: "queue", ref: "q0" })).toBeUndefined();
  expect(directory.known({ kind: "queue", ref: "q1" })).toEqual(open);
});
