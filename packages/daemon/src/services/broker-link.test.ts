import { describe, expect, it } from "vitest";
import { ManualClock } from "../testing/manual-clock.ts";
import { ScriptedLink, settle, testFeatures } from "../testing/scripted-link.ts";
import { type LinkEvents, ManagedBrokerLink } from "./broker-link.ts";

function setUp() {
  const clock = new ManualClock();
  const links: { link: ScriptedLink; events: LinkEvents }[] = [];
  const statuses: string[] = [];
  const managed = new ManagedBrokerLink({
    open: (events) => {
      const link = new ScriptedLink();
      links.push({ link, events });
      return link;
    },
    onStatus: ({ state }) => statuses.push(state),
    onPush: () => undefined,
    clock,
    random: () => 0.999999,
    backoff: { minMs: 500, maxMs: 60_000 },
  });
  managed.start();
  const goOnline = (index: number) => {
    const entry = links[index];
    entry?.link.goOnline();
    entry?.events.onStatus(entry.link.status());
  };
  return { clock, links, statuses, managed, goOnline };
}

describe("the link of the moment", () => {
  it("wakes its waiting callers as soon as it is online, and gives up in time", async () => {
    const { managed, goOnline, clock } = setUp();
    const late = managed.whenOnline(100);
    clock.advance(100);
    expect(await late).toBe(false);
    const waiting = managed.whenOnline(5_000);
    goOnline(0);
    expect(await waiting).toBe(true);
    expect(await managed.whenOnline(0)).toBe(true);
    expect(clock.nextTimerInMs).toBeUndefined();
  });

  it("says hello anew after a backoff, with a new link, and hears the old one no more", async () => {
    const { managed, goOnline, clock, links, statuses } = setUp();
    goOnline(0);
    managed.renew();
    managed.renew();
    clock.advance(999);
    expect(links).toHaveLength(1);
    clock.advance(1);
    expect(links).toHaveLength(2);
    expect(links[0]?.link.closed).toBe(true);
    links[0]?.events.onStatus({ state: "stopped", reason: "closed", detail: "" });
    expect(statuses).toEqual(["online"]);
    goOnline(1);
    expect(statuses).toEqual(["online", "online"]);
    expect(managed.status()).toMatchObject({ state: "online", features: testFeatures });
  });

  it("renews more slowly while the broker keeps refusing, and quickly again after a calm", () => {
    const { managed, clock } = setUp();
    const delays = [1, 2, 3].map(() => {
      managed.renew();
      const delayMs = clock.nextTimerInMs ?? 0;
      clock.advance(delayMs);
      return delayMs;
    });
    expect(delays).toEqual([1_000, 2_000, 4_000]);
    clock.advance(600_001);
    managed.renew();
    expect(clock.nextTimerInMs).toBe(1_000);
  });

  it("ends for good: no caller waits on, and no renewal follows", async () => {
    const { managed, clock, links } = setUp();
    const waiting = managed.whenOnline(5_000);
    managed.renew();
    await managed.close();
    expect(await waiting).toBe(false);
    clock.advance(60_000);
    await settle();
    expect(links).toHaveLength(1);
    expect(await managed.whenOnline(1_000)).toBe(false);
  });
});
