// The end of rows that are too old to be tried. Where the broker may have committed one, it is asked to fence it
// first: only then is it certain that a row was not delivered. While the broker is away a row can still expire, with
// its fate unknown, and the question is asked at the next hello.
import type { LinkStatus } from "@claudemesh/client/internal/link-contract";
import { fateOf } from "@claudemesh/protocol/messages/fate";
import { type FenceAnswer, readFenceAnswer } from "../core/fence-answer.ts";
import type { FenceTarget } from "../core/outbox-row.ts";
import type { BrokerLink, Clock, Log, OutboxStore } from "../ports.ts";
import type { NegotiatedLimits } from "./negotiated-limits.ts";

export type ExpirePorts = {
  readonly outbox: Pick<
    OutboxStore,
    | "oldestOpenEnqueuedAt"
    | "expired"
    | "expireUnsentOrRefused"
    | "expireUnknown"
    | "buryFenced"
    | "commitLate"
    | "deadOfUnknownFate"
  >;
  readonly link: { readonly request: BrokerLink["request"]; readonly status: () => LinkStatus };
  readonly clock: Pick<Clock, "nowMs">;
  readonly log: Log;
  readonly limits: Pick<NegotiatedLimits, "expiredAtOrBefore" | "fenceProvesNothingBefore">;
  readonly requestTimeoutMs: number;
};

/** Rows dealt with together: questions to the broker in flight, rows in one transaction. */
const batchRows = 64;

export class Expiry {
  readonly #ports: ExpirePorts;
  /** No row that may still be tried was enqueued before this (MSG-11), so that most sweeps need not look. */
  #oldestOpenAtMs = Number.NEGATIVE_INFINITY;
  #sweeping = false;
  #fencing = false;

  constructor(ports: ExpirePorts) {
    this.#ports = ports;
  }

  /**
   * A row is in the store. The time that it bears may lie long before now: a host may sleep for days between reading its
   * clock and storing the row, and a sweep that runs in between knows nothing of it.
   */
  stored(enqueuedAt: number): void {
    this.#oldestOpenAtMs = Math.min(this.#oldestOpenAtMs, enqueuedAt);
  }

  /** Ends every pending row that is past its age. Safe to call at any time; a sweep that runs is not joined by another. */
  async sweep(): Promise<void> {
    const { outbox, clock, limits, log } = this.#ports;
    const nowMs = clock.nowMs();
    const cutoff = limits.expiredAtOrBefore(nowMs);
    if (this.#sweeping || this.#oldestOpenAtMs > cutoff) return;
    this.#sweeping = true;
    try {
      let ended = 0;
      for (;;) {
        const targets = outbox.expired(cutoff, batchRows);
        const endedNow = targets.length === 0 ? 0 : await this.#endExpired(targets);
        ended += endedNow;
        // Rows that this could not move are being changed by the drain or a requeue just now.
        if (endedNow === 0) break;
      }
      this.#oldestOpenAtMs = outbox.oldestOpenEnqueuedAt() ?? Number.POSITIVE_INFINITY;
      if (ended > 0) log.warn({ event: "rows_expired", rows: ended }, "rows were too old to be tried any more");
    } finally {
      this.#sweeping = false;
    }
  }

  /** Asks about every dead row whose fate is unknown and for which the broker's answer still proves something. */
  async settleUnknownFates(): Promise<void> {
    if (this.#fencing) return;
    this.#fencing = true;
    try {
      let after = "";
      while (this.#isOnline()) {
        const nowMs = this.#ports.clock.nowMs();
        const since = this.#ports.limits.fenceProvesNothingBefore(nowMs);
        const targets = this.#ports.outbox.deadOfUnknownFate(since, after, batchRows);
        const last = targets.at(-1);
        if (last === undefined) return;
        await Promise.all(targets.map((target) => this.#settleDead(target)));
        after = last.id;
      }
    } finally {
      this.#fencing = false;
    }
  }

  #isOnline(): boolean {
    return this.#ports.link.status().state === "online";
  }

  async #endExpired(targets: readonly FenceTarget[]): Promise<number> {
    const unknown = targets.filter((target) => fateOf(target) === "unknown");
    const knownIds = targets.filter((target) => fateOf(target) !== "unknown").map(({ id }) => id);
    const ended = await Promise.all([
      knownIds.length === 0
        ? 0
        : this.#ports.outbox.expireUnsentOrRefused(knownIds, "expired: older than the maximum age"),
      ...unknown.map(async (target) => ((await this.#endUnknown(target)) ? 1 : 0)),
    ]);
    return ended.reduce((sum, rows) => sum + rows, 0);
  }

  async #endUnknown(target: FenceTarget): Promise<boolean> {
    const { outbox } = this.#ports;
    const answer = await this.#fence(target);
    switch (answer.fate) {
      case "committed":
        return this.#commit(target, answer);
      case "fenced":
        return outbox.buryFenced(target.id, target.attempts, "expired: older than the maximum age, and fenced");
      case "taken":
        return outbox.buryFenced(target.id, target.attempts, takenError);
      case "unknown":
        return outbox.expireUnknown(target.id, target.attempts, "expired: older than the maximum age, fate unknown");
    }
  }

  async #settleDead(target: FenceTarget): Promise<void> {
    const answer = await this.#fence(target);
    if (answer.fate === "committed") await this.#commit(target, answer);
    else if (answer.fate === "taken") await this.#ports.outbox.buryFenced(target.id, target.attempts, takenError);
    else if (answer.fate === "fenced") {
      await this.#ports.outbox.buryFenced(
        target.id,
        target.attempts,
        "fenced: it was never accepted and never will be",
      );
    }
  }

  #commit(target: FenceTarget, answer: Extract<FenceAnswer, { fate: "committed" }>): Promise<boolean> {
    return this.#ports.outbox.commitLate(target.id, answer, this.#ports.clock.nowMs());
  }

  /** Beyond the broker's memory only "committed" proves anything: what it calls fenced it may have forgotten. */
  async #fence(target: FenceTarget): Promise<FenceAnswer> {
    if (!this.#isOnline()) return { fate: "unknown" };
    const outcome = await this.#ports.link.request(
      "fence",
      {
        client_message_id: target.clientMessageId,
        fingerprint: Buffer.from(target.wireFingerprint).toString("hex"),
      },
      { timeoutMs: this.#ports.requestTimeoutMs },
    );
    const answer = readFenceAnswer(outcome);
    const provesNothing = target.enqueuedAt <= this.#ports.limits.fenceProvesNothingBefore(this.#ports.clock.nowMs());
    return answer.fate !== "committed" && provesNothing ? { fate: "unknown" } : answer;
  }
}

const takenError = "taken: at the broker this id stands for another message";
