// The life of a session as a state machine: it is opened, resumed on every new connection, its commits are sent and
// replayed in order, its watches are renewed, and it is lost when another connection takes it. Every event returns
// effects, and none is carried out here.
import type { EncodedCommit } from "@claudemesh/protocol/spaces/commit";
import type { BranchId, EntityId } from "@claudemesh/protocol/spaces/entity";
import { ownError, refusalFrom, SpaceError } from "../space-errors.ts";
import type { WireOutcome } from "../space-wire.ts";
import { isSeq, readSyncFrame } from "../sync-frame.ts";
import type { Layer, LayerRequest } from "../tiers/layer.ts";
import { type Branch, Branches } from "./branches.ts";
import { isLost, readCommitAnswer } from "./commit-answer.ts";
import { type Integrated, Integration } from "./integration.ts";
import { Outbox } from "./outbox.ts";
import type { Ask, Effect } from "./session-contract.ts";
import { answerRound } from "./watch-rounds.ts";
import type { WatchMessage } from "./watch-set.ts";

export type SessionOptions = {
  readonly space: string;
  readonly newOpenId: () => string;
  readonly maxPending: number;
  /** Whether an entity of a branch has a subscriber. */
  readonly isSubscribed: (branch: BranchId, id: EntityId) => boolean;
};

/** A commit that is about to get its localSeq. */
export type Draft = {
  readonly branch: BranchId;
  readonly operations: Layer["operations"];
  readonly restsOn: ReadonlySet<number>;
  readonly hasSends: boolean;
  readonly request: (localSeq: number) => LayerRequest;
};

type Phase = "down" | "opening" | "open" | "lost" | "closed";

export class SessionState {
  readonly branches: Branches;
  readonly outbox = new Outbox();
  readonly integration: Integration;
  readonly #options: SessionOptions;
  #phase: Phase = "down";
  #connection = 0;
  #session: { readonly sessionId: string; readonly sessionToken: string } | undefined;
  /** Kept until an open is answered, so that a repeated open after a lost answer is the same open. */
  #openId: string | undefined;
  #nextLocalSeq = 1;
  #failures = 0;
  /** Branches whose watch on this connection is not answered yet. */
  readonly #catchingUp = new Set<BranchId>();

  constructor(options: SessionOptions) {
    this.#options = options;
    this.branches = new Branches(options.isSubscribed);
    this.integration = new Integration({
      outbox: this.outbox,
      branchOf: (name) => this.branches.find(name),
      isObserved: options.isSubscribed,
    });
  }

  get phase(): Phase {
    return this.#phase;
  }

  get sessionId(): string | undefined {
    return this.#session?.sessionId;
  }

  /** The connection is up: open the session, or resume it. */
  up(): Effect[] {
    if (this.#phase !== "down") return [];
    this.#phase = "opening";
    this.#connection += 1;
    return [this.#openMessage()];
  }

  down(): Effect[] {
    if (this.#phase === "opening" || this.#phase === "open") this.#phase = "down";
    this.#connection += 1;
    this.outbox.rewind();
    this.integration.dropInbox();
    // The dropped frames may have contained what explains a verdict.
    this.integration.isCatchingUp = this.branches.all().some(({ watch }) => !watch.isEmpty);
    for (const { watch } of this.branches.all()) watch.reset();
    return [];
  }

  /** A new session, after the old one was lost. Its confirmed state and its watches stay. */
  reopen(isUp: boolean): Effect[] {
    if (this.#phase !== "lost") return [];
    this.#session = undefined;
    this.#openId = undefined;
    this.#nextLocalSeq = 1;
    this.#phase = "down";
    this.down();
    return isUp ? this.up() : [];
  }

  /** Ends the session on this side: pending commits are reported with the error. */
  end(phase: "lost" | "closed", error: (localSeq: number, wasSent: boolean) => SpaceError): Effect[] {
    if (this.#phase === "closed") return [];
    this.#phase = phase;
    for (const { tiers } of this.branches.all()) tiers.disownAccepted();
    const wasSent = new Map(this.outbox.layers().map(({ localSeq }) => [localSeq, this.outbox.wasSent(localSeq)]));
    return toEffects(this.integration.discardAll((localSeq) => error(localSeq, wasSent.get(localSeq) === true)));
  }

  /** Applies a commit at once and queues it. Throws, and changes nothing, where that is not possible. */
  submit(draft: Draft): { readonly localSeq: number; readonly effects: Effect[] } {
    if (this.#phase === "lost") throw ownError("SessionRevokedError");
    if (this.#phase === "closed") throw ownError("SpaceClosedError");
    if (this.outbox.size >= this.#options.maxPending) {
      throw ownError("QueueFullError", undefined, { limit: this.#options.maxPending });
    }
    const { branch, operations, restsOn, hasSends, request } = draft;
    const localSeq = this.#nextLocalSeq;
    const layer: Layer = { localSeq, branch, operations, restsOn, hasSends, request: request(localSeq) };
    this.branches.get(branch).tiers.push(layer);
    this.#nextLocalSeq += 1;
    this.outbox.add(layer);
    return { localSeq, effects: [...this.#pump(), ...this.#commitNotifications(layer)] };
  }

  /** Asks for entities to be loaded and watched. */
  want(branch: Branch, ids: readonly EntityId[], prefixes: readonly string[] = []): Effect[] {
    for (const id of ids) {
      const admission = branch.watch.want(id);
      if (admission.type === "full") throw ownError("WatchLimitError", undefined, { id });
      branch.forgetUnwatched(admission.dropped);
    }
    for (const prefix of prefixes) {
      if (!branch.watch.wantPrefix(prefix)) throw ownError("WatchLimitError", undefined, { prefix });
    }
    return this.#watch(branch);
  }

  /** Stops watching a prefix. Entities that only this prefix covered are forgotten. */
  unwantPrefix(branch: Branch, prefix: string): Effect[] {
    if (!branch.watch.unwantPrefix(prefix)) return [];
    branch.forgetUnwatched([...branch.tiers.entities()].map(({ id }) => id));
    return this.#watch(branch);
  }

  pushed(push: { readonly type: string }): Effect[] {
    const { space, sessionId } = push as { readonly space?: unknown; readonly sessionId?: unknown };
    if (this.#phase !== "open" || space !== this.#options.space || sessionId !== this.sessionId) return [];
    if (push.type === "session.revoked") return this.#lose(ownError("SessionRevokedError"));
    if (push.type !== "sync") return [];
    const frame = readSyncFrame(push);
    if (frame === undefined) return this.#lose(ownError("MalformedAnswerError", "A sync frame has a wrong shape."));
    this.branches.noteSeq(frame.toSeq);
    this.integration.receive(frame);
    return this.advance();
  }

  answered(ask: Ask, outcome: WireOutcome): Effect[] {
    if (ask.connection !== this.#connection) return [];
    switch (ask.kind) {
      case "open":
        return this.#phase === "opening" ? this.#openAnswered(ask, outcome) : [];
      case "commit":
        return this.#commitAnswered(ask, ask.localSeq, outcome);
      case "watch":
        return this.#watchAnswered(ask, outcome);
    }
  }

  woken(ask: Ask): Effect[] {
    if (ask.connection !== this.#connection) return [];
    switch (ask.kind) {
      case "open":
        return this.#phase === "opening" ? [this.#openMessage()] : [];
      case "commit":
        this.outbox.isPaused = false;
        return this.#pump();
      case "watch":
        return this.#watch(this.branches.get(ask.branch));
    }
  }

  /** Applies everything that can take effect, and sends what can be sent after it. */
  advance(): Effect[] {
    const integrated = toEffects(this.integration.advance());
    const rounds = this.branches.all().flatMap((branch) => this.#watch(branch));
    return [...this.#pump(), ...rounds, ...integrated];
  }

  #openMessage(): Effect {
    this.#openId ??= this.#options.newOpenId();
    const { space } = this.#options;
    const resumed = this.#session === undefined ? {} : { ...this.#session, seenSeq: this.branches.seenSeq() };
    const input = { space, openId: this.#openId, ...resumed };
    return { kind: "send", type: "space.open", input, ask: { connection: this.#connection, kind: "open" } };
  }

  #openAnswered(ask: Ask, outcome: WireOutcome): Effect[] {
    if (outcome.type !== "answered") return this.#again(ask);
    const { status, body } = outcome;
    if (status < 200 || status > 299) {
      const error = refusalFrom(status, body);
      return error.retryable ? this.#again(ask) : this.#lose(error);
    }
    const { sessionId, sessionToken, seq, lastLocalSeq } = (body ?? {}) as Record<string, unknown>;
    if (typeof sessionId !== "string" || typeof sessionToken !== "string" || !isSeq(seq) || !isSeq(lastLocalSeq)) {
      return this.#lose(ownError("MalformedAnswerError"));
    }
    if (seq < this.branches.knownSeq) return this.#lose(ownError("HistoryLostError"));
    this.#session = { sessionId, sessionToken };
    this.#openId = undefined;
    this.#phase = "open";
    this.#failures = 0;
    // Commits that were submitted while the session was being opened have their numbers already.
    this.#nextLocalSeq = Math.max(this.#nextLocalSeq, lastLocalSeq + 1);
    this.branches.noteSeq(seq);
    return [...this.#resume(), { kind: "opened" }];
  }

  /** First the commits, in order, then the watches: the state that is caught up with then includes their verdicts. */
  #resume(): Effect[] {
    const commits = this.#pump();
    this.#catchingUp.clear();
    const watches = this.branches.all().flatMap((branch) => {
      const effects = this.#watch(branch);
      if (effects.length > 0) this.#catchingUp.add(branch.name);
      return effects;
    });
    this.integration.isCatchingUp = this.#catchingUp.size > 0;
    return [...commits, ...watches, ...this.advance()];
  }

  #commitAnswered(ask: Ask, localSeq: number, outcome: WireOutcome): Effect[] {
    const layer = this.outbox.find(localSeq);
    const { commit } = (layer?.request.input ?? {}) as { readonly commit?: EncodedCommit };
    const answer = readCommitAnswer(outcome, commit);
    if (answer.kind === "lost") return this.#lose(answer.error);
    if (layer === undefined) return [];
    if (answer.kind === "again") {
      this.outbox.returned(localSeq);
      this.outbox.isPaused = true;
      return this.#again(ask);
    }
    this.#failures = 0;
    if (answer.verdict.type === "accepted") this.branches.noteSeq(answer.verdict.seq);
    this.integration.receiveVerdict(localSeq, answer.verdict);
    return this.advance();
  }

  #watchAnswered(ask: Extract<Ask, { kind: "watch" }>, outcome: WireOutcome): Effect[] {
    const branch = this.branches.get(ask.branch);
    const answer = answerRound(branch.watch, ask, outcome);
    switch (answer.kind) {
      case "stale":
        return [];
      case "again":
        return this.#again(ask);
      case "failed":
        if (isLost(answer.error)) return this.#lose(answer.error);
        this.#caughtUp(ask.branch);
        return [...this.advance(), { kind: "load_failed", branch: ask.branch, error: answer.error }];
      case "progress": {
        if (answer.loaded !== undefined) {
          this.branches.noteSeq(answer.loaded.seq);
          this.integration.receiveLoaded(ask.branch, answer.loaded);
        }
        if (ask.part === undefined) this.#caughtUp(ask.branch);
        const sends = answer.messages.map((message) => this.#watchMessage(ask.branch, ask.round, message));
        return [...sends, ...this.advance()];
      }
    }
  }

  #caughtUp(branch: BranchId): void {
    this.#catchingUp.delete(branch);
    if (this.#catchingUp.size === 0) this.integration.isCatchingUp = false;
  }

  #watch(branch: Branch): Effect[] {
    if (this.#phase !== "open") return [];
    // Where nothing is watched yet, the snapshot can be the newest seq that is known.
    if (!branch.watch.hasLive) branch.tiers.seq = Math.max(branch.tiers.seq, this.branches.knownSeq);
    const round = branch.watch.nextRound(branch.tiers.seq);
    if (round === undefined) return [];
    return round.messages.map((message) => this.#watchMessage(branch.name, round.round, message));
  }

  #watchMessage(branch: BranchId, round: number, { type, input, part }: WatchMessage): Effect {
    const { space } = this.#options;
    const about = part === undefined ? { space, ...this.#session } : { space };
    const ask: Ask = {
      connection: this.#connection,
      kind: "watch",
      branch,
      round,
      ...(part !== undefined && { part }),
    };
    return { kind: "send", type, input: { ...about, ...input }, ask };
  }

  #pump(): Effect[] {
    const session = this.#session;
    if (this.#phase !== "open" || session === undefined) return [];
    const { space } = this.#options;
    return this.outbox
      .takeSendable((localSeq) => this.integration.isDecided(localSeq))
      .map(({ localSeq, request }) => ({
        kind: "send",
        type: request.type,
        input: { space, ...session, ...request.input },
        ask: { connection: this.#connection, kind: "commit", localSeq },
      }));
  }

  #commitNotifications(layer: Layer): Effect[] {
    const { branch } = layer;
    const ids = new Set(layer.operations.map(({ id }) => id));
    return [...ids]
      .filter((id) => this.#options.isSubscribed(branch, id))
      .map((id) => {
        const document = this.branches.get(branch).tiers.find(id)?.visible.document;
        return { kind: "notify", notification: { branch, id, document, cause: "commit" } };
      });
  }

  #again(ask: Ask): Effect[] {
    this.#failures += 1;
    return [{ kind: "wake", failures: this.#failures, ask }];
  }

  #lose(error: SpaceError): Effect[] {
    const lost = (localSeq: number, wasSent: boolean) => withDetails(error, { localSeq, sent: wasSent });
    return [...this.end("lost", lost), { kind: "lost", error }];
  }
}

/** The error of a session for one commit. `sent`: the commit may have been accepted, and this side cannot find out. */
function withDetails(error: SpaceError, details: Record<string, unknown>): SpaceError {
  const { code, name, message, retryable } = error;
  return new SpaceError({ ...error.details, ...details, error: code, name, message, retryable });
}

function toEffects({ notifications, settlements }: Integrated): Effect[] {
  return [
    ...notifications.map((notification): Effect => ({ kind: "notify", notification })),
    ...settlements.map((settlement): Effect => ({ kind: "settle", settlement })),
  ];
}
