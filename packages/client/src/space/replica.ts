// Carries out the effects that the session's state asks for, with the wire, the clock and the subscribers, and passes
// the results back to the state. It decides nothing, and no other code performs effects.
import { type BackoffBounds, backoffDelayMs } from "@claudemesh/protocol/messages/backoff";
import type { BranchId, EntityId } from "@claudemesh/protocol/spaces/entity";
import type { Sealing } from "./building/sealing.ts";
import { Notifier } from "./notifier.ts";
import type { Branch } from "./session/branches.ts";
import type { Verdict } from "./session/integration.ts";
import type { Effect } from "./session/session-contract.ts";
import { type Draft, SessionState } from "./session/session-state.ts";
import { ownError, type SpaceError } from "./space-errors.ts";
import type { SpaceRequestType, SpaceWire, WireOutcome } from "./space-wire.ts";

export type ReplicaPorts = {
  readonly wire: SpaceWire;
  readonly sealing: Sealing;
  readonly sleep: (delayMs: number) => Promise<void>;
  /** In [0, 1). */
  readonly random: () => number;
  readonly newOpenId: () => string;
  /** Called with what subscribers throw. */
  readonly onError: (error: unknown) => void;
  readonly maxPending: number;
  readonly backoff: BackoffBounds;
};

type Waiter = {
  readonly branch: BranchId | undefined;
  readonly isDone: () => boolean;
  readonly resolve: () => void;
  readonly reject: (error: SpaceError) => void;
};

export class Replica {
  readonly space: string;
  readonly notifier: Notifier;
  readonly state: SessionState;
  readonly #ports: ReplicaPorts;
  readonly #stopListening: () => void;
  readonly #verdicts = new Map<number, (verdict: Verdict) => void>();
  readonly #waiters = new Set<Waiter>();
  /** Why the replica has stopped for good, once it has. */
  #ended: SpaceError | undefined;

  constructor(space: string, ports: ReplicaPorts) {
    this.space = space;
    this.#ports = ports;
    this.notifier = new Notifier(ports.onError);
    this.state = new SessionState({
      space,
      newOpenId: ports.newOpenId,
      maxPending: ports.maxPending,
      isSubscribed: (branch, id) => this.notifier.isSubscribed(branch, id),
    });
    this.#stopListening = ports.wire.listen({
      onPush: (push) => this.run(this.state.pushed(push)),
      onUp: () => this.run(this.state.up()),
      onDown: (stopped) => this.#wireDown(stopped),
    });
    if (ports.wire.isUp()) this.run(this.state.up());
  }

  get sealing(): Sealing {
    return this.#ports.sealing;
  }

  get ended(): SpaceError | undefined {
    return this.#ended;
  }

  get pending(): number {
    return this.state.outbox.size;
  }

  /** Effects run in order and all of them, because a later effect may depend on an earlier one. */
  run(effects: readonly Effect[]): void {
    for (const effect of effects) this.#perform(effect);
    for (const waiter of [...this.#waiters]) {
      if (!waiter.isDone()) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }

  /**
   * The commit is applied and subscribers are called when this returns; the promise is for the verdict and never
   * rejects.
   */
  submit(draft: Draft): { readonly localSeq: number; readonly verdict: Promise<Verdict> } {
    this.checkAlive();
    const { localSeq, effects } = this.state.submit(draft);
    const verdict = new Promise<Verdict>((resolve) => this.#verdicts.set(localSeq, resolve));
    this.run(effects);
    return { localSeq, verdict };
  }

  /** Resolves once every one of them can be read. */
  load(branch: Branch, ids: readonly EntityId[]): Promise<void> {
    this.checkAlive();
    this.run(this.state.want(branch, ids));
    return this.until(() => ids.every((id) => branch.find(id)?.isReadable === true), branch.name);
  }

  until(isDone: () => boolean, branch?: BranchId): Promise<void> {
    if (isDone()) return Promise.resolve();
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    return new Promise((resolve, reject) => {
      this.#waiters.add({ branch, isDone, resolve, reject });
    });
  }

  /** Asks something that changes nothing: when the connection breaks, it is asked again on the next one. */
  async ask(type: SpaceRequestType, input: object): Promise<WireOutcome> {
    for (;;) {
      this.checkAlive();
      await this.until(() => this.state.phase === "open");
      const outcome = await this.#ports.wire.request(type, { space: this.space, ...input });
      if (outcome.type === "answered" || outcome.type === "timed_out") return outcome;
      await this.backoff(1);
    }
  }

  checkAlive(): void {
    if (this.#ended !== undefined) throw this.#ended;
  }

  backoff(failures: number): Promise<void> {
    return this.#ports.sleep(backoffDelayMs(failures, this.#ports.random(), this.#ports.backoff));
  }

  /** Opens another session, by choice, after the last one was lost. */
  async reopen(): Promise<void> {
    if (this.state.phase === "closed") throw ownError("SpaceClosedError");
    if (this.state.phase !== "lost") return;
    this.#ended = undefined;
    this.run(this.state.reopen(this.#ports.wire.isUp()));
    await this.until(() => this.state.phase === "open");
  }

  /** Pending commits are reported with the error, and may still have been accepted. */
  close(error: SpaceError = ownError("SpaceClosedError")): void {
    if (this.state.phase === "closed") return;
    this.#stopListening();
    this.run(this.state.end("closed", () => error));
    this.#end(error);
  }

  #perform(effect: Effect): void {
    switch (effect.kind) {
      case "send":
        void this.#send(effect);
        break;
      case "notify":
        this.notifier.notify(effect.notification);
        break;
      case "settle":
        this.#settle(effect.settlement.localSeq, effect.settlement.verdict);
        break;
      case "wake":
        void this.backoff(effect.failures).then(() => this.run(this.state.woken(effect.ask)));
        break;
      case "opened":
        break;
      case "lost":
        this.#end(effect.error);
        break;
      case "load_failed":
        this.#rejectWaiters(effect.error, (waiter) => waiter.branch === effect.branch);
        break;
    }
  }

  async #send({ type, input, ask }: Extract<Effect, { kind: "send" }>): Promise<void> {
    const outcome = await this.#ports.wire.request(type, input);
    this.run(this.state.answered(ask, outcome));
  }

  #settle(localSeq: number, verdict: Verdict): void {
    const resolve = this.#verdicts.get(localSeq);
    this.#verdicts.delete(localSeq);
    resolve?.(verdict);
  }

  #wireDown(stopped: string | undefined): void {
    this.run(this.state.down());
    if (stopped !== undefined) this.close(ownError("ConnectionStoppedError", undefined, { reason: stopped }));
  }

  #end(error: SpaceError): void {
    this.#ended = error;
    this.#rejectWaiters(error, () => true);
  }

  #rejectWaiters(error: SpaceError, isMeant: (waiter: Waiter) => boolean): void {
    for (const waiter of [...this.#waiters].filter(isMeant)) {
      this.#waiters.delete(waiter);
      waiter.reject(error);
    }
  }
}
