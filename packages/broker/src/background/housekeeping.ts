// Keeping this broker's store in order: sweeping and looking for orphans, slowly beside the accepts, or at once
// where a caller asks for it. The packages that own the tables decide what is removed and which rows fit together.

import type { MessagesStore } from "@claudemesh/messages/ports";
import { checkOrphans, type OrphanReport } from "@claudemesh/messages/services/check-orphans";
import type { SpacesStore } from "@claudemesh/spaces/ports";
import type { RuleStore } from "@claudemesh/storage/row-rules";
import type { Logger } from "pino";
import { type BrokerConfig, dedupeRetentionMs, messageRetentionMs } from "../config.ts";
import type { BrokerMetrics } from "../metrics.ts";
import { type Pace, runPaced } from "./run-paced.ts";
import { addSwept, type SweepEverythingPorts, type Swept, sweepEverything } from "./sweep-everything.ts";

/** Runs beside the accepts, while a caller waits for it. */
const restPartsBeside = 9;
const restPartsAsked = 1;
/** Who has looked at a mesh within this time has done so in the same night. */
const sameNightMs = 18 * 3_600_000;

/** Ids that may be forgotten are looked for in the first pass and after this time. */
const forgettingIntervalMs = 6 * 3_600_000;

type Surroundings = {
  readonly config: BrokerConfig;
  readonly messages: MessagesStore;
  readonly spaces: Pick<SpacesStore, "sweepSessions">;
  /** What must hold between rows, beside the rules of messages. */
  readonly otherRules: readonly RuleStore[];
  readonly metrics: BrokerMetrics;
  readonly log: Logger;
  readonly nowMs: () => number;
};

export class Housekeeping {
  readonly #broker: Surroundings;
  readonly #stopping = new AbortController();
  #pass: AsyncGenerator<Swept, void> | undefined;
  #forgotAtMs = Number.NEGATIVE_INFINITY;
  #sweeping: Promise<Swept> | undefined;
  #checking: Promise<OrphanReport> | undefined;

  constructor(broker: Surroundings) {
    this.#broker = broker;
  }

  /** Ends what is under way after its next step. */
  stop(): void {
    this.#stopping.abort();
  }

  /** One step of a pass that goes on for ever; false: the pass is over. */
  async sweepNext(): Promise<boolean> {
    const pass = this.#pass ?? this.#beginPass();
    // A pass that failed is over, and the next step begins another.
    this.#pass = undefined;
    const { done, value } = await pass.next();
    if (done === true) return false;
    this.#pass = pass;
    this.#broker.metrics.swept(value);
    return true;
  }

  #beginPass(): AsyncGenerator<Swept, void> {
    const nowMs = this.#broker.nowMs();
    const forgetting = nowMs - this.#forgotAtMs >= forgettingIntervalMs;
    if (forgetting) this.#forgotAtMs = nowMs;
    return sweepEverything(this.#sweepPorts(), { forgetting });
  }

  /** From beginning to end. A caller that asks while a check runs gets what that check finds. */
  sweepNow(): Promise<Swept> {
    this.#sweeping ??= this.#sweepAll().finally(() => {
      this.#sweeping = undefined;
    });
    return this.#sweeping;
  }

  async #sweepAll(): Promise<Swept> {
    let total: Swept = {};
    await runPaced(sweepEverything(this.#sweepPorts(), { forgetting: true }), this.#pace(restPartsAsked), (counts) => {
      total = addSwept(total, counts);
      this.#broker.metrics.swept(counts);
    });
    return total;
  }

  /** All meshes, from beginning to end. A caller that asks while a sweep runs gets what that sweep finds. */
  checkNow(): Promise<OrphanReport> {
    this.#checking ??= this.#check(restPartsAsked).finally(() => {
      this.#checking = undefined;
    });
    return this.#checking;
  }

  /** The meshes that no other broker on this store has looked at tonight. */
  async checkTonight(): Promise<void> {
    const { messages, nowMs } = this.#broker;
    await this.#check(restPartsBeside, (meshId) => messages.orphans.claim(meshId, nowMs(), nowMs() - sameNightMs));
  }

  async #check(restParts: number, isWanted?: (meshId: string) => Promise<boolean>): Promise<OrphanReport> {
    const { messages, otherRules: others, nowMs, metrics, log } = this.#broker;
    const ports = { store: messages, others, nowMs, onMesh: messages.orphans.noteCheck, ...(isWanted && { isWanted }) };
    const report = await runPaced(checkOrphans(ports), this.#pace(restParts));
    metrics.checked(report);
    for (const { name, rule, invariant, found, examples } of report.checks) {
      if (found === 0) continue;
      const details = { event: "orphans_found", check: name, invariant, found, examples };
      log.error(details, `rows do not fit together: ${rule}`);
    }
    log.info({ event: "orphan_check_done", meshes: report.meshes, found: report.found }, "the orphan check is done");
    return report;
  }

  #pace(restParts: number): Pace {
    return { restParts, signal: this.#stopping.signal };
  }

  #sweepPorts(): SweepEverythingPorts {
    const { config, messages: store, spaces, nowMs } = this.#broker;
    const terms = { messageRetentionMs: messageRetentionMs(config), dedupeRetentionMs: dedupeRetentionMs(config) };
    return { messages: { store, nowMs, ...terms }, spaces };
  }
}
