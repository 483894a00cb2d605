// Faults in the code itself, each with the oracles that may name it. They stand between a service and what it works
// on, and do what a careless change could do.

import type { DaemonStores } from "@claudemesh/daemon/testing/stores";
import type { MessagesStore } from "@claudemesh/messages/ports";
import type { OracleName } from "../oracles/violation.ts";
import type { Disk } from "../world/disk.ts";
import type { Plants } from "../world/world.ts";

export type KnownBad = { readonly what: string; readonly named: readonly OracleName[]; readonly plants: Plants };

const inDaemon = (stores: (stores: DaemonStores) => DaemonStores): Plants => ({ daemon: { stores } });
const inBroker = (broker: (stores: MessagesStore, disk: Disk) => MessagesStore): Plants => ({ broker });
const ignore = () => undefined;

export const knownBadMessages: readonly KnownBad[] = [
  {
    what: "a send is answered before its row is on disk",
    named: ["acked_send_lost", "id_answered_twice"],
    plants: inDaemon((stores) => ({
      ...stores,
      outbox: {
        ...stores.outbox,
        insert: async (row, as) => {
          const send = stores.outbox.find(row.clientMessageId);
          if (send !== undefined) return { type: "known", send };
          stores.outbox.insert(row, as).catch(ignore);
          return { type: as };
        },
      },
    })),
  },
  {
    what: "a delivery is acknowledged before its inbox row is on disk",
    named: ["delivery_lost"],
    plants: inDaemon((stores) => ({
      ...stores,
      inbox: {
        ...stores.inbox,
        insert: async (arrival, receivedAt) => {
          stores.inbox.insert(arrival, receivedAt).catch(ignore);
          return "new";
        },
      },
    })),
  },
  {
    what: "a start forgets rows that were inflight",
    named: ["not_settled"],
    plants: inDaemon((stores) => ({ ...stores, outbox: { ...stores.outbox, resumeInflight: async () => 0 } })),
  },
  {
    what: "a late success moves a row that another has taken the place of",
    named: ["row_moved_wrongly"],
    plants: {
      daemon: {
        stores: (stores, disk) => ({
          ...stores,
          outbox: {
            ...stores.outbox,
            commitLate: async (id, acceptance, nowMs) => {
              const columns = "status = 'done', broker_message_id = ?, history_id = ?, delivered_at = ?";
              const { brokerMessageId, historyId } = acceptance;
              disk.sql(`UPDATE outbox SET ${columns} WHERE id = ?`).run(brokerMessageId, historyId, nowMs, id);
              return true;
            },
          },
        }),
      },
    },
  },
  {
    what: "the broker loses its dedupe row",
    named: ["committed_twice", "orphans_found", "audit_unbalanced"],
    plants: inBroker((stores, disk) => ({
      ...stores,
      accepts: {
        ...stores.accepts,
        accept: async (send) => {
          const committed = await stores.accepts.accept(send);
          disk.sql("DELETE FROM client_message_dedupe WHERE client_message_id = ?").run(send.clientMessageId);
          return committed;
        },
      },
    })),
  },
  {
    what: "a fence is answered and not written",
    named: ["committed_twice", "audit_unbalanced"],
    plants: inBroker((stores) => ({
      ...stores,
      fences: {
        ...stores.fences,
        fence: async (request) => {
          const fate = await stores.fences.findFate(request);
          return fate.fate === "none" ? { fate: "fenced" } : fate;
        },
      },
    })),
  },
  {
    what: "an acknowledgement of a queue's message is answered and not written",
    named: ["queue_wrong"],
    plants: inBroker((stores) => ({
      ...stores,
      queues: {
        ...stores.queues,
        settle: async ({ brokerMessageIds, settlement }) => ({
          type: "settled",
          settlements: new Map(brokerMessageIds.map((id) => [id, settlement])),
        }),
      },
    })),
  },
  {
    what: "a delivery is settled for all receivers when one acknowledges it",
    named: ["delivery_lost", "audit_unbalanced"],
    plants: inBroker((stores, disk) => ({
      ...stores,
      deliveries: {
        ...stores.deliveries,
        settle: async (meshId, recipient, historyIds, nowMs) => {
          await stores.deliveries.settle(meshId, recipient, historyIds, nowMs);
          const sql =
            "UPDATE delivery_queue SET settled_at = ?, outcome = 'delivered' WHERE history_id = ? AND outcome IS NULL";
          for (const historyId of historyIds) disk.sql(sql).run(nowMs, historyId);
        },
      },
    })),
  },
  {
    what: "a reader skips what it should see",
    named: ["history_order", "delivery_lost"],
    plants: inBroker((stores) => ({
      ...stores,
      history: {
        read: async (query) => {
          const page = await stores.history.read(query);
          return { ...page, items: page.items.filter(({ history_id }) => history_id % 10 !== 0) };
        },
      },
    })),
  },
];
