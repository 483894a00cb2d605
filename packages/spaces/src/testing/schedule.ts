// One random schedule: three sessions that build, send, lose answers, reconnect, take over, branch and merge, and a
// service that crashes under them. Everything that the engine accepts is held against the naive space. Fails by
// throwing, so that the run shrinks.
import assert from "node:assert/strict";
import { MeshError } from "@claudemesh/protocol/errors";
import { NaiveSpace } from "../../../../tests/support/naive-space.ts";
import { entityIds } from "../../../../tests/support/random-space-work.ts";
import { createRandom, type Random } from "../../../../tests/support/seed.ts";
import type { Verdict } from "../core/verdict.ts";
import type { SpaceRef } from "../ports/rows.ts";
import type { SpacePorts } from "../ports.ts";
import { createBranch, deleteBranch } from "../services/branches.ts";
import { changesByPrefix } from "../services/changes.ts";
import { commitToSpace } from "../services/commit/commit.ts";
import { proposeMerge } from "../services/merges.ts";
import { type OpenedSession, openSession } from "../services/open-session.ts";
import { readLog, readMany } from "../services/query.ts";
import { createSpace } from "../services/spaces.ts";
import { SimulatedClient, type Work } from "./simulated-client.ts";

export const stepKinds = [
  ...Array<"build">(9).fill("build"),
  ...Array<"deliver">(11).fill("deliver"),
  ...Array<"sync">(4).fill("sync"),
  "reconnect",
  "takeover",
  "ghost",
  "replay",
  "branch",
  "branch",
  ...Array<"merge">(4).fill("merge"),
  "crash",
  "flush",
  "burst",
  "burst",
] as const;
export type Step = { readonly do: (typeof stepKinds)[number]; readonly client: number; readonly salt: number };

export type Fault = "before" | "after";

/** The engine over one store that survives it, for a new space. */
export interface ScheduleHost {
  /** One of several services over the store, in turn. */
  ports(): SpacePorts;
  /** As after a crash of the service. */
  restart(): Promise<void>;
  /** The next transaction fails before it is committed, or its answer is lost after. */
  failNext(when: Fault | undefined): void;
}

export type Tally = Record<
  | "accepted"
  | "rejected"
  | "refused"
  | "pendingReads"
  | "movedReads"
  | "deepStacks"
  | "merges"
  | "takeovers"
  | "replays"
  | "crashes"
  | "lost"
  | "shared"
  | "revoked",
  number
>;

export function newTally(): Tally {
  return {
    accepted: 0,
    rejected: 0,
    refused: 0,
    pendingReads: 0,
    movedReads: 0,
    deepStacks: 0,
    merges: 0,
    takeovers: 0,
    replays: 0,
    crashes: 0,
    lost: 0,
    shared: 0,
    revoked: 0,
  };
}

/** `before`: what was known of it when it was sent. */
type Sent = { readonly client: SimulatedClient; readonly work: Work; readonly before: Work["fate"] };

type Ghost = { readonly client: SimulatedClient; readonly work: Work; readonly opened: OpenedSession };

export class Schedule {
  readonly #host: ScheduleHost;
  readonly #space: SpaceRef;
  readonly #tally: Tally;
  readonly #model = new NaiveSpace();
  readonly #clients: SimulatedClient[] = [];
  readonly #ghosts: Ghost[] = [];
  #fresh = 1;
  #opens = 0;
  #branchesMade = 0;

  constructor(host: ScheduleHost, space: SpaceRef, tally: Tally) {
    this.#host = host;
    this.#space = space;
    this.#tally = tally;
  }

  async run(members: readonly string[], steps: readonly Step[]): Promise<void> {
    const [creator = ""] = members;
    await createSpace(this.#host.ports(), this.#space, { signedWrites: "optional", createdBy: creator });
    for (const member of members) {
      const opened = await openSession(this.#host.ports(), this.#space, member, { openId: this.#openId() });
      this.#clients.push(new SimulatedClient(member, opened));
    }
    for (const step of steps) {
      const client = this.#clients[step.client % this.#clients.length];
      if (client !== undefined) await this.#take(step, client, createRandom(step.salt));
    }
    await this.#checkEnd(createRandom(steps.length));
  }

  #openId(): string {
    return `open-${++this.#opens}`;
  }

  async #take(step: Step, client: SimulatedClient, random: Random): Promise<void> {
    switch (step.do) {
      case "build":
        for (let count = 1 + random.below(3); count > 0; count -= 1) {
          client.build(this.#model, random, () => this.#fresh++);
        }
        return;
      case "deliver":
        await this.#deliver(client, random);
        return;
      case "flush":
        await this.#flush(client, random);
        return;
      case "burst":
        await this.#burst(random);
        return;
      case "sync":
        client.basis += random.below(this.#model.lastSeq - client.basis + 1);
        return;
      case "reconnect":
        await this.#reconnect(client, random);
        return;
      case "takeover":
        await this.#takeOver(client, random);
        return;
      case "ghost":
        await this.#hearGhost(random);
        return;
      case "replay":
        await this.#replay(client, random);
        return;
      case "branch":
        this.#branch(client, random);
        if (random.below(2) === 0) await this.#flush(client, random);
        return;
      case "merge":
        await this.#merge(client, random);
        return;
      case "crash":
        await this.#crash();
    }
  }

  async #flush(client: SimulatedClient, random: Random): Promise<void> {
    if (!client.connected) await this.#reconnect(client, random);
    while (client.connected && client.sent < client.works.length) await this.#deliver(client, random);
  }

  async #deliver(client: SimulatedClient, random: Random): Promise<void> {
    if (!client.connected) await this.#reconnect(client, random);
    const work = client.works[client.sent];
    if (work === undefined) return;
    client.sent += 1;
    const fault = random.below(20);
    if (fault < 2) this.#host.failNext(fault === 0 ? "before" : "after");
    const isHeard = await this.#send(client, work);
    this.#host.failNext(undefined);
    if (!isHeard || random.below(8) === 0) {
      this.#tally.lost += 1;
      client.connected = false;
    } else {
      work.heard = true;
    }
  }

  /** Sends once and takes note of what became of it; false: no answer came. */
  async #send(client: SimulatedClient, work: Work): Promise<boolean> {
    const before = work.fate;
    let verdict: Verdict;
    try {
      verdict = await this.#request(client, work, client.opened);
    } catch (error) {
      if (!(error instanceof MeshError)) {
        await this.#learnFromLog(work);
        return false;
      }
      this.#noteRefused(work, error);
      return true;
    }
    if (before === undefined || before.type === "refused") this.#note(client, work, verdict);
    else this.#noteReplayed(before, verdict);
    return true;
  }

  #noteRefused(work: Work, error: MeshError): void {
    const { fate } = work;
    assert(fate === undefined || fate.type === "refused", `a verdict became ${error.code}`);
    work.fate = { type: "refused", code: error.code };
    this.#tally.refused += 1;
  }

  #noteReplayed(before: NonNullable<Work["fate"]>, verdict: Verdict): void {
    this.#tally.replays += 1;
    assert(verdict.replayed, "a commit was decided twice");
    if (verdict.type === "accepted") assert.deepEqual(before, { type: "accepted", seq: verdict.seq });
    else if (before.type === "rejected" && before.body !== "")
      assert.equal(before.body, JSON.stringify(verdict.error.toBody()));
  }

  /** All that the clients have to send, at once: those that wait for each other share transactions. */
  async #burst(random: Random): Promise<void> {
    const sent: Sent[] = [];
    for (const client of this.#clients) {
      if (!client.connected) await this.#reconnect(client, random);
      for (const work of client.works.slice(client.sent)) sent.push({ client, work, before: work.fate });
      client.sent = client.works.length;
    }
    const fault = random.below(8);
    if (fault < 2) this.#host.failNext(fault === 0 ? "before" : "after");
    const outcomes = await Promise.allSettled(
      sent.map(({ client, work }) => this.#request(client, work, client.opened)),
    );
    this.#host.failNext(undefined);
    this.#tally.shared += await this.#learnBurst(sent);
    for (const [index, outcome] of outcomes.entries()) {
      const each = sent[index];
      if (each !== undefined) this.#hear(each, outcome);
    }
  }

  /** The log says in which order they were accepted. */
  async #learnBurst(sent: readonly Sent[]): Promise<number> {
    const { items } = await readLog(this.#host.ports(), this.#space, { after: this.#model.lastSeq }, 1_000);
    for (const { seq, sessionId, localSeq } of items) {
      const found = sent.find(
        ({ client, work }) => client.opened.sessionId === sessionId && work.localSeq === localSeq,
      );
      assert(found !== undefined, `commit ${seq} was never sent`);
      this.#noteAccepted(found.client, found.work, seq);
    }
    return items.length;
  }

  #hear({ client, work, before }: Sent, outcome: PromiseSettledResult<Verdict>): void {
    if (outcome.status === "rejected") {
      if (outcome.reason instanceof MeshError) {
        this.#noteRefused(work, outcome.reason);
        return;
      }
      this.#tally.lost += 1;
      client.connected = false;
      return;
    }
    work.heard = true;
    const verdict = outcome.value;
    if (before !== undefined && before.type !== "refused") {
      this.#noteReplayed(before, verdict);
    } else if (verdict.type === "accepted") {
      assert.deepEqual(work.fate, { type: "accepted", seq: verdict.seq });
    } else {
      assert(work.fate?.type !== "accepted", "a rejected commit is in the log");
      work.fate = { type: "rejected", code: verdict.error.code, body: JSON.stringify(verdict.error.toBody()) };
      this.#tally.rejected += 1;
    }
  }

  #request(client: SimulatedClient, work: Work, opened: OpenedSession): Promise<Verdict> {
    const ports = this.#host.ports();
    const { sessionId, sessionToken } = opened;
    const { request, localSeq } = work;
    if (request.kind === "commit") {
      return commitToSpace(ports, this.#space, client.member, { sessionId, sessionToken, commit: request.commit });
    }
    const { kind: _, ...rest } = request;
    const full = { sessionId, sessionToken, localSeq, ...rest };
    return request.kind === "create"
      ? createBranch(ports, this.#space, client.member, full)
      : deleteBranch(ports, this.#space, client.member, full);
  }

  #note(client: SimulatedClient, work: Work, verdict: Verdict): void {
    if (verdict.type === "accepted") {
      this.#noteAccepted(client, work, verdict.seq);
      return;
    }
    const { code } = verdict.error;
    work.fate = { type: "rejected", code, body: JSON.stringify(verdict.error.toBody()) };
    this.#tally.rejected += 1;
    // What was decided before its answer was lost was decided on another state.
    if (verdict.replayed) return;
    if (code === "patch_error") {
      assert(!this.#model.fits(work.branch, work.operations), "a patch that fits was refused");
    } else if (code === "dependency_rejected_error") {
      const fates = client.works.filter(({ localSeq }) => work.named.has(localSeq)).map(({ fate }) => fate?.type);
      assert(
        fates.some((type) => type !== "accepted"),
        "all that the commit builds on was accepted",
      );
    }
  }

  /** SPC-2, SPC-3: what the engine accepts, the naive space accepts, and every read is what is there just before it. */
  #noteAccepted(client: SimulatedClient, work: Work, seq: number): void {
    assert.equal(seq, this.#model.lastSeq + 1, "a seq is missing or taken twice");
    for (const read of work.reads) {
      const objection = this.#model.refute(read);
      assert(objection === undefined, `commit ${seq} was accepted, but its ${objection}`);
    }
    for (const named of client.works.filter(({ localSeq }) => work.named.has(localSeq))) {
      assert.equal(named.fate?.type, "accepted", "a commit was accepted on a layer that was not");
    }
    if (work.request.kind === "commit") {
      assert(this.#model.fits(work.branch, work.operations), "a patch was accepted that does not fit");
    }
    this.#accept(work);
    work.fate = { type: "accepted", seq };
    this.#tally.accepted += 1;
    this.#tally.pendingReads += work.throughPending;
    this.#tally.movedReads += work.throughMoves;
    if (work.named.size >= 3) this.#tally.deepStacks += 1;
    if (work.isMerge) this.#tally.merges += 1;
  }

  #accept(work: Work): void {
    const { request } = work;
    if (request.kind === "create") this.#model.acceptBranch(request.name, request.fromBranch, request.atSeq);
    else if (request.kind === "delete") this.#model.acceptDeletion(request.name);
    else this.#model.accept(work.branch, work.operations);
  }

  /** The answer was lost: the log says whether it happened, so that the model knows before another client commits. */
  async #learnFromLog(work: Work): Promise<void> {
    const { items } = await readLog(this.#host.ports(), this.#space, { after: this.#model.lastSeq }, 10);
    assert(items.length <= 1, "more was committed than was sent");
    const [entry] = items;
    if (entry === undefined) return;
    const client = this.#clients.find(({ works }) => works.includes(work));
    assert(client !== undefined && entry.localSeq === work.localSeq && entry.sessionId === client.opened.sessionId);
    this.#noteAccepted(client, work, entry.seq);
  }

  async #open(client: SimulatedClient, random: Random): Promise<OpenedSession> {
    const { sessionId, sessionToken } = client.opened;
    const request = { openId: this.#openId(), sessionId, sessionToken };
    const open = () => openSession(this.#host.ports(), this.#space, client.member, request);
    const opened = await open();
    // The answer is lost, and asked for again.
    if (random.below(3) === 0) assert.deepEqual(await open(), opened);
    return opened;
  }

  async #reconnect(client: SimulatedClient, random: Random): Promise<void> {
    client.opened = await this.#open(client, random);
    const resolved = client.works.filter(({ fate }) => fate !== undefined && fate.type !== "refused").at(-1);
    assert(client.opened.lastLocalSeq >= (resolved?.localSeq ?? 0), "a resolved commit is forgotten");
    client.rewind();
  }

  /** Another connection takes the session while the old one still has requests on their way. */
  async #takeOver(client: SimulatedClient, random: Random): Promise<void> {
    const old = client.opened;
    const unsent = client.works.slice(client.sent);
    const onTheirWay = unsent.length > 0 ? unsent : client.works.slice(-1);
    for (const work of onTheirWay) this.#ghosts.push({ client, work, opened: old });
    await this.#reconnect(client, random);
    this.#tally.takeovers += 1;
  }

  async #hearGhost(random: Random): Promise<void> {
    const [ghost] = this.#ghosts.splice(random.below(Math.max(1, this.#ghosts.length)), 1);
    if (ghost === undefined) return;
    const { client, work, opened } = ghost;
    await assert.rejects(this.#request(client, work, opened), { name: "SessionRevokedError" });
    const { seq } = await readMany(this.#host.ports(), this.#space, [], {});
    assert.equal(seq, this.#model.lastSeq, "a revoked holder committed");
    this.#tally.revoked += 1;
  }

  async #replay(client: SimulatedClient, random: Random): Promise<void> {
    const decided = client.works.filter(({ fate }) => fate !== undefined && fate.type !== "refused");
    if (decided.length > 0) await this.#send(client, random.pick(decided));
  }

  #branch(client: SimulatedClient, random: Random): void {
    if (random.below(4) === 0) {
      const name = random.pick(this.#model.branches);
      if (name !== "") client.enqueueLifecycle({ kind: "delete", name });
      return;
    }
    const fromBranch = random.pick(this.#model.liveBranches);
    const atSeq = Math.max(0, this.#model.lastSeq - random.below(4));
    client.enqueueLifecycle({ kind: "create", name: `b${++this.#branchesMade}`, fromBranch, atSeq });
  }

  async #merge(client: SimulatedClient, random: Random): Promise<void> {
    await this.#flush(client, random);
    const branches = this.#model.liveBranches;
    const [source, target] = [random.pick(branches), random.pick(branches)];
    if (source === target) return;
    const ports = this.#host.ports();
    let plan = await proposeMerge(ports, this.#space, { source, target }, new Map());
    if (plan.status === "conflict") {
      const chosen = plan.conflicts.map((conflict) => {
        const value = random.pick([conflict.source, conflict.target, { value: { a: this.#fresh++ } }]);
        return [conflict.id, value] as const;
      });
      plan = await proposeMerge(ports, this.#space, { source, target }, new Map(chosen));
    }
    if (plan.status !== "ready") return;
    client.enqueueMerge(this.#model, plan.proposal);
    // Some are sent at once, and others wait until they may be stale.
    if (random.below(2) === 0) await this.#flush(client, random);
  }

  async #crash(): Promise<void> {
    await this.#host.restart();
    for (const client of this.#clients) client.connected = false;
    this.#tally.crashes += 1;
  }

  /** Final state is the serial replay, on every branch, now and in the past; and a client that catches up gets there. */
  async #checkEnd(random: Random): Promise<void> {
    const ports = this.#host.ports();
    const { lastSeq } = this.#model;
    for (const branch of this.#model.branches) {
      for (const atSeq of [lastSeq, random.below(lastSeq + 1)]) {
        const { items } = await readMany(ports, this.#space, entityIds, { branch, atSeq });
        const found = items.flatMap(({ id, document }) => (document === undefined ? [] : [[id, document] as const]));
        assert.deepEqual(new Map(found), sorted(this.#model.stateAt(branch, atSeq)), `"${branch}" at ${atSeq}`);
      }
      const sinceSeq = random.below(lastSeq + 1);
      const caughtUp = new Map(this.#model.stateAt(branch, sinceSeq));
      const query = { branch, sinceSeq, prefix: "e:", limit: 100 };
      for (const { id, document } of (await changesByPrefix(ports, this.#space, query)).items) {
        if (document === undefined) caughtUp.delete(id);
        else caughtUp.set(id, document);
      }
      assert.deepEqual(sorted(caughtUp), sorted(this.#model.stateAt(branch, lastSeq)), `"${branch}" since ${sinceSeq}`);
    }
  }
}

function sorted<T>(map: ReadonlyMap<string, T>): Map<string, T> {
  return new Map([...map].sort(([a], [b]) => (a < b ? -1 : 1)));
}
