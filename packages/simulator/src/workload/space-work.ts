// Transactions, branches, merges, takeovers and reads of the past on the shared space, as programs make them with the
// SDK; and what their callers saw and heard.
import type { BranchHandle, Space, SpaceError, Tx } from "@claudemesh/client/space";
import { applyOperation } from "@claudemesh/protocol/spaces/apply";
import type { EntityDocument } from "@claudemesh/protocol/spaces/entity";
import type { Operation } from "@claudemesh/protocol/spaces/operations";
import { PatchFailure } from "@claudemesh/protocol/spaces/patch-failure";
import { lookThrough } from "../../../../tests/support/copy-along.ts";
import type { ObservedRead } from "../../../../tests/support/naive-space.ts";
import { entityIds, RandomWork } from "../../../../tests/support/random-space-work.ts";
import { createRandom, type Random } from "../../../../tests/support/seed.ts";
import type { AgentOperation, SpaceSend } from "../core/agent-operations.ts";
import { queueNames, spaceName, topicNames } from "../core/plan.ts";
import type { Answers } from "../oracles/answers.ts";
import { checkDocuments } from "../oracles/check-agents.ts";
import type { MeshWatch } from "../oracles/mesh-watch.ts";
import { markPath, sendPrefix } from "../oracles/space-ledger.ts";
import { Violation } from "../oracles/violation.ts";
import type { AgentEnd, AgentProcess } from "../world/agent.ts";
import type { World } from "../world/world.ts";
import { codeOf } from "./error-code.ts";

type Of<Kind extends AgentOperation["kind"]> = Extract<AgentOperation, { kind: Kind }>;
type Send = { readonly destination: { readonly kind: "topic" | "queue"; readonly ref: string }; readonly id: string };

/** More than so many live branches are not needed to meet each other. */
const branchesMax = 5;

export class SpaceWork {
  readonly #world: World;
  readonly #watch: MeshWatch;
  readonly #answers: Answers;
  /** Ids of messages that each agent has tried to send with a commit. */
  readonly #sent: string[][];
  #fresh = 1;
  #transactions = 0;

  constructor(world: World, watch: MeshWatch, answers: Answers) {
    this.#world = world;
    this.#watch = watch;
    this.#answers = answers;
    this.#sent = world.agents.map(() => []);
  }

  async transact(operation: Of<"transact">): Promise<AgentEnd<string>> {
    if (!operation.together) return this.#transactOn(operation);
    const ends = await Promise.all(
      this.#world.agents.map((_, agent) =>
        this.#transactOn({ ...operation, agent, salt: operation.salt + 1_000 * agent, sends: [] }),
      ),
    );
    // The answers that the others got are not reported here, but a violation is, no matter which of them met it.
    for (const end of ends) if (end.type === "error") codeOfEnd(end.error);
    return ends[operation.agent] ?? { type: "away" };
  }

  #transactOn(operation: Of<"transact">): Promise<AgentEnd<string>> {
    return this.#withSpace(operation.agent, async (space) => {
      const branches = this.#watch.spaces.model.liveBranches;
      const handle = operation.branch === 0 ? space : space.branch(branches[operation.branch % branches.length] ?? "");
      // Loaded before, so that the transactions that follow are stacked in one go.
      await Promise.all(entityIds.map((id) => handle.get(id)));
      const ends = await Promise.allSettled(
        Array.from({ length: operation.stacked }, (_, layer) => this.#one(handle, operation, layer)),
      );
      const words = ends.map((end) => (end.status === "fulfilled" ? "accepted" : codeOfEnd(end.reason)));
      return words.length > 1 ? `stacked ${words.at(-1)}` : String(words[0]);
    });
  }

  /** One transaction, however often it is built. */
  async #one(handle: BranchHandle, operation: Of<"transact">, layer: number): Promise<void> {
    const { spaces } = this.#watch;
    const transaction = ++this.#transactions;
    const sends = layer === 0 ? operation.sends.map((send, index) => this.#send(operation, send, index)) : [];
    let mark: number | undefined;
    try {
      const build = (tx: Tx) => {
        // The one before was rejected, or never left.
        if (mark !== undefined) spaces.reject(mark);
        mark = this.#fresh++;
        const reads: ObservedRead[] = [];
        spaces.expect(mark, { transaction, branch: handle.name, reads });
        this.#build(tx, handle, createRandom(operation.salt + layer), mark, reads);
        for (const { id, destination } of sends) {
          tx.send({ client_message_id: id, destination, body: bodyOf(id) });
        }
      };
      const { seq } = await handle.transact(build, { retries: operation.retries });
      const accepted = mark === undefined ? undefined : spaces.seqOf(mark);
      if (accepted !== seq) {
        throw new Violation("verdict_wrong", `transaction ${transaction} was answered ${seq} and is ${accepted}`);
      }
    } catch (error) {
      if (error instanceof Violation || mark === undefined) throw error;
      const { details, code } = error as SpaceError;
      // No other connection writes under this session's numbers.
      if (code === "replay_mismatch_error") {
        throw new Violation("verdict_wrong", `transaction ${transaction} met another under its own number`);
      }
      // The session was lost with the commit on its way: it may be either.
      if (details?.sent !== true) spaces.reject(mark);
      throw error;
    }
  }

  #build(tx: Tx, handle: BranchHandle, random: Random, mark: number, reads: ObservedRead[]): void {
    const work = new RandomWork(random, () => this.#fresh++);
    for (let count = random.below(4); count > 0; count -= 1) {
      const [id, read] = [random.pick(entityIds), work.read()];
      reads.push({ id, branch: handle.name, ...read, seen: lookThrough(tx, id, read) });
    }
    // Looked at beside the transaction, so that only what is meant as a read is one.
    const documents = new Map(entityIds.map((id) => [id as string, handle.peek(id)]));
    for (let count = random.below(3); count > 0; count -= 1) {
      const id = random.pick(entityIds);
      tryWrite(tx, documents, work.operation(id, documents.get(id)));
    }
    const id = random.pick(entityIds);
    const sign: Operation = { op: "patch", id, patches: [{ op: "add", path: `/${markPath.join("/")}`, value: mark }] };
    if (tryWrite(tx, documents, sign)) return;
    tryWrite(tx, documents, { op: "set", id, value: { value: { a: this.#fresh++, list: [], m: mark } } });
  }

  #send({ agent, number }: Of<"transact">, send: SpaceSend, index: number): Send {
    const sent = this.#sent[agent] ?? [];
    const used = send.kind === "used_id" && !this.#forgetsIds() ? sent[number % Math.max(sent.length, 1)] : undefined;
    const id = used ?? `${sendPrefix}${number}-${index}`;
    sent.push(id);
    this.#answers.expectBody(id, bodyOf(id));
    if (send.kind === "queue") return { id, destination: { kind: "queue", ref: queueNames[send.queue] ?? "" } };
    const topic = send.kind === "topic" ? topicNames[send.topic] : topicNames[0];
    return { id, destination: { kind: "topic", ref: send.kind === "nowhere" ? "nowhere" : (topic ?? "") } };
  }

  /** An id whose time at the broker is over is a new one: only an outbox would know better. */
  #forgetsIds(): boolean {
    const { dedupeDays, leapDays } = this.#world.settings;
    return dedupeDays !== undefined && leapDays.some((days) => days > 0);
  }

  branch({ agent, number, pick, deletes }: Of<"branch">): Promise<AgentEnd<string>> {
    return this.#withSpace(agent, async (space) => {
      const { model } = this.#watch.spaces;
      const live = model.liveBranches;
      const name = live[pick % live.length] ?? "";
      if (name !== "" && (deletes || live.length > branchesMax)) {
        await space.deleteBranch(name);
        return "deleted";
      }
      const atSeq = Math.max(0, space.branch(name).seq - (pick % 4));
      await space.createBranch(`b${number}`, { branch: name, ...(pick % 2 === 0 && { atSeq }) });
      return "created";
    });
  }

  merge({ agent, salt }: Of<"merge">): Promise<AgentEnd<string>> {
    return this.#withSpace(agent, async (space) => {
      const random = createRandom(salt);
      const branches = this.#watch.spaces.model.liveBranches;
      const [source, target] = [random.pick(branches), random.pick(branches)];
      if (source === target) return "nothing";
      const first = await space.merge({ source, target });
      if (first.status !== "conflict") return first.status;
      const chosen = first.conflicts.map((conflict) => [conflict.id, random.pick([conflict.source, conflict.target])]);
      const resolutions = Object.fromEntries(chosen) as Record<string, EntityDocument | null>;
      return `resolved ${(await space.merge({ source, target, resolutions })).status}`;
    });
  }

  /** Over another connection; then the old holder's last commit comes once more. */
  takeOver({ agent, number }: Of<"takeover">): Promise<AgentEnd<string>> {
    return this.#withSpace(agent, async (_, { session, sent, call }) => {
      if (session === undefined) return "nothing";
      const { sessionId, sessionToken } = session;
      await call("space.open", { space: spaceName, openId: `thief-${number}`, sessionId, sessionToken });
      const last = sent.findLast((each) => each.sessionId === sessionId);
      if (last === undefined) return "taken";
      await call("space.commit", { space: spaceName, sessionId, sessionToken, commit: last.commit });
      return "taken and written";
    });
  }

  /** Only what was decided: a commit that still waits for its verdict must not be overtaken by a copy. */
  replay({ agent, pick, altered }: Of<"replay">): Promise<AgentEnd<string>> {
    return this.#withSpace(agent, async (_, { session, sent, call }) => {
      const { sessions } = this.#watch;
      const decided = sent.filter(
        ({ sessionId, commit }) => sessionId === session?.sessionId && sessions.isDecided(sessionId, commit.localSeq),
      );
      const chosen = decided[pick % Math.max(decided.length, 1)];
      if (chosen === undefined || session === undefined) return "nothing";
      const { sessionId, sessionToken } = session;
      const commit = altered ? { ...chosen.commit, codeCID: "altered" } : chosen.commit;
      await call("space.commit", { space: spaceName, sessionId, sessionToken, commit });
      return "replayed";
    });
  }

  readPast({ agent, pick }: Of<"read_past">): Promise<AgentEnd<string>> {
    return this.#withSpace(agent, async (space) => {
      const { model } = this.#watch.spaces;
      const branch = model.branches[pick % model.branches.length] ?? "";
      const seq = pick % (model.lastSeq + 1);
      const { items } = await space.branch(branch).at(seq).query({ ids: entityIds });
      const found = new Map(items.map(({ id, document }) => [id, document]));
      checkDocuments(found, model.stateAt(branch, seq), () => `a read of "${branch}" at ${seq}`);
      return "read";
    });
  }

  #withSpace(agent: number, work: (space: Space, process: AgentProcess) => Promise<string>): Promise<AgentEnd<string>> {
    return this.#world.agentAt(agent).ask(async (process) => {
      if (process.space === undefined) return "nothing";
      return work(process.space, process);
    });
  }
}

/** False: it does not fit, and nothing was written. */
function tryWrite(tx: Tx, documents: Map<string, EntityDocument | undefined>, operation: Operation): boolean {
  try {
    const after = applyOperation(documents.get(operation.id), operation);
    if (operation.op === "set") tx.set(operation.id, operation.value);
    else if (operation.op === "patch") tx.patch(operation.id, operation.patches);
    else tx.delete(operation.id);
    documents.set(operation.id, after);
    return true;
  } catch (error) {
    if (error instanceof PatchFailure) return false;
    throw error;
  }
}

const bodyOf = (id: string) => `with a commit: ${id}`;

function codeOfEnd(reason: unknown): string {
  if (reason instanceof Violation) throw reason;
  return codeOf(reason);
}
