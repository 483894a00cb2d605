// Random interleavings against a naive model: sends that stop after their look-up and go on later, fences, revocations
// and passing time between them. Every answer must be the model's, and so must the rows at the end.
import type { AcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import fc from "fast-check";
import { expect, test } from "vitest";
import { dm, send, topic, type World } from "./world.ts";

/** Few ids, bodies and members, so that they meet; a budget that some runs exhaust. */
export const modelRate = { limit: 3, windowSeconds: 60 };
const windowMs = modelRate.windowSeconds * 1000;
/** For so long a send may be under way after its look-up (MSG-24). */
const underWayMs = 300_000;

type Send = { readonly member: number; readonly id: number; readonly body: number; readonly to: number };
/** A new send, or an exact repetition of one that the run has started before. */
type Offer = { readonly send: Send; readonly repeat: number | undefined };
type Step =
  | ({ readonly do: "start" } & Offer)
  | { readonly do: "finish"; readonly which: number }
  | ({ readonly do: "fence" } & Offer)
  | { readonly do: "revoke"; readonly member: number }
  | { readonly do: "nextWindow" }
  | { readonly do: "sleep" };

const offer = {
  send: fc.record({ member: fc.nat(2), id: fc.nat(7), body: fc.nat(1), to: fc.nat(4) }),
  repeat: fc.option(fc.nat(100), { nil: undefined, freq: 2 }),
};
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 10, arbitrary: fc.record({ do: fc.constant("start" as const), ...offer }) },
  { weight: 10, arbitrary: fc.record({ do: fc.constant("finish" as const), which: fc.nat(100) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("fence" as const), ...offer }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("revoke" as const), member: fc.nat(2) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("nextWindow" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("sleep" as const) }) },
);

/** What the contract says, with nothing but sets and one list. */
class Model {
  readonly accepted: { readonly id: number; readonly sender: number; readonly content: string }[] = [];
  readonly #fences = new Set<string>();
  readonly #revoked = new Set<number>();
  #counted = new Set<number>();

  /** The answer of the look-up; undefined: not known yet. */
  lookUp(offer: Send): string | undefined {
    const index = this.accepted.findIndex(({ id }) => id === offer.id);
    const stored = this.accepted[index];
    if (stored === undefined) return undefined;
    if (stored.sender !== offer.member) return "owned_by_another";
    return stored.content === contentOf(offer) ? `duplicate ${index + 1}` : "reused";
  }

  finish(offer: Send, underWayForMs: number): string {
    if (underWayForMs > underWayMs) return "outdated";
    const known = this.lookUp(offer);
    if (known !== undefined) return known;
    if (!this.#counted.has(offer.id)) {
      if (this.#counted.size >= modelRate.limit) return "rate_limited";
      this.#counted.add(offer.id);
    }
    if (this.#fences.has(`${offer.member}/${offer.id}`)) return "fenced";
    if (this.#revoked.has(offer.member)) return "refused unauthorized";
    if (offer.to < 3 && this.#revoked.has(offer.to)) return "refused destination_not_found";
    if (offer.to === 4 && offer.member !== 0) return "refused not_subscribed";
    this.accepted.push({ id: offer.id, sender: offer.member, content: contentOf(offer) });
    return `accepted ${this.accepted.length}`;
  }

  fence(offer: Send): string {
    const key = `${offer.member}/${offer.id}`;
    if (!this.#fences.has(key)) {
      const known = this.lookUp(offer);
      if (known?.startsWith("duplicate")) return known.replace("duplicate", "committed");
      if (known !== undefined) return "taken";
      this.#fences.add(key);
    }
    return "fenced";
  }

  revoke(member: number): void {
    this.#revoked.add(member);
  }

  nextWindow(): void {
    this.#counted = new Set();
  }
}

function contentOf({ body, to }: Send): string {
  return `${to}/${body}`;
}

type Open = {
  readonly send: Send;
  readonly sinceMs: number;
  readonly release: () => void;
  readonly done: Promise<string>;
};

/** The store under the same steps. */
class Run {
  readonly #world: World;
  readonly #members: readonly string[];
  readonly open: Open[] = [];
  readonly #started: Send[] = [];

  constructor(world: World, members: readonly string[]) {
    this.#world = world;
    this.#members = members;
  }

  memberAt(index: number): string {
    return this.#members[index] ?? "";
  }

  requestOf({ id, body, to }: Send): AcceptRequest {
    const destination = to === 3 ? topic("open") : to === 4 ? topic("inner") : dm(this.memberAt(to));
    return send(`m${id}`, destination, `body ${body}`);
  }

  sendOf({ send: fresh, repeat }: Offer): Send {
    const repeated = repeat === undefined ? undefined : this.#started[repeat % this.#started.length];
    return repeated ?? fresh;
  }

  /** Resolves with the answer, or with undefined when the send waits after its look-up. */
  async start(offer: Send): Promise<string | undefined> {
    this.#started.push(offer);
    const sinceMs = this.#world.nowMs;
    const gate = Promise.withResolvers<void>();
    const pastLookUp = Promise.withResolvers<undefined>();
    const afterLookUp = () => {
      pastLookUp.resolve(undefined);
      return gate.promise;
    };
    const result = this.#world.accept(this.memberAt(offer.member), this.requestOf(offer), { afterLookUp });
    const done = result.then((outcome) => {
      if (outcome.type === "refused") return `refused ${outcome.code}`;
      return "historyId" in outcome ? `${outcome.type} ${outcome.historyId}` : outcome.type;
    });
    const answer = await Promise.race([pastLookUp.promise, done]);
    if (answer === undefined) this.open.push({ send: offer, sinceMs, release: gate.resolve, done });
    return answer;
  }

  async fence(offer: Send): Promise<string> {
    const fate = await this.#world.fence(this.memberAt(offer.member), this.requestOf(offer));
    return fate.fate === "committed" ? `committed ${fate.historyId}` : fate.fate;
  }
}

async function playSteps(world: World, steps: readonly Step[], met: Map<string, number>): Promise<void> {
  const members = await world.threeMembers();
  await world.addTopic("open", [members[0], members[1]]);
  await world.addTopic("inner", [members[0]], "subscribers");
  const run = new Run(world, members);
  const model = new Model();
  const meet = (label: string | undefined) => {
    const kind = label?.split(" ", 1)[0] ?? "waiting";
    met.set(kind, (met.get(kind) ?? 0) + 1);
  };
  const finish = async ({ send: offer, sinceMs, release, done }: Open) => {
    release();
    const answer = await done;
    expect(answer).toBe(model.finish(offer, world.nowMs - sinceMs));
    meet(answer);
  };
  for (const step of steps) {
    if (step.do === "start") {
      const started = run.sendOf(step);
      const answer = await run.start(started);
      expect(answer).toBe(model.lookUp(started));
      meet(answer);
    } else if (step.do === "finish") {
      const [held] = run.open.length === 0 ? [] : run.open.splice(step.which % run.open.length, 1);
      if (held !== undefined) await finish(held);
    } else if (step.do === "fence") {
      const fenced = run.sendOf(step);
      const fate = await run.fence(fenced);
      expect(fate).toBe(model.fence(fenced));
      meet(`fence_${fate}`);
    } else if (step.do === "revoke") {
      await world.revoke(run.memberAt(step.member));
      model.revoke(step.member);
    } else {
      // Asleep for whole windows, so that the model's window is the store's.
      world.nowMs += step.do === "sleep" ? Math.ceil((underWayMs + 1) / windowMs) * windowMs : windowMs;
      model.nextWindow();
    }
  }
  for (const held of run.open) await finish(held);
  const stored = await world.query(
    `SELECT client_message_id, sender_pubkey FROM ${world.table("message_history")}
     WHERE mesh_id = '${world.meshId}' ORDER BY history_id`,
  );
  expect(stored.map((row) => [row.client_message_id, row.sender_pubkey])).toEqual(
    model.accepted.map(({ id, sender }) => [`m${id}`, run.memberAt(sender)]),
  );
  const count = model.accepted.length;
  expect(await world.effects()).toMatchObject({ dedupe: count, message: count, history: count });
}

export function describeModel(shared: () => World): void {
  test("random interleavings of sends, fences, revocations and time answer as the naive model does", async () => {
    const met = new Map<string, number>();
    let runs = 0;
    const property = fc.asyncProperty(
      fc.array(anyStep, { minLength: 30, maxLength: 60, size: "max" }),
      async (steps) => {
        // A mesh of its own is as good as a database of its own.
        const world = await shared().startOther(`mesh-of-run-${++runs}`);
        try {
          await playSteps(world, steps, met);
        } finally {
          await world.close();
        }
      },
    );
    await fc.assert(property, { numRuns: 60 });
    // A run that never met a case would prove nothing about it.
    const floors = {
      accepted: 60,
      duplicate: 60,
      reused: 15,
      owned_by_another: 30,
      fenced: 20,
      rate_limited: 15,
      refused: 50,
      outdated: 50,
      fence_fenced: 30,
      fence_committed: 10,
      fence_taken: 10,
    };
    for (const [kind, floor] of Object.entries(floors)) {
      expect(met.get(kind) ?? 0, `how often ${kind} was met`).toBeGreaterThanOrEqual(floor);
    }
  });
}
