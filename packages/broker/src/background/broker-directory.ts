// This broker's row among the brokers of its store: renewed at intervals, so that it ends with the broker, and read together
// with those of the others. The caller decides who is notified when the list changes.
// Why: docs/decisions/0143.
import type { BrokersStore } from "@claudemesh/members/ports/brokers";

export type BrokerDirectoryPorts = {
  readonly store: BrokersStore;
  readonly brokerId: string;
  readonly publicUrl: string | undefined;
  readonly nowMs: () => number;
  readonly intervalMs: number;
  readonly onFailure: (error: unknown) => void;
  /** The list is another than it was. Never before `start`. */
  readonly onChange: (urls: readonly string[]) => void;
};

/** A lease outlives so many renewals that fail. */
const renewalsPerLease = 3;

export class BrokerDirectory {
  readonly #ports: BrokerDirectoryPorts;
  #urls: readonly string[] = [];
  #timer: NodeJS.Timeout | undefined;
  #working: Promise<void> = Promise.resolve();

  constructor(ports: BrokerDirectoryPorts) {
    this.#ports = ports;
  }

  /** Where clients reach the brokers of this store, as it was read last; empty where none has a public address. */
  readonly urls = (): readonly string[] => this.#urls;

  /** Writes this broker's row. Rejects unless the store has taken it. */
  readonly announce = async (): Promise<void> => {
    const { store, brokerId: id, publicUrl, nowMs, intervalMs } = this.#ports;
    const now = nowMs();
    await store.announce({ id, publicUrl }, now, now + renewalsPerLease * intervalMs);
  };

  /** The first row is there, and the list read, when it resolves. */
  async start(): Promise<void> {
    await this.announce();
    this.#urls = await this.#ports.store.listUrls(this.#ports.nowMs());
    this.#timer = setInterval(() => {
      this.#working = this.#renew().catch(this.#ports.onFailure);
    }, this.#ports.intervalMs);
  }

  /** The others learn at their next look that this one is gone. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#working;
    await this.#ports.store.withdraw(this.#ports.brokerId).catch(this.#ports.onFailure);
  }

  async #renew(): Promise<void> {
    await this.announce();
    const urls = await this.#ports.store.listUrls(this.#ports.nowMs());
    if (urls.join(" ") === this.#urls.join(" ")) return;
    this.#urls = urls;
    this.#ports.onChange(urls);
  }
}
