// `once` as a program meets it, on the protocol's own rules and a clock that tests hold: who runs the effect, what
// every caller gets, and what happens when answers, leases or the effect itself are lost (REG-13).
import type { JsonValue } from "@claudemesh/protocol/json";
import { beforeEach, describe, expect, it } from "vitest";
import { FakeOnceBroker } from "../testing/fake-once-broker.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { createOnce, type OnceContext, type OnceEffect, type OnceOptions } from "./once.ts";
import { OnceEffectFailed, OnceLeaseLost, OnceNotDone, OnceNotRecorded, OnceUncertain } from "./once-failures.ts";

let clock: VirtualClock;
let broker: FakeOnceBroker;
let ran: string[];

beforeEach(() => {
  clock = new VirtualClock();
  broker = new FakeOnceBroker(clock.wallMs);
  ran = [];
});

let ids = 0;
const runAs = <T extends JsonValue>(
  member: string,
  effect: OnceEffect<T>,
  options: OnceOptions = {},
  inputs: JsonValue = ["i"],
) =>
  createOnce({ call: broker.callAs(member), clock, random: () => 0.5, nextClaimId: () => `claim-${++ids}` }).run(
    "k",
    inputs,
    effect,
    { leaseSeconds: 30, ...options },
  );

const takes = (member: string, ms: number) => async () => {
  ran.push(member);
  await clock.sleep(ms);
  return { by: member };
};

describe("the first caller", () => {
  it("runs the effect, and every later one gets its result without running", async () => {
    expect(await runAs("alice", takes("alice", 5))).toEqual({ result: { by: "alice" }, epoch: 1, ran: true });
    for (const member of ["alice", "bob"]) {
      const later = await runAs(member, takes(member, 5));
      expect(later).toEqual({ result: { by: "alice" }, epoch: 1, ran: false });
    }
    expect(ran).toEqual(["alice"]);
  });

  it("keeps the key for as long as the effect runs, however much longer than the lease", async () => {
    await runAs("alice", takes("alice", 600_000));
    expect(broker.epochs[0]?.settlement).toMatchObject({ how: "recorded" });
    expect(broker.asked.filter((operation) => operation === "once.renew").length).toBeGreaterThan(50);
    expect(broker.asked.at(-1)).toBe("once.record");
  });

  it("stops renewing when the result is recorded", async () => {
    await runAs("alice", takes("alice", 5));
    const asked = broker.asked.length;
    await clock.sleep(600_000);
    expect(broker.asked).toHaveLength(asked);
  });

  it("whose effect returns nothing has null as its result", async () => {
    const nothing = (() => undefined) as unknown as OnceEffect<null>;
    expect(await runAs("alice", nothing)).toMatchObject({ result: null, ran: true });
    expect(await runAs("bob", takes("bob", 1))).toMatchObject({ result: null, ran: false });
  });
});

describe("two hosts at once", () => {
  it("run the effect once, and both have the result: who comes second waits", async () => {
    const [first, second] = await Promise.all([
      runAs("alice", takes("alice", 100_000)),
      runAs("bob", takes("bob", 100_000)),
    ]);
    expect([first.result, second.result]).toEqual([{ by: ran[0] }, { by: ran[0] }]);
    expect(ran).toHaveLength(1);
    expect([first.ran, second.ran].toSorted()).toEqual([false, true]);
  });

  it("and who does not want to wait hears until when it runs", async () => {
    const first = runAs("alice", takes("alice", 10_000));
    await expect(runAs("bob", takes("bob", 1), { wait: false })).rejects.toMatchObject({
      name: "OnceRunning",
      key: "k",
      epoch: 1,
      leaseUntil: clock.wallMs() + 30_000,
      status: 409,
      body: { error: "running" },
    });
    await first;
    expect(ran).toEqual(["alice"]);
  });

  it("and who waits can be told to stop waiting", async () => {
    const first = runAs("alice", takes("alice", 100_000));
    const tired = new AbortController();
    const second = runAs("bob", takes("bob", 1), { signal: tired.signal });
    const outcome = expect(second).rejects.toThrow("enough");
    await clock.sleep(5_000);
    tired.abort(new Error("enough"));
    await outcome;
    await first;
    expect(ran).toEqual(["alice"]);
  });

  it("with other inputs are told so", async () => {
    await runAs("alice", takes("alice", 1));
    await expect(runAs("bob", takes("bob", 1), {}, ["other"])).rejects.toMatchObject({ code: "inputs_mismatch" });
  });
});

describe("an answer that got lost", () => {
  it.each([
    ["once.claim", "before"],
    ["once.claim", "after"],
    ["once.record", "before"],
    ["once.record", "after"],
  ] as const)("to %s, %s it was carried out, is asked for again, and the effect runs once", async (operation, loss) => {
    let losses = 2;
    broker.lose = (asked) => (asked === operation && losses-- > 0 ? loss : undefined);
    expect(await runAs("alice", takes("alice", 5))).toMatchObject({ ran: true, epoch: 1 });
    expect(ran).toEqual(["alice"]);
    expect(broker.epochs).toHaveLength(1);
    expect(new Set(broker.epochs.map(({ claimId }) => claimId)).size).toBe(1);
  });

  it("to a claim, for longer than the lease: the own claim is taken back, since nothing has run", async () => {
    broker.lose = (operation) => {
      if (operation !== "once.claim" || clock.monotonicMs() > 40_000) return undefined;
      return "after";
    };
    const run = await runAs("alice", takes("alice", 5), { claimForMs: 100_000 });
    expect(run).toMatchObject({ ran: true, epoch: 2 });
    expect(broker.epochs[0]?.settlement).toMatchObject({ how: "resolved_not_done", by: "alice" });
    expect(ran).toEqual(["alice"]);
  });

  it("to a claim, for a good part of the lease: the lease is renewed before anything runs", async () => {
    broker.lose = (operation) => (operation === "once.claim" && clock.monotonicMs() < 20_000 ? "after" : undefined);
    const seen: string[] = [];
    await runAs(
      "alice",
      async () => {
        seen.push(...broker.asked);
        return 1;
      },
      { claimForMs: 100_000 },
    );
    expect(seen.at(-1)).toBe("once.renew");
  });

  it("to everything: the caller hears that the broker is away", async () => {
    broker.lose = () => "before";
    await expect(runAs("alice", takes("alice", 1))).rejects.toMatchObject({ code: "broker_unreachable" });
    expect(ran).toEqual([]);
    expect(clock.monotonicMs()).toBeLessThan(5_000);
  });

  it("to a claim that may have been carried out is asked for much longer than one that never left", async () => {
    let lost = 0;
    broker.lose = () => (++lost === 1 ? "after" : "before");
    await expect(runAs("alice", takes("alice", 1))).rejects.toMatchObject({ code: "broker_unreachable" });
    expect(clock.monotonicMs()).toBeGreaterThan(50_000);
  });

  it("while another caller runs it does not end the waiting", async () => {
    const first = runAs("alice", takes("alice", 100_000));
    const second = runAs("bob", takes("bob", 1));
    await clock.sleep(10_000);
    broker.lose = (operation) => (operation === "once.claim" && clock.monotonicMs() < 40_000 ? "before" : undefined);
    expect(await second).toMatchObject({ ran: false, result: { by: "alice" } });
    await first;
  });
});

describe("a lease that is lost while the effect runs", () => {
  const waitsForAbort = (lost: (reason: unknown) => void) => async (context: OnceContext) => {
    await clock.sleep(1_000_000, context.signal);
    lost(context.signal.reason);
    return "finished anyway";
  };

  it("because no renewal gets through aborts the effect before any other caller can find it uncertain", async () => {
    broker.lose = (operation) => (operation === "once.renew" ? "before" : undefined);
    let reason: unknown;
    let leaseUntil = 0;
    const run = await runAs(
      "alice",
      waitsForAbort((why) => {
        reason = why;
        leaseUntil = (broker.epochs[0]?.leaseUntilMs ?? 0) - clock.wallMs();
      }),
    );
    expect(reason).toBeInstanceOf(OnceLeaseLost);
    expect(reason).toMatchObject({ why: "expired", epoch: 1, key: "k" });
    expect(leaseUntil).toBe(0);
    // The caller that ran it knows best: a late result is recorded all the same.
    expect(run).toMatchObject({ result: "finished anyway" });
    expect(broker.epochs[0]?.settlement).toMatchObject({ how: "recorded" });
  });

  it("because a renewal hangs is aborted in time", async () => {
    const call = broker.callAs("alice");
    const hanging = createOnce({
      clock,
      call: (operation, input) => (operation === "once.renew" ? new Promise(() => undefined) : call(operation, input)),
    });
    let abortedAtMs = 0;
    await hanging.once(
      "k",
      [],
      async ({ signal }) => {
        await clock.sleep(1_000_000, signal);
        abortedAtMs = clock.monotonicMs();
        return 1;
      },
      { leaseSeconds: 30 },
    );
    expect(abortedAtMs).toBe(30_000);
  });

  it("after renewals whose answers were slow to come is aborted no later than the broker lets it end", async () => {
    const call = broker.callAs("alice");
    let renewals = 0;
    const slow = createOnce({
      clock,
      call: async (operation, input) => {
        if (operation !== "once.renew") return call(operation, input);
        if (++renewals > 3) return new Promise(() => undefined);
        const answer = await call(operation, input);
        await clock.sleep(8_000);
        return answer;
      },
    });
    let leftMs: number | undefined;
    const effect = async ({ signal }: OnceContext) => {
      await clock.sleep(1_000_000, signal);
      leftMs = (broker.epochs[0]?.leaseUntilMs ?? 0) - clock.wallMs();
      return 1;
    };
    await slow.once("k", [], effect, { leaseSeconds: 30 });
    expect(renewals).toBe(4);
    expect(leftMs).toBe(0);
  });

  it("and resolved as not done says so, and the late result is not recorded", async () => {
    broker.lose = (operation) => (operation === "once.renew" && clock.monotonicMs() < 60_000 ? "before" : undefined);
    const run = runAs("alice", async () => {
      await clock.sleep(50_000);
      await broker.callAs("bob")("once.resolve", { key: "k", epoch: 1, outcome: "not_done" });
      return "late";
    });
    await expect(run).rejects.toMatchObject({ name: "OnceNotRecorded", epoch: 1, result: "late" });
    expect(await runAs("bob", takes("bob", 1))).toMatchObject({ epoch: 2, ran: true });
  });

  it("to a resolve while it can still renew is told apart", async () => {
    let reason: unknown;
    const run = runAs(
      "alice",
      waitsForAbort((why) => {
        reason = why;
      }),
    );
    await clock.sleep(5_000);
    const [first] = broker.epochs;
    if (first === undefined) throw new Error("nothing was claimed");
    broker.epochs[0] = { ...first, settlement: { how: "resolved_not_done", by: "bob", atMs: 1 } };
    await expect(run).rejects.toBeInstanceOf(OnceNotRecorded);
    expect(reason).toMatchObject({ name: "OnceLeaseLost", why: "settled" });
  });
});

describe("an effect that fails", () => {
  it("leaves the key uncertain, and says how to resolve it", async () => {
    const failed = await runAs("alice", () => Promise.reject(new Error("half way"))).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(OnceEffectFailed);
    expect(failed).toMatchObject({ cause: { message: "half way" }, epoch: 1, body: { error: "effect_failed" } });
    expect((failed as Error).message).toContain("claudemesh once k --resolve not-done --epoch 1");
    await clock.sleep(30_000);
    const later = await runAs("bob", takes("bob", 1)).catch((error: unknown) => error);
    expect(later).toBeInstanceOf(OnceUncertain);
    expect(later).toMatchObject({ key: "k", epoch: 1, status: 409, body: { error: "uncertain", epoch: 1 } });
    expect((later as Error).message).toContain("claudemesh once k --resolve done --epoch 1");
    expect(ran).toEqual([]);
  });

  it("and knows that nothing of it happened releases the key when the lease has ended", async () => {
    const refused = runAs("alice", () => Promise.reject(new OnceNotDone("the port is taken")));
    await expect(refused).rejects.toThrow("the port is taken");
    expect(clock.monotonicMs()).toBeGreaterThanOrEqual(30_000);
    expect(await runAs("bob", takes("bob", 1), {}, ["other inputs"])).toMatchObject({ epoch: 2, ran: true });
  });

  it("and knows it does not wait for a lease of hours, but says how to resolve it then", async () => {
    const refused = runAs("alice", () => Promise.reject(new OnceNotDone("the port is taken")), { leaseSeconds: 7_200 });
    await expect(refused).rejects.toMatchObject({ name: "OnceEffectFailed", cause: { message: "the port is taken" } });
    expect(clock.monotonicMs()).toBeLessThan(200_000);
  });

  it("whose result is too large to keep hands it to its caller", async () => {
    const large = "x".repeat(70_000);
    const run = runAs("alice", () => large);
    await expect(run).rejects.toMatchObject({ name: "OnceNotRecorded", result: large });
    expect(broker.asked).not.toContain("once.record");
  });
});

describe("a result that cannot be recorded for long", () => {
  it("is tried until the time for it is over, then handed to the caller", async () => {
    broker.lose = (operation) => (operation === "once.record" ? "before" : undefined);
    const run = runAs("alice", takes("alice", 5), { recordForMs: 120_000 });
    await expect(run).rejects.toMatchObject({ name: "OnceNotRecorded", result: { by: "alice" } });
    expect(broker.asked.filter((operation) => operation === "once.record").length).toBeGreaterThan(50);
    // The key was kept all the time.
    expect(broker.asked.filter((operation) => operation === "once.renew").length).toBeGreaterThan(5);
  });
});
