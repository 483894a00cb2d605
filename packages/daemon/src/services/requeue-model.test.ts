// Random schedules of tries, lost answers, frames that arrive late, fences and requeues, against a naive broker. However
// they interleave, a row that was requeued without accepting a duplicate is never accepted by the broker.
import type { LinkOutcome } from "@claudemesh/client/internal/link-contract";
import { MeshError } from "@claudemesh/protocol/errors";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { openRequeueWorld, type RequeueWorld } from "../testing/requeue-world.ts";
import { type ScriptedRequest, settle } from "../testing/scripted-link.ts";
import { Expiry } from "./expire.ts";

/** What happened over all runs: a schedule that never met a case proves nothing about it. */
const met = new Map<string, number>();
const meet = (what: string) => met.set(what, (met.get(what) ?? 0) + 1);

/** Accepts each id once, and none that is fenced. */
class ModelBroker {
  readonly accepted = new Map<string, number>();
  readonly fenced = new Set<string>();

  send(id: string): { status: number; body: Record<string, unknown> } {
    const before = this.accepted.get(id);
    if (before !== undefined) return { status: 200, body: { ...this.#ids(before), duplicate: true } };
    if (this.fenced.has(id)) {
      meet("a frame met its fence");
      return { status: 409, body: { error: "fenced", message: "fenced", retryable: false } };
    }
    this.accepted.set(id, this.accepted.size + 1);
    return { status: 201, body: this.#ids(this.accepted.size) };
  }

  fence(id: string): { status: number; body: Record<string, unknown> } {
    const before = this.accepted.get(id);
    if (before !== undefined) return { status: 200, body: { fate: "committed", ...this.#ids(before) } };
    this.fenced.add(id);
    return { status: 200, body: { fate: "fenced" } };
  }

  #ids(historyId: number) {
    return {
      broker_message_id: `01890000-0000-7000-8000-${String(historyId).padStart(12, "0")}`,
      history_id: historyId,
    };
  }
}

const refusals: Readonly<Record<string, LinkOutcome>> = {
  rateLimited: { type: "answered", status: 429, body: { error: "rate_limited", message: "wait", retryable: true } },
  gone: { type: "answered", status: 404, body: { error: "destination_not_found", message: "gone", retryable: false } },
  troubled: { type: "answered", status: 503, body: { error: "internal", message: "oh", retryable: true } },
};

const sendEnds = ["answered", "answerLost", "stillOnItsWay", "lost", "rateLimited", "gone", "troubled"] as const;
const fenceEnds = ["answered", "answerLost", "lost"] as const;

const command = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("endSend" as const), at: fc.nat(), how: fc.constantFrom(...sendEnds) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("requeue" as const), at: fc.nat(), accept: fc.nat({ max: 3 }) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("endFence" as const), at: fc.nat(), how: fc.constantFrom(...fenceEnds) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("arrive" as const), at: fc.nat(), heard: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.constantFrom(1_000, 30_000, 120_000) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("goOffline" as const, "goOnline" as const) }) },
);
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never;

class Schedule {
  readonly #world: RequeueWorld;
  readonly #expiry: Expiry;
  readonly #broker = new ModelBroker();
  /** Frames that their sender has given up and that may still reach the broker. */
  #onTheirWay: ScriptedRequest[] = [];
  readonly #ended = new Set<ScriptedRequest>();
  readonly #running = new Set<Promise<void>>();
  readonly #acceptedDuplicate = new Set<string>();
  #minted = 0;

  constructor(world: RequeueWorld) {
    this.#world = world;
    const { stores, link, clock, log, ports } = world;
    const limits = { expiredAtOrBefore: () => 0, fenceProvesNothingBefore: () => 0, ...ports.limits };
    this.#expiry = new Expiry({ outbox: stores.outbox, link, clock, log, limits, requestTimeoutMs: 10_000 });
  }

  async run(commands: readonly Command[]): Promise<void> {
    await this.#world.insert("a");
    await this.#world.insert("b");
    this.#goOnline();
    await settle();
    for (const each of commands) {
      this.#do(each);
      await settle();
    }
    await this.#finish();
    this.#check();
  }

  #do(each: Command) {
    switch (each.do) {
      case "endSend":
        return this.#endSend(pick(this.#open("send"), each.at), each.how);
      case "endFence":
        return this.#endFence(pick(this.#open("fence"), each.at), each.how);
      case "arrive":
        return this.#arrive(pick(this.#onTheirWay, each.at), each.heard);
      case "requeue":
        return this.#requeue(pick(this.#world.rows(), each.at)?.id, each.accept === 0);
      case "wait":
        this.#world.clock.advance(each.ms);
        return this.#world.drain.wake();
      case "goOffline":
        this.#world.link.goOffline();
        return this.#world.drain.linkDown();
      case "goOnline":
        return this.#goOnline();
    }
  }

  #goOnline(): void {
    const { link, drain } = this.#world;
    link.goOnline();
    drain.linkUp();
    this.#track(this.#expiry.settleUnknownFates());
  }

  #open(operation: "send" | "fence"): ScriptedRequest[] {
    return this.#world.link.ofKind(operation).filter((request) => !this.#ended.has(request));
  }

  #end(request: ScriptedRequest, outcome: LinkOutcome): void {
    this.#ended.add(request);
    request.end(outcome);
  }

  #endSend(request: ScriptedRequest | undefined, how: (typeof sendEnds)[number]) {
    if (request === undefined) return;
    const id = String(request.input.client_message_id);
    const refusal = refusals[how];
    if (refusal !== undefined) return this.#end(request, refusal);
    if (how === "answered") return this.#end(request, { type: "answered", ...this.#broker.send(id) });
    if (how === "answerLost") this.#broker.send(id);
    if (how === "stillOnItsWay") this.#onTheirWay.push(request);
    this.#end(request, { type: how === "lost" ? "connection_lost" : "timed_out" });
  }

  #endFence(request: ScriptedRequest | undefined, how: (typeof fenceEnds)[number]) {
    if (request === undefined) return;
    if (how === "lost") return this.#end(request, { type: "timed_out" });
    const answer = this.#broker.fence(String(request.input.client_message_id));
    this.#end(request, how === "answered" ? { type: "answered", ...answer } : { type: "connection_lost" });
  }

  #arrive(request: ScriptedRequest | undefined, heard: boolean): void {
    if (request === undefined) return;
    this.#onTheirWay = this.#onTheirWay.filter((each) => each !== request);
    const answer = this.#broker.send(String(request.input.client_message_id));
    if (heard) request.options.onLateAnswer?.(answer);
  }

  #requeue(id: string | undefined, acceptDuplicate: boolean): void {
    if (id === undefined) return;
    const wasUnknown = this.#world.fate(id) === "unknown";
    const request = { id, new_client_id: `new-${++this.#minted}`, accept_duplicate: acceptDuplicate };
    const work = this.#world.requeue(request).then(
      ({ old }) => {
        meet(wasUnknown ? "requeued what was unknown" : "requeued what was known");
        if (acceptDuplicate) this.#acceptedDuplicate.add(old.client_message_id);
      },
      (error: unknown) => {
        if (!(error instanceof MeshError)) throw error;
        meet(error.code);
      },
    );
    this.#track(work);
  }

  #track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#running.delete(tracked));
    this.#running.add(tracked);
  }

  /** Everything that can still happen, happens: late frames arrive, every row is tried until it is settled. */
  async #finish(): Promise<void> {
    this.#goOnline();
    for (let round = 0; round < 500; round++) {
      await settle();
      const [send] = this.#open("send");
      const [fence] = this.#open("fence");
      const isOpen = this.#world.rows().some(({ status }) => status === "pending" || status === "inflight");
      if (this.#onTheirWay.length > 0) this.#arrive(this.#onTheirWay[0], true);
      else if (fence !== undefined) this.#endFence(fence, "answered");
      else if (send !== undefined) this.#endSend(send, "answered");
      else if (this.#running.size === 0 && !isOpen) return;
      else this.#world.clock.advance(60_000);
    }
    throw new Error("the schedule never came to its end");
  }

  #check(): void {
    const accepted = new Set(this.#broker.accepted.keys());
    for (const row of this.#world.rows()) {
      const id = row.client_message_id;
      if (row.status === "done") expect(accepted, `${id} is done`).toContain(id);
      const fate = this.#world.fate(row.id);
      if (fate === "refused" || fate === "unsent") expect(accepted, `${id} is ${fate}`).not.toContain(id);
      if (row.status !== "aborted") continue;
      if (!accepted.has(id)) continue;
      meet("an accepted duplicate was accepted");
      expect(this.#acceptedDuplicate, `${id} was requeued and accepted`).toContain(id);
      expect(row.accept_duplicate, `${id} says so`).toBe(1);
    }
  }
}

function pick<T>(items: readonly T[], at: number): T | undefined {
  return items.length === 0 ? undefined : items[at % items.length];
}

describe("whatever happens around a requeue", () => {
  it("no two rows of a chain are both accepted, unless that was accepted", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 20, maxLength: 60 }), async (commands) => {
        await new Schedule(await openRequeueWorld()).run(commands);
      }),
      { numRuns: 150, interruptAfterTimeLimit: 60_000, markInterruptAsFailure: true },
    );
  }, 90_000);

  afterAll(() => {
    const floors = {
      "requeued what was unknown": 10,
      "requeued what was known": 20,
      already_accepted: 5,
      fate_unknown: 20,
      not_requeueable: 20,
      "a frame met its fence": 5,
      "an accepted duplicate was accepted": 1,
    };
    for (const [what, floor] of Object.entries(floors)) {
      expect(met.get(what) ?? 0, `${what}, over all runs`).toBeGreaterThanOrEqual(floor);
    }
  });
});
