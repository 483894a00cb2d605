// One queue in a PostgreSQL database, written to directly, and a store whose leases and settlements have one connection, which
// counts how often they wait for the server.
import {
  openPostgres,
  Postgres,
  type PostgresTransaction,
  type PostgresValue,
  type TransactionOptions,
} from "@claudemesh/storage/postgres";
import type { LeaseOutcome, QueueStore, SettleOutcome } from "../../../ports/queues.ts";
import { createPostgresMessagesStore } from "../messages-store.ts";
import type { PostgresHarness } from "./postgres-harness.ts";

/** Counts how often its transactions begin to wait for the server. */
class WaitingPostgres extends Postgres {
  /** Of the last transaction, without that for COMMIT. */
  waits = 0;
  /** Statements of the last transaction whose answers had not arrived when COMMIT was sent. */
  underway = 0;

  override transaction<R>(body: (tx: PostgresTransaction) => Promise<R>, options?: TransactionOptions): Promise<R> {
    this.waits = 0;
    return super.transaction(async (tx) => {
      let unanswered = 0;
      const sent = <Answer>(answer: Promise<Answer>): Promise<Answer> => {
        if (unanswered === 0) this.waits += 1;
        unanswered += 1;
        return answer.finally(() => {
          unanswered -= 1;
        });
      };
      const result = await body({
        query: <Row>(text: string, values?: readonly PostgresValue[], name?: string) =>
          sent(tx.query<Row>(text, values, name)),
        execute: (text, values, name) => sent(tx.execute(text, values, name)),
        script: (text) => sent(tx.script(text)),
      });
      this.underway = unanswered;
      return result;
    }, options);
  }
}

const meshId = "00000000-0000-7000-8000-00000000000a";
const idOf = (n: string) => `('00000000-0000-7000-8000-' || lpad((${n})::text, 12, '0'))::uuid`;

export class QueueRig {
  readonly queueing: WaitingPostgres;
  nowMs = 1_700_000_000_000;
  readonly #common: Postgres;
  readonly #harness: PostgresHarness;
  readonly #queues: QueueStore;

  private constructor(harness: PostgresHarness, url: string) {
    this.#harness = harness;
    this.queueing = new WaitingPostgres({ url, poolSize: 1, genericPlans: true, onIdleError: () => undefined });
    this.#common = openPostgres({ url, poolSize: 1, onIdleError: () => undefined });
    const pools = { accepting: this.#common, looking: this.#common, queueing: this.queueing, common: this.#common };
    this.#queues = createPostgresMessagesStore(pools).queues;
  }

  /** A mesh with one member and an empty queue. */
  static async start(harness: PostgresHarness, url: string): Promise<QueueRig> {
    await harness.reset();
    const rig = new QueueRig(harness, url);
    await harness.query(`INSERT INTO mesh.mesh (id, name, created_at) VALUES ('${meshId}', 'name', now())`);
    await rig.addMembers(1, 1);
    await rig.#queues.create(meshId, { id: "jobs", maxDeliveries: 3, createdBy: "m1" }, rig.nowMs);
    return rig;
  }

  async close(): Promise<void> {
    await Promise.all([this.queueing.close(), this.#common.close()]);
  }

  async addMembers(from: number, to: number): Promise<void> {
    await this.#harness.query(`INSERT INTO mesh.member (mesh_id, pubkey, name, role, joined_at)
      SELECT '${meshId}', 'm' || n, 'm', 'member', now() FROM generate_series(${from}, ${to}) AS n`);
  }

  /** Messages of the queue with these numbers, all ready or all acked under leases of their own. */
  async addMessages(from: number, to: number, state: "ready" | "acked"): Promise<void> {
    const series = `generate_series(${from}, ${to}) AS n`;
    const lease = state === "ready" ? "0, NULL, NULL, NULL" : "1, 'm1', 'old-' || n, now()";
    await this.#harness.query(`INSERT INTO mesh.message_queue SELECT '${meshId}', ${idOf("n")}, 'c' || n, 'queue', 'jobs',
      'm1', '1', 'hello', '', 'next', NULL, now(), n FROM ${series}`);
    await this.#harness.query(`INSERT INTO mesh.queue_message (mesh_id, queue, history_id, broker_message_id, state,
        deliveries, lease_holder, lease_token, settled_at)
      SELECT '${meshId}', 'jobs', n, ${idOf("n")}, '${state}', ${lease} FROM ${series}`);
    if (state === "ready") return;
    await this.#harness.query(`INSERT INTO mesh.queue_lease
      SELECT '${meshId}', 'jobs', 'm1', 'old-' || n, 'old-' || n, 1, 30, now(), now() FROM ${series}`);
    await this.#harness.query(`INSERT INTO mesh.queue_settlement
      SELECT '${meshId}', 'jobs', 'old-' || n, ${idOf("n")}, 'm1', 'acked', now(), n FROM ${series}`);
  }

  /** `name` is the request's id, and the token. */
  lease(name: string, max = 1): Promise<LeaseOutcome> {
    const terms = { leaseRequestId: name, leaseToken: name, max, leaseSeconds: 30 };
    return this.#queues.lease({ meshId, queue: "jobs", holder: "m1", ...terms }, this.nowMs);
  }

  /** The ids of what was leased. */
  async take(name: string, max = 1): Promise<string[]> {
    const outcome = await this.lease(name, max);
    return outcome.type === "leased" ? outcome.items.map((item) => item.broker_message_id) : [];
  }

  ack(name: string, brokerMessageIds: readonly string[]): Promise<SettleOutcome> {
    const lease = { holder: "m1", leaseToken: name, brokerMessageIds };
    return this.#queues.settle({ meshId, queue: "jobs", ...lease, settlement: "acked" }, this.nowMs);
  }
}
