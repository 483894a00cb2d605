// Leases of one queue that are asked for at the same time share a transaction, and so do settlements: all of them need the
// queue's row, and would wait for each other's round trips and flushes.
// Why: docs/tuning-log.md#consumers-share-a-transaction.
import { Batcher, transactions } from "@claudemesh/storage/batcher";
import type { Postgres, PostgresTransaction } from "@claudemesh/storage/postgres";
import { lookForMessages } from "../../core/run-out-leases.ts";
import type { LeaseOutcome, QueueStore, SettleOutcome } from "../../ports/queues.ts";
import { type AskedLease, leaseMessages } from "./queue-leases.ts";
import type { QueueRef } from "./queue-rows.ts";
import { type AskedSettle, settleMessages } from "./queue-settlements.ts";

const messagesPerTransaction = 1_000;

export function createQueueBatches(postgres: Postgres): Pick<QueueStore, "lease" | "settle"> {
  const leases = batchesOf<AskedLease, LeaseOutcome | undefined>(postgres, leaseMessages, ({ request }) => request.max);
  const settles = batchesOf<AskedSettle, SettleOutcome>(
    postgres,
    settleMessages,
    ({ request }) => request.brokerMessageIds.length,
  );
  return {
    lease: (request, nowMs) => lookForMessages(() => leases.submit({ request, nowMs })),
    settle: (request, nowMs) => settles.submit({ request, nowMs }),
  };
}

function batchesOf<Asked extends { readonly request: QueueRef }, Outcome>(
  postgres: Postgres,
  decide: (tx: PostgresTransaction, at: QueueRef, asked: readonly Asked[]) => Promise<Outcome[]>,
  messagesOf: (asked: Asked) => number,
): Batcher<Asked, Outcome> {
  return new Batcher(transactions, {
    keyOf: ({ request }) => `${request.meshId}/${request.queue}`,
    weight: { of: messagesOf, max: messagesPerTransaction },
    run: (asked) => {
      const { meshId, queue } = (asked[0] as Asked).request;
      return postgres.transaction((tx) => decide(tx, { meshId, queue }, asked));
    },
  });
}
