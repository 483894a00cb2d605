// Sends what the outbox holds. What the drain does next is decided in core/drain-state.ts, which explains its modes; here its
// effects are carried out, over the store, the link and the clock, and what came of them is reported back. A row is inflight
// on disk before its first byte leaves, and leaves that state only through a recorded end.
import type { RateLimited } from "@claudemesh/client/daemon";
import type { LinkOutcome } from "@claudemesh/client/internal/link-contract";
import { type BackoffBounds, backoffDelayMs } from "@claudemesh/protocol/messages/backoff";
import { judgeLateAnswer } from "@claudemesh/protocol/messages/outbox-row";
import type { FailpointName } from "@claudemesh/storage/failpoint-names";
import type { Failpoints } from "@claudemesh/storage/failpoints";
import {
  type DrainEffect,
  type DrainEvent,
  type DrainLimits,
  type DrainMode,
  hasRoom,
  initialDrain,
  stepDrain,
} from "../core/drain-state.ts";
import { createLogLimiter, isWorthLogging } from "../core/log-limiter.ts";
import { type ClaimedRow, firstTryOf, type NewOutboxRow, sendFrame } from "../core/outbox-row.ts";
import { endTry, readAcceptance, type TryEnd } from "../core/try-end.ts";
import type { BrokerLink, Clock, Log, OutboxStore, Timer } from "../ports.ts";

export type DrainPorts = {
  readonly outbox: Pick<OutboxStore, "claimDue" | "nextDueAt" | "endTry" | "commitLate" | "settleLateRefusal">;
  readonly link: Pick<BrokerLink, "request" | "renew">;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly failpoints: Failpoints<FailpointName>;
  readonly expiredAtOrBefore: (nowMs: number) => number;
  readonly onTryEnd?: (end: TryEnd, row: ClaimedRow) => void;
  /** The broker took this try as the first of its id; late answers too. */
  readonly onStoredAnew?: (row: ClaimedRow) => void;
};

export type DrainOptions = Partial<DrainLimits> & {
  readonly backoff: BackoffBounds;
  readonly requestTimeoutMs: number;
};

const defaultLimits = {
  /** Half of what a broker answers at once on one connection. */
  windowRows: 512,
  /** Enough for sends that come in bursts. */
  openRows: 4_096,
  openRowsUrgent: 5_120,
  openBytes: 8 * 1_048_576,
};

export class Drain {
  readonly #ports: DrainPorts;
  readonly #limits: DrainLimits;
  readonly #requestTimeoutMs: number;
  readonly #failingRows = createLogLimiter(20, 60_000);
  #state = initialDrain;
  /** Work that was begun and has not ended, and callers that wait until there is none. */
  #working = 0;
  #settling: (() => void)[] = [];
  #timer: Timer | undefined;
  #timerAtMs = 0;

  constructor(ports: DrainPorts, { requestTimeoutMs, ...limits }: DrainOptions) {
    this.#ports = ports;
    this.#limits = { ...defaultLimits, ...limits };
    this.#requestTimeoutMs = requestTimeoutMs;
  }

  get mode(): DrainMode {
    return this.#state.mode;
  }

  /** While the drain rests because the mesh's budget is spent. */
  get rateLimited(): RateLimited | undefined {
    const { mode } = this.#state;
    if (mode.state !== "resting" || mode.rate_limited_since === undefined) return undefined;
    return { since: mode.rate_limited_since, until: mode.until };
  }

  /** A hello has succeeded. */
  linkUp(): void {
    this.#apply({ type: "link_up" });
  }

  linkDown(): void {
    this.#apply({ type: "link_down" });
  }

  /** Something may be due. */
  wake(): void {
    this.#apply({ type: "wake", nowMs: this.#ports.clock.nowMs() });
  }

  /** True: there is room for a new row to leave at once, and it is taken. `begin` or `returnRoom` follows. */
  takeRoom(row: NewOutboxRow): boolean {
    if (!hasRoom(this.#state, row, this.#limits)) return false;
    this.#apply({ type: "room_taken", bytes: row.payload.length });
    return true;
  }

  /** The row that room was taken for is not inflight. */
  returnRoom({ payload }: NewOutboxRow): void {
    this.#apply({ type: "room_returned", bytes: payload.length });
  }

  /** The row that room was taken for is inflight on disk. */
  begin(row: NewOutboxRow): void {
    this.#apply({ type: "stored", row: firstTryOf(row), expiredAtOrBefore: this.#expiredAtOrBefore() });
  }

  /** Begins nothing more. */
  stop(): void {
    this.#apply({ type: "stop" });
  }

  /** Resolves when every open try has ended and its end is recorded. */
  settled(): Promise<void> {
    if (this.#working === 0) return Promise.resolve();
    return new Promise((resolve) => this.#settling.push(resolve));
  }

  /** Effects in their order, to the last: one of them may lead to the next event at once. */
  #apply(event: DrainEvent): void {
    const { state, effects } = stepDrain(this.#state, event, this.#limits);
    this.#state = state;
    for (const effect of effects) this.#perform(effect);
    const hasSent = this.#ports.failpoints.active && effects.some(({ type }) => type === "send");
    if (hasSent) this.#track(this.#passFailpoint());
  }

  #perform(effect: DrainEffect): void {
    switch (effect.type) {
      case "claim":
        this.#track(this.#claim(effect.rows, effect.bytes));
        break;
      case "send":
        this.#track(this.#try(effect.row));
        break;
      case "record_end":
        this.#track(this.#recordEnd(effect.row, effect.end));
        break;
      case "wake_at":
        this.#wakeAt(effect.timeMs);
        break;
      case "wake_when_due":
        this.#wakeWhenDue(effect.afterMs);
        break;
      case "cancel_wake":
        this.#cancelTimer();
        break;
      case "renew_link":
        this.#renewLink(effect.detail);
        break;
    }
  }

  async #claim(rows: number, bytes: number): Promise<void> {
    const { outbox, clock, random, log } = this.#ports;
    const madeAtMs = clock.nowMs();
    const query = { nowMs: madeAtMs, expiredAtOrBefore: this.#expiredAtOrBefore(), rows, bytes };
    const event = await outbox.claimDue(query).then(
      (claimed): DrainEvent => ({
        type: "claimed",
        ...claimed,
        madeAtMs,
        expiredAtOrBefore: this.#expiredAtOrBefore(),
      }),
      (error: unknown): DrainEvent => {
        log.error({ event: "drain_claim_failed", err: error }, "rows could not be made inflight");
        return { type: "claim_failed", nowMs: clock.nowMs(), random: random() };
      },
    );
    this.#apply(event);
  }

  async #try(row: ClaimedRow): Promise<void> {
    const { link, clock, random } = this.#ports;
    const outcome = await link.request("send", sendFrame(row), {
      timeoutMs: this.#requestTimeoutMs,
      onLateAnswer: (answer) => this.#track(this.#answerLate(row, answer)),
    });
    const nowMs = clock.nowMs();
    const { backoff } = this.#limits;
    const { end, signal } = endTry(outcome, { attempts: row.attempts, nowMs, random: random(), backoff });
    if (end.next === "done" && isCreated(outcome)) this.#ports.onStoredAnew?.(row);
    const expiredAtOrBefore = this.#ports.expiredAtOrBefore(nowMs);
    this.#apply({ type: "try_ended", row, end, signal, nowMs, random: random(), expiredAtOrBefore });
  }

  async #recordEnd(row: ClaimedRow, end: TryEnd): Promise<void> {
    const { outbox, clock, onTryEnd } = this.#ports;
    this.#logEnd(row, end);
    onTryEnd?.(end, row);
    await this.#record(row.id, "end of a try", () => outbox.endTry(row.id, row.attempts, end, clock.nowMs()));
    this.#apply({ type: "end_recorded", row, end });
  }

  async #answerLate(row: ClaimedRow, answer: { readonly status: number; readonly body: unknown }): Promise<void> {
    const { outbox, clock } = this.#ports;
    const judgement = judgeLateAnswer(answer.status);
    if (judgement === "settles_its_try") {
      await this.#record(row.id, "late refusal", () => outbox.settleLateRefusal(row.id));
      return;
    }
    const acceptance = judgement === "done" ? readAcceptance(answer.body) : undefined;
    if (acceptance === undefined) return;
    if (answer.status === 201) this.#ports.onStoredAnew?.(row);
    await this.#record(row.id, "late success", () => outbox.commitLate(row.id, acceptance, clock.nowMs()));
  }

  /** The disk may refuse for a while; what the broker said is not forgotten meanwhile, and the row keeps its room. */
  async #record(id: string, what: string, change: () => Promise<boolean>): Promise<void> {
    for (let failures = 1; ; failures++) {
      try {
        await change();
        return;
      } catch (error) {
        if (isWorthLogging(failures)) {
          const fields = { event: "drain_record_failed", outbox_id: id, failures, err: error };
          this.#ports.log.error(fields, `the ${what} could not be recorded`);
        }
        if (this.mode.state === "stopped") return;
      }
      const delayMs = backoffDelayMs(failures, this.#ports.random(), this.#limits.backoff);
      await new Promise<void>((resolve) => {
        this.#ports.clock.setTimer(delayMs, resolve);
      });
    }
  }

  #logEnd(row: ClaimedRow, end: TryEnd): void {
    const { log, clock } = this.#ports;
    if (end.next === "put_back") return;
    const ids = { outbox_id: row.id, client_message_id: row.clientMessageId };
    if (end.next === "done") {
      if (end.acceptance.historyAvailable) return;
      log.warn({ event: "history_pruned", ...ids }, "the broker had this message and no longer keeps it");
      return;
    }
    const attempts = row.attempts + 1;
    if (end.next === "pending" && !isWorthLogging(attempts)) return;
    const admission = this.#failingRows.admit(clock.nowMs());
    if (admission.type === "leave_out") return;
    const fields = {
      event: `row_${end.next}`,
      ...ids,
      attempts,
      last_error: end.lastError,
      left_out: admission.leftOut,
    };
    log.warn(fields, end.next === "dead" ? "the broker refused this row for good" : "this row will be tried again");
  }

  #expiredAtOrBefore(): number {
    return this.#ports.expiredAtOrBefore(this.#ports.clock.nowMs());
  }

  #renewLink(detail: string): void {
    const { log, link } = this.#ports;
    log.warn({ event: "drain_halted", detail }, "the broker refuses this member");
    link.renew();
  }

  #wakeWhenDue(afterMs: number): void {
    const dueAtMs = this.#ports.outbox.nextDueAt(afterMs);
    if (dueAtMs !== undefined) this.#wakeAt(dueAtMs);
  }

  /** The earliest of what was asked for. */
  #wakeAt(timeMs: number): void {
    if (this.#timer !== undefined && this.#timerAtMs <= timeMs) return;
    this.#cancelTimer();
    this.#timerAtMs = timeMs;
    this.#timer = this.#ports.clock.setTimer(timeMs - this.#ports.clock.nowMs(), () => {
      this.#timer = undefined;
      this.wake();
    });
  }

  #cancelTimer(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** The socket takes frames at once where it can; their answers are read in a later turn than the next. */
  async #passFailpoint(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    try {
      await this.#ports.failpoints.hit("drain.after_write");
    } catch (error) {
      this.#ports.log.error({ event: "failpoint_error", err: error }, "an injected error after frames were written");
    }
  }

  #track(work: Promise<void>): void {
    this.#working++;
    void work.then(this.#workEnded, this.#workFailed);
  }

  readonly #workEnded = (): void => {
    this.#working--;
    if (this.#working > 0 || this.#settling.length === 0) return;
    const waiting = this.#settling;
    this.#settling = [];
    for (const resolve of waiting) resolve();
  };

  readonly #workFailed = (error: unknown): void => {
    this.#ports.log.error({ event: "drain_failed", err: error }, "draining met something it does not know");
    this.#workEnded();
  };
}

function isCreated(outcome: LinkOutcome): boolean {
  return outcome.type === "answered" && outcome.status === 201;
}
