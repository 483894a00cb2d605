// Moves accepted rows to the broker. States: waiting (nothing due, or the link is down), claiming (rows are being made
// inflight), trying (frames are out, and new rows may be held behind them), resting (the broker asked for or needs a pause),
// halted (the broker refuses this member; the next hello ends it). A row is inflight on disk before its first byte leaves,
// and leaves that state only through a recorded end.
// Why: docs/decisions/0089.
import type { RateLimited } from "@claudemesh/client/daemon";
import type { LinkOutcome } from "@claudemesh/client/link-contract";
import { type BackoffBounds, backoffDelayMs } from "@claudemesh/protocol/messages/backoff";
import { judgeLateAnswer } from "@claudemesh/protocol/messages/outbox-row";
import type { FailpointName } from "@claudemesh/storage/failpoint-names";
import type { Failpoints } from "@claudemesh/storage/failpoints";
import { createLogLimiter, isWorthALine } from "../core/log-limiter.ts";
import { type ClaimedRow, firstTryOf, type NewOutboxRow, type StoredSend } from "../core/outbox-row.ts";
import { PriorityQueue } from "../core/priorities.ts";
import { sendFrame } from "../core/send-frame.ts";
import { type DrainSignal, endTry, readAcceptance, type TryEnd } from "../core/try-end.ts";
import type { Accepted, BrokerLink, Claim, Clock, Log, OutboxStore, Timer } from "../ports.ts";

export type DrainPorts = {
  readonly outbox: Pick<
    OutboxStore,
    "accept" | "acceptAndClaim" | "claimDue" | "nextDueAt" | "endTry" | "commitLate" | "settleLateRefusal"
  >;
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

export type DrainOptions = {
  readonly backoff: BackoffBounds;
  readonly requestTimeoutMs: number;
  /** Frames at the broker. */
  readonly windowRows?: number;
  /** New rows that may be inflight, those held here until there is a place for their frames included. */
  readonly heldRows?: number;
  /** The payloads of all rows that are inflight. */
  readonly windowBytes?: number;
};

export type DrainStatus =
  | { readonly state: "running" }
  | { readonly state: "waiting_for_broker" }
  | { readonly state: "resting"; readonly until: number; readonly rate_limited_since?: number }
  | { readonly state: "halted"; readonly reason: "unauthorized"; readonly detail: string }
  | { readonly state: "stopped" };

/** Half of what a broker answers at once on one connection. */
const defaultWindowRows = 512;
/** A row that finds no room here is stored as pending and costs a second transaction: what comes in gusts finds some. */
const defaultHeldRows = 4_096;
/** Room among the held for rows that must not wait until all others have left. */
const urgentRows = 1_024;
const reserveFor = ({ priority }: NewOutboxRow) => (priority === "now" ? urgentRows : 0);
const defaultWindowBytes = 8 * 1_048_576;

export class Drain {
  readonly #ports: DrainPorts;
  readonly #backoff: BackoffBounds;
  readonly #requestTimeoutMs: number;
  readonly #windowRows: number;
  readonly #heldRows: number;
  readonly #windowBytes: number;
  readonly #failingRows = createLogLimiter(20, 60_000);
  /** Work that was begun and has not ended, and who waits until there is none. */
  #working = 0;
  #settling: (() => void)[] = [];
  /** Rows that this drain made inflight and whose end is not recorded. */
  #openRows = 0;
  #openBytes = 0;
  #framesOut = 0;
  /** Those without a frame yet, in their order. While there are any, every place at the broker is taken. */
  readonly #held = new PriorityQueue<ClaimedRow>();
  #online = false;
  #stopped = false;
  #halted: string | undefined;
  #claiming = false;
  #wokenWhileClaiming = false;
  /** Pauses in a row that no success has ended. */
  #troubles = 0;
  #restUntilMs = Number.NEGATIVE_INFINITY;
  /** The first 429 that no success has followed. */
  #rateLimitedSinceMs: number | undefined;
  /** Due rows may have been left behind for want of room: the end of a try makes some. */
  #moreIsDue = false;
  #timer: Timer | undefined;
  #timerAtMs = 0;

  constructor(ports: DrainPorts, options: DrainOptions) {
    this.#ports = ports;
    this.#backoff = options.backoff;
    this.#requestTimeoutMs = options.requestTimeoutMs;
    this.#windowRows = options.windowRows ?? defaultWindowRows;
    this.#heldRows = options.heldRows ?? defaultHeldRows;
    this.#windowBytes = options.windowBytes ?? defaultWindowBytes;
  }

  get status(): DrainStatus {
    if (this.#stopped) return { state: "stopped" };
    if (this.#halted !== undefined) return { state: "halted", reason: "unauthorized", detail: this.#halted };
    if (!this.#online) return { state: "waiting_for_broker" };
    if (this.#ports.clock.nowMs() >= this.#restUntilMs) return { state: "running" };
    const limited = this.rateLimited;
    const cause = limited === undefined ? {} : { rate_limited_since: limited.since };
    return { state: "resting", until: this.#restUntilMs, ...cause };
  }

  /** Undefined: the broker takes what is sent, as far as is known. */
  get rateLimited(): RateLimited | undefined {
    const since = this.#rateLimitedSinceMs;
    if (since === undefined || this.#ports.clock.nowMs() >= this.#restUntilMs) return undefined;
    return { since, until: this.#restUntilMs };
  }

  /** A hello has succeeded. */
  linkUp(): void {
    this.#online = true;
    this.#halted = undefined;
    this.#troubles = 0;
    this.#rateLimitedSinceMs = undefined;
    this.#restUntilMs = Number.NEGATIVE_INFINITY;
    this.#moreIsDue = true;
    this.wake();
  }

  linkDown(): void {
    this.#online = false;
    this.#cancelTimer();
    this.#startHeld();
  }

  /** Something may be due. */
  wake(): void {
    if (!this.#mayClaim(this.#windowRows)) return;
    if (this.#claiming) {
      this.#wokenWhileClaiming = true;
      return;
    }
    this.#claiming = true;
    this.#track(this.#claim());
  }

  /**
   * Stores a new row, unless its id stands for something: then that is returned. Where no due row stands before it, it is
   * inflight from the start and leaves at once, which saves it a second transaction.
   */
  accept(row: NewOutboxRow): Promise<StoredSend | undefined> {
    // A claim that is to fill the window leaves no place.
    const hasPlace = !(this.#claiming && this.#moreIsDue) && this.#mayClaim(this.#heldRows + reserveFor(row));
    return hasPlace ? this.#storeAndTry(row) : this.#storeForLater(row);
  }

  /** Claims nothing more. */
  stop(): void {
    this.#stopped = true;
    this.#cancelTimer();
    this.#startHeld();
  }

  /** Resolves when every open try has ended and its end is recorded. */
  settled(): Promise<void> {
    if (this.#working === 0) return Promise.resolve();
    return new Promise((resolve) => this.#settling.push(resolve));
  }

  async #storeAndTry(row: NewOutboxRow): Promise<StoredSend | undefined> {
    const { outbox, failpoints } = this.#ports;
    let accepted: Accepted = "pending";
    this.#takePlace(row);
    try {
      accepted = await outbox.acceptAndClaim(row);
    } finally {
      if (accepted !== "inflight") this.#leavePlace(row);
    }
    if (accepted === "pending") this.wake();
    if (typeof accepted === "object") return accepted;
    if (accepted === "inflight") {
      this.#start(firstTryOf(row));
      if (failpoints.active) this.#track(this.#passFailpoint());
    }
    return undefined;
  }

  async #storeForLater(row: NewOutboxRow): Promise<StoredSend | undefined> {
    const stored = await this.#ports.outbox.accept(row);
    if (stored === undefined) this.wake();
    return stored;
  }

  #mayClaim(rowsMax: number): boolean {
    if (this.#stopped || !this.#online || this.#halted !== undefined) return false;
    if (this.#openRows >= rowsMax || this.#openBytes >= this.#windowBytes) {
      this.#moreIsDue = true;
      return false;
    }
    const resting = this.#ports.clock.nowMs() < this.#restUntilMs;
    if (resting) this.#wakeAt(this.#restUntilMs);
    return !resting;
  }

  async #claim(): Promise<void> {
    const { outbox, failpoints } = this.#ports;
    const nowMs = this.#ports.clock.nowMs();
    let claimed: Claim;
    try {
      claimed = await outbox.claimDue({
        nowMs,
        expiredAtOrBefore: this.#ports.expiredAtOrBefore(nowMs),
        rows: this.#windowRows - this.#openRows,
        bytes: this.#windowBytes - this.#openBytes,
      });
    } catch (error) {
      this.#ports.log.error({ event: "drain_claim_failed", err: error }, "rows could not be made inflight");
      this.#claiming = false;
      this.#rest();
      return;
    }
    this.#moreIsDue = claimed.more;
    for (const row of claimed.rows) {
      this.#takePlace(row);
      this.#start(row);
    }
    if (claimed.rows.length > 0 && failpoints.active) await this.#passFailpoint();
    this.#claiming = false;
    if (this.#wokenWhileClaiming) {
      this.#wokenWhileClaiming = false;
      this.wake();
      return;
    }
    const dueAtMs = outbox.nextDueAt(nowMs);
    if (dueAtMs !== undefined) this.#wakeAt(dueAtMs);
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

  #takePlace({ payload }: NewOutboxRow | ClaimedRow): void {
    this.#openRows++;
    this.#openBytes += payload.length;
  }

  #leavePlace({ payload }: NewOutboxRow | ClaimedRow): void {
    this.#openRows--;
    this.#openBytes -= payload.length;
    if (this.#moreIsDue) this.wake();
  }

  #start(row: ClaimedRow): void {
    if (this.#framesOut < this.#windowRows) this.#track(this.#try(row));
    else this.#held.push(row);
  }

  /** As many as there are places for; where nothing may leave any more, all of them are pending again, untried. */
  #startHeld(): void {
    if (this.#held.size === 0) return;
    const { clock, expiredAtOrBefore } = this.#ports;
    const nowMs = clock.nowMs();
    const mayLeave = this.#online && !this.#stopped && this.#halted === undefined && nowMs >= this.#restUntilMs;
    while (this.#framesOut < this.#windowRows || !mayLeave) {
      const row = this.#held.shift();
      if (row === undefined) return;
      // The clock may have jumped since it was claimed (MSG-11).
      const isTooOld = row.enqueuedAt <= expiredAtOrBefore(nowMs);
      this.#track(mayLeave && !isTooOld ? this.#try(row) : this.#putBack(row));
    }
  }

  async #putBack(row: ClaimedRow): Promise<void> {
    const end: TryEnd = { next: "put_back" };
    this.#ports.onTryEnd?.(end, row);
    const { outbox, clock } = this.#ports;
    await this.#record(row.id, "end of a try", () => outbox.endTry(row.id, row.attempts, end, clock.nowMs()));
    this.#moreIsDue = true;
    this.#leavePlace(row);
  }

  async #try(row: ClaimedRow): Promise<void> {
    const { link, clock, random } = this.#ports;
    this.#framesOut++;
    const outcome = await link.request("send", sendFrame(row), {
      timeoutMs: this.#requestTimeoutMs,
      onLateAnswer: (answer) => this.#track(this.#answerLate(row, answer)),
    });
    const facts = { attempts: row.attempts, nowMs: clock.nowMs(), random: random(), backoff: this.#backoff };
    const { end, signal } = endTry(outcome, facts);
    this.#framesOut--;
    this.#heed(signal);
    this.#startHeld();
    this.#logEnd(row, end);
    this.#ports.onTryEnd?.(end, row);
    if (end.next === "done" && isCreated(outcome)) this.#ports.onStoredAnew?.(row);
    await this.#record(row.id, "end of a try", () =>
      this.#ports.outbox.endTry(row.id, row.attempts, end, clock.nowMs()),
    );
    if (end.next === "pending") this.#wakeAt(end.nextAttemptAt);
    this.#leavePlace(row);
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

  /** The disk may refuse for a while; what the broker said is not forgotten meanwhile, and the row keeps its place. */
  async #record(id: string, what: string, change: () => Promise<boolean>): Promise<void> {
    for (let failures = 1; ; failures++) {
      try {
        await change();
        return;
      } catch (error) {
        if (isWorthALine(failures)) {
          const fields = { event: "drain_record_failed", outbox_id: id, failures, err: error };
          this.#ports.log.error(fields, `the ${what} could not be recorded`);
        }
        if (this.#stopped) return;
      }
      const delayMs = backoffDelayMs(failures, this.#ports.random(), this.#backoff);
      await new Promise<void>((resolve) => {
        this.#ports.clock.setTimer(delayMs, resolve);
      });
    }
  }

  #heed(signal: DrainSignal): void {
    switch (signal.type) {
      case "flows":
        this.#troubles = 0;
        this.#rateLimitedSinceMs = undefined;
        return;
      case "unauthorized":
        if (this.#halted !== undefined) return;
        this.#halted = signal.detail;
        this.#ports.log.warn({ event: "drain_halted", detail: signal.detail }, "the broker refuses this member");
        this.#ports.link.renew();
        return;
      case "rate_limited":
        this.#rateLimitedSinceMs ??= this.#ports.clock.nowMs();
        this.#rest(signal.retryAfterMs);
        return;
      case "troubled":
      case "not_sent":
        this.#rest();
    }
  }

  /** Other rows would meet the same broker, so nothing more is claimed for a while. One window's failures count once. */
  #rest(atLeastMs = 0): void {
    const { clock, random } = this.#ports;
    const nowMs = clock.nowMs();
    let delayMs = atLeastMs;
    if (nowMs >= this.#restUntilMs) delayMs = backoffDelayMs(++this.#troubles, random(), this.#backoff, atLeastMs);
    this.#restUntilMs = Math.max(this.#restUntilMs, nowMs + delayMs);
    this.#wakeAt(this.#restUntilMs);
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
    if (end.next === "pending" && !isWorthALine(attempts)) return;
    const admitted = this.#failingRows.admit(clock.nowMs());
    if (admitted === undefined) return;
    const fields = {
      event: `row_${end.next}`,
      ...ids,
      attempts,
      last_error: end.lastError,
      left_out: admitted.leftOut,
    };
    log.warn(fields, end.next === "dead" ? "the broker refused this row for good" : "this row will be tried again");
  }

  /** The earliest of what was asked for. */
  #wakeAt(timeMs: number): void {
    if (this.#stopped || !this.#online) return;
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
