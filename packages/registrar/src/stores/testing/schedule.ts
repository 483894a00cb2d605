// One random schedule: several clients on several brokers over one store, with crashes at the fault points, clocks that
// jump, revocations and compensations between them. Answers are held to the naive model, and rows to the invariants.
import { expect } from "vitest";
import { type ModelApproval, type ModelRequest, NaiveModel } from "../../../../../tests/support/naive-registrar.ts";
import type { Random } from "../../../../../tests/support/seed.ts";
import type { Verifier } from "../../services/verify-registration.ts";
import {
  type Answered,
  artifact,
  type Broker,
  type Person,
  type RegistrarHarness,
  RegistrarWorld,
} from "../suites/world.ts";

export type Met = Map<string, number>;

const effects = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
const keys = effects.map((effect) => `key-${effect}`);
const brokersPerSchedule = 2;
const steps = 16;
const failing: Verifier = { name: "failing", verify: async () => ({ type: "failed", reason: "as the test wants" }) };
const silent: Verifier = {
  name: "silent",
  verify: async () => ({ type: "inconclusive", reason: "as the test wants" }),
};

class Crash extends Error {
  override readonly name = "Crash";
}

export class Schedule {
  readonly #world: RegistrarWorld;
  readonly #random: Random;
  readonly #met: Met;
  readonly #model: NaiveModel;
  readonly #owners: Person[];
  readonly #brokers: Broker[] = [];
  readonly #approvals: ModelApproval[] = [];
  readonly #asked: ModelRequest[] = [];
  #refusals = 0;

  private constructor(world: RegistrarWorld, random: Random, met: Met, owners: Person[]) {
    this.#world = world;
    this.#random = random;
    this.#met = met;
    this.#owners = owners;
    this.#model = new NaiveModel(world.nowMs);
  }

  static async play(harness: RegistrarHarness, random: Random, met: Met): Promise<void> {
    const world = await RegistrarWorld.start(harness);
    const schedule = new Schedule(world, random, met, [world.owner, await world.addPerson("owner")]);
    schedule.#brokers.push(world.broker);
    while (schedule.#brokers.length < brokersPerSchedule) schedule.#brokers.push(await world.addBroker());
    for (let step = 0; step < steps; step++) await schedule.#step();
    await schedule.#end();
    await world.close();
  }

  async #step(): Promise<void> {
    const dice = this.#random.below(100);
    if (dice < 46) await this.#ask(await this.#freshRequest());
    else if (dice < 55) await this.#ask(this.#repeated() ?? (await this.#freshRequest()));
    else if (dice < 63) await this.#ask(await this.#mixedRequest());
    else if (dice < 75) await this.#collide();
    else if (dice < 80) await this.#crash("beforeCommit");
    else if (dice < 88) await this.#crash("afterCommit");
    else if (dice < 93) await this.#compensate();
    else if (dice < 95) await this.#revoke();
    else if (dice < 98) this.#jump();
    else if (dice < 99) await this.#burst();
    else await this.#finish(this.#broker());
  }

  #broker(): Broker {
    const broker = this.#random.pick(this.#brokers);
    const dice = this.#random.below(10);
    broker.verifier = dice < 6 ? undefined : dice < 9 ? failing : silent;
    return broker;
  }

  #meet(what: string): void {
    this.#met.set(what, (this.#met.get(what) ?? 0) + 1);
  }

  async #approve(effect: number, key?: string): Promise<ModelApproval> {
    const owner = this.#random.below(4) === 0 ? 1 : 0;
    const { nowMs } = this.#world;
    const dice = this.#random.below(12);
    const notBefore = dice === 0 ? nowMs + 1_000 : nowMs;
    const notAfter = dice === 1 ? nowMs + 1_000 : nowMs + 3_600_000;
    const purpose = key === undefined ? "register" : "compensate";
    const granted = await this.#world.grant(
      {
        ...effectOf(effect),
        purpose,
        not_before: notBefore,
        not_after: notAfter,
        ...(key === undefined ? {} : { logical_request_key: key }),
      },
      this.#owners[owner],
    );
    const approval = { owner, effect, purpose, key, notBefore, notAfter, revoked: false, spent: false } as const;
    const made: ModelApproval = { ...approval, id: granted.approval_id, nonce: granted.authorization_nonce };
    this.#approvals.push(made);
    return made;
  }

  /** What a client asks for that has not asked before: mostly something that is free. */
  async #freshRequest(): Promise<ModelRequest> {
    const taken = new Set([...this.#model.consumed.values()].map(({ effect }) => effect));
    const free = effects.filter((effect) => !taken.has(effect));
    const freeKeys = keys.filter((key) => !this.#model.consumed.has(key));
    const wild = this.#random.below(10) === 0 || free.length === 0 || freeKeys.length === 0;
    const effect = this.#random.pick(wild ? effects : free);
    const key = this.#random.pick(wild ? keys : freeKeys);
    const expiry = this.#random.below(12);
    return {
      key,
      effect,
      approval: await this.#approve(effect),
      rightNonce: true,
      expiresAt: expiry === 0 ? this.#world.nowMs - 1 : expiry === 1 ? this.#world.nowMs + 600_000 : undefined,
    };
  }

  #repeated(): ModelRequest | undefined {
    return this.#asked.length === 0 ? undefined : this.#random.pick(this.#asked);
  }

  /** Parts that do not belong together: nonces used again, of others, for other effects, and guesses. */
  async #mixedRequest(): Promise<ModelRequest> {
    const spent = this.#approvals.filter((approval) => approval.spent && approval.purpose === "register");
    const freeKeys = keys.filter((key) => !this.#model.consumed.has(key));
    if (spent.length > 0 && freeKeys.length > 0 && this.#random.below(3) > 0) {
      const approval = this.#random.pick(spent);
      return {
        key: this.#random.pick(freeKeys),
        effect: approval.effect,
        approval,
        rightNonce: true,
        expiresAt: undefined,
      };
    }
    const approval = this.#random.below(4) === 0 ? undefined : this.#approvals.at(this.#random.below(8));
    const effect = this.#random.pick(effects);
    const rightNonce = this.#random.below(2) === 0;
    return { key: this.#random.pick(keys), effect, approval, rightNonce, expiresAt: undefined };
  }

  #inputOf({ key, effect, approval, rightNonce, expiresAt }: ModelRequest) {
    return {
      ...effectOf(effect),
      protocol_version: "1" as const,
      logical_request_key: key,
      attempt_id: this.#world.fresh("attempt"),
      approval_id: approval?.id ?? "unknown",
      authorization_nonce: rightNonce && approval !== undefined ? approval.nonce : "guess",
      ...(expiresAt === undefined ? {} : { expires_at: expiresAt }),
    };
  }

  #send(broker: Broker, request: ModelRequest): Promise<Answered> {
    this.#meet("requests");
    return broker.register(this.#inputOf(request), this.#world.member);
  }

  async #ask(request: ModelRequest): Promise<void> {
    const expected = this.#model.expect(request);
    const broker = this.#broker();
    const answer = await this.#send(broker, request);
    this.#asked.push(request);
    expect(outcomeOf(answer)).toBe(expected);
    this.#take(request, answer);
  }

  /** Writes down what an answer means, and that it tells of the registration that is known. */
  #take(request: ModelRequest, answer: Answered): void {
    const outcome = outcomeOf(answer);
    this.#meet(outcome);
    if (answer.status > 400) this.#refusals += 1;
    if (outcome === "registered") {
      this.#model.consume(request, answer.body.state as never, idOf(answer.body));
      return;
    }
    const prior = this.#model.consumed.get(request.key);
    if (outcome !== "duplicate" && outcome !== "ATTEMPT_COLLISION") return;
    expect(prior).toBeDefined();
    if (prior === undefined) return;
    prior.registrationId ??= idOf(answer.body);
    expect(idOf(answer.body)).toBe(prior.registrationId);
    if (outcome === "duplicate") expect(answer.body.state).toBe(prior.state);
  }

  /** Several at once: one request on several brokers, or requests that want the same nonce or the same effect. */
  async #collide(): Promise<void> {
    const first = { ...(await this.#freshRequest()), expiresAt: undefined };
    const expected = this.#model.expect(first);
    const others = keys.filter((key) => key !== first.key && !this.#model.consumed.has(key));
    const kind = others.length === 0 ? 0 : this.#random.below(4);
    const rival: ModelRequest =
      kind === 3
        ? { ...first, key: this.#random.pick(others), approval: await this.#approve(first.effect) }
        : kind === 2
          ? { ...first, key: this.#random.pick(others) }
          : first;
    const requests = [first, rival, ...(kind === 0 ? [first] : [])];
    const answers = await Promise.all(requests.map((request) => this.#send(this.#broker(), request)));
    const winner = answers.findIndex(({ status }) => status === 201);
    if (expected !== "registered") {
      for (const [index, answer] of answers.entries()) {
        if (requests[index] === first) expect(outcomeOf(answer)).toBe(expected);
      }
    } else {
      expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    }
    const won = requests[winner];
    const winning = answers[winner];
    if (won !== undefined && winning !== undefined) this.#take(won, winning);
    for (const [index, answer] of answers.entries()) {
      const request = requests[index];
      if (index === winner || request === undefined) continue;
      const outcome = outcomeOf(answer);
      const allowed = request === won ? ["duplicate", "ATTEMPT_COLLISION"] : [this.#model.expect(request)];
      expect(allowed).toContain(outcome);
      this.#takeLoser(request, answer);
    }
    this.#asked.push(first, rival);
  }

  /** A loser may see the winner before its verification is there. */
  #takeLoser(request: ModelRequest, answer: Answered): void {
    const outcome = outcomeOf(answer);
    this.#meet(outcome);
    if (answer.status > 400) this.#refusals += 1;
    const prior = this.#model.consumed.get(request.key);
    if ((outcome !== "duplicate" && outcome !== "ATTEMPT_COLLISION") || prior === undefined) return;
    prior.registrationId ??= idOf(answer.body);
    expect(idOf(answer.body)).toBe(prior.registrationId);
  }

  /** The broker dies before or after the commit of this request; another broker goes on. */
  async #crash(point: "beforeCommit" | "afterCommit"): Promise<void> {
    const request = await this.#freshRequest();
    const expected = this.#model.expect(request);
    const broker = this.#random.pick(this.#brokers);
    broker.crash[point] = () => {
      throw new Crash(point);
    };
    this.#meet("requests");
    const end = await broker.register(this.#inputOf(request), this.#world.member).catch((error: unknown) => error);
    broker.crash[point] = undefined;
    this.#asked.push(request);
    if (!(end instanceof Crash)) {
      expect(expected).not.toBe("registered");
      expect(outcomeOf(end as Answered)).toBe(expected);
      this.#take(request, end as Answered);
      return;
    }
    // A decision that writes nothing may die at its commit as well, and has changed nothing.
    this.#meet(point === "afterCommit" ? "crashed_after" : "crashed_before");
    if (point === "afterCommit" && expected === "registered") this.#model.consume(request, "inert", undefined);
    this.#brokers.splice(this.#brokers.indexOf(broker), 1, await this.#world.addBroker());
    if (this.#random.below(2) === 0) await this.#finish(this.#brokers.at(-1) ?? broker);
  }

  /** What a start does: everything inert gets a verdict. */
  async #finish(broker: Broker): Promise<void> {
    const fails = this.#random.below(2) === 0;
    broker.verifier = fails ? failing : undefined;
    await broker.finish();
    for (const consumed of this.#model.consumed.values()) {
      if (consumed.state === "inert") consumed.state = fails ? "verify_failed" : "registered_closed";
    }
    this.#meet("finished");
  }

  async #compensate(): Promise<void> {
    const failed = [...this.#model.consumed].filter(([, { state }]) => state === "verify_failed");
    const [key, consumed] = failed.length > 0 ? this.#random.pick(failed) : [this.#random.pick(keys), undefined];
    const effect = consumed?.effect ?? this.#random.pick(effects);
    const used = this.#approvals.filter(({ purpose }) => purpose === "compensate");
    const again = used.length > 0 && this.#random.below(5) === 0;
    const approval = again ? this.#random.pick(used) : await this.#approve(effect, key);
    const expected = this.#model.expectCompensation(key, approval);
    const granted = { approval_id: approval.id, authorization_nonce: approval.nonce };
    const answer = await this.#broker().compensate(key, granted, this.#owners[approval.owner]);
    const outcome = answer.status === 201 ? "compensated" : outcomeOf(answer);
    expect(outcome).toBe(expected);
    this.#meet(outcome === "compensated" ? "compensations" : `compensate_${outcome}`);
    if (answer.status > 400) this.#refusals += 1;
    if (outcome !== "compensated" || consumed === undefined) return;
    consumed.state = "compensated";
    approval.spent = true;
  }

  async #revoke(): Promise<void> {
    if (this.#approvals.length === 0) return;
    const approval = this.#random.pick(this.#approvals);
    await this.#broker().revoke(approval.id, this.#owners[0]);
    approval.revoked = true;
    this.#meet("revocations");
  }

  #jump(): void {
    const span = this.#random.pick([1_000, 60_000, 3_600_000, 86_400_000, -1_000, -3_600_000]);
    this.#world.nowMs += span;
    this.#model.nowMs = this.#world.nowMs;
    this.#meet("jumps");
  }

  /** More refusals than a window has rows for. */
  async #burst(): Promise<void> {
    const free = keys.find((key) => !this.#model.consumed.has(key));
    if (free === undefined || this.#random.below(4) > 0) return;
    const request = { key: free, effect: 0, approval: undefined, rightNonce: false, expiresAt: undefined };
    for (let n = 0; n < 70; n++) {
      const answer = await this.#broker().register(this.#inputOf(request), this.#world.member);
      expect(answer.status).toBe(403);
      this.#refusals += 1;
    }
    this.#meet("bursts");
  }

  async #end(): Promise<void> {
    await this.#finish(this.#random.pick(this.#brokers));
    const stored = await this.#world.broker.store.requests.list(this.#world.meshId, "", 1_000);
    // Exactly what the model knows: one consumption and one registration per key and effect, in the model's state.
    const known = [...this.#model.consumed].map(([key, { effect, owner, state }]) => ({ key, effect, owner, state }));
    const found = stored.map(({ registration, consumption, verification, compensation }) => ({
      key: registration.logicalRequestKey,
      effect: Number(registration.runId.slice("run-".length)),
      owner: this.#owners.findIndex(({ pubkey }) => pubkey === consumption.binding),
      state: compensation === undefined ? verification?.state : "compensated",
    }));
    const byKey = (a: { key: string }, b: { key: string }) => (a.key < b.key ? -1 : 1);
    expect(found.sort(byKey)).toEqual(known.sort(byKey));
    expect(new Set(found.map(({ effect }) => effect)).size).toBe(found.length);
    const spent = new Set(stored.map(({ consumption }) => consumption.approvalId));
    expect(spent.size).toBe(stored.length);
    for (const approval of this.#approvals) {
      if (approval.purpose === "register") expect(spent.has(approval.id)).toBe(approval.spent);
    }
    for (const { registration } of stored) {
      const { registrationId } = this.#model.consumed.get(registration.logicalRequestKey) ?? {};
      if (registrationId !== undefined) expect(registration.registrationId).toBe(registrationId);
    }
    expect(await this.#audited()).toBe(this.#refusals);
  }

  /** Refusals that the audit tells of, one by one or as a number. */
  async #audited(): Promise<number> {
    const sum = async (table: string) => {
      const [row] = await this.#world.harness.query(
        `SELECT coalesce(sum(suppressed), 0) AS n FROM ${this.#world.table(table)} WHERE mesh_id = '${this.#world.meshId}'`,
      );
      return Number(row?.n);
    };
    const rows = await this.#world.count("registrar_audit", "kind = 'refusal'");
    return rows + (await sum("registrar_audit")) + (await sum("registrar_audit_window"));
  }
}

function effectOf(effect: number) {
  return { operation: "release", target: "prod", artifact_hash: artifact(`v${effect}`), run_id: `run-${effect}` };
}

function outcomeOf({ status, body }: Answered): string {
  if (status === 201) return "registered";
  if (status === 200) return "duplicate";
  return String(body.conflict ?? body.code ?? body.error);
}

function idOf(body: Readonly<Record<string, unknown>>): string {
  return String((body.registration as Record<string, unknown> | undefined)?.registration_id);
}
