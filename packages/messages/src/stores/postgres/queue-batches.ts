// Lease requests of one queue that arrive at the same time share a transaction, and so do settlements. Each of them needs the
// lock on the queue's row, and would otherwise wait for the round trips and flushes of the others.
// Why: docs/tuning-log.md#consumers-share-a-transaction.
import { Batcher, transactions } from "@claudemesh/storage/batcher";
import type { Postgres, PostgresTransaction } from "@claudemesh/storage/postgres";
import { type LeaseAttempt, leaseWithRetries } from "../../core/expired-leases.ts";
import type { QueueStore, SettleOutcome } from "../../ports/queues.ts";
import { type LeaseCall, leaseMessages } from "./queue-leases.ts";
import type { QueueRef } from "./queue-rows.ts";
import { type SettleCall, settleMessages } from "./queue-settlements.ts";

const messagesPerTransaction = 1_000;

export function createQueueBatches(postgres: Postgres): Pick<QueueStore, "lease" | "settle"> {
  const leases = batchesOf<LeaseCall, LeaseAttempt>(postgres, leaseMessages, ({ request }) => request.max);
  const settles = batchesOf<SettleCall, SettleOutcome>(
    postgres,
    settleMessages,
    ({ request }) => request.brokerMessageIds.length,
  );
  return {
    lease: (request, nowMs) => leaseWithRetries(() => leases.submit({ request, nowMs })),
    settle: (request, nowMs) => settles.submit({ request, nowMs }),
  };
}

function batchesOf<Call extends { readonly request: QueueRef }, Outcome>(
  postgres: Postgres,
  decide: (tx: PostgresTransaction, at: QueueRef, calls: readonly Call[]) => Promise<Outcome[]>,
  messagesOf: (call: Call) => number,
): Batcher<Call, Outcome> {
  return new Batcher(transactions, {
    keyOf: ({ request }) => `${request.meshId}/${request.queue}`,
    weight: { of: messagesOf, max: messagesPerTransaction },
    run: (calls) => {
      const { meshId, queue } = (calls[0] as Call).request;
      return postgres.transaction((tx) => decide(tx, { meshId, queue }, calls));
    },
  });
}
