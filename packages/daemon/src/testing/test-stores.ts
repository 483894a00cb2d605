// Real stores on SQLite in memory, and a log that remembers.
import { createSyncCommitHooks } from "@claudemesh/storage/commit-hooks";
import { type FailpointName, failpointNames } from "@claudemesh/storage/failpoint-names";
import { createFailpoints, type Failpoints, parseFailpoints } from "@claudemesh/storage/failpoints";
import { GroupCommit } from "@claudemesh/storage/group-commit";
import { openSqlite, type Sqlite } from "@claudemesh/storage/sqlite";
import { migrateSqlite } from "@claudemesh/storage/sqlite-migrations";
import type { NewOutboxRow } from "../core/outbox-row.ts";
import type {
  BrokerIdSearch,
  Clock,
  DismissStore,
  InboxArrival,
  InboxEntries,
  InboxReaders,
  InboxStore,
  Log,
  LogFields,
  MembershipStore,
  MembersStore,
  NegotiatedStore,
  OutboxStore,
  RequeueStore,
} from "../ports.ts";
import { createSqliteBrokerIdSearch } from "../stores/sqlite/broker-id-search.ts";
import { createSqliteDismissStore } from "../stores/sqlite/dismiss-store.ts";
import { createSqliteInboxEntries } from "../stores/sqlite/inbox-entries.ts";
import { createSqliteInboxReaders } from "../stores/sqlite/inbox-readers.ts";
import { createSqliteInboxStore } from "../stores/sqlite/inbox-store.ts";
import {
  createSqliteMembershipStore,
  createSqliteMembersStore,
  createSqliteNegotiatedStore,
} from "../stores/sqlite/members-store.ts";
import { inboxMigrations, outboxMigrations } from "../stores/sqlite/open-databases.ts";
import { createSqliteOutboxStore } from "../stores/sqlite/outbox-store.ts";
import { createSqliteRequeueStore } from "../stores/sqlite/requeue-store.ts";
import { createRowIds } from "../stores/sqlite/time-ordered-ids.ts";

export type TestStores = {
  readonly outboxDb: Sqlite;
  readonly inboxDb: Sqlite;
  readonly outbox: OutboxStore;
  readonly requeues: RequeueStore;
  readonly dismissals: DismissStore;
  readonly inbox: InboxStore;
  readonly entries: InboxEntries;
  readonly readers: InboxReaders;
  readonly search: BrokerIdSearch;
  readonly members: MembersStore;
  readonly negotiated: NegotiatedStore;
  readonly membership: MembershipStore;
  readonly nextOutboxId: () => string;
};

export function failpointsOf(text: string): Failpoints<FailpointName> {
  return createFailpoints(parseFailpoints(text, failpointNames));
}

export const noFailpoints = failpointsOf("");

export async function openTestStores(clock: Pick<Clock, "nowMs">, failpoints = noFailpoints): Promise<TestStores> {
  const outboxDb = openSqlite({ path: ":memory:" });
  const inboxDb = openSqlite({ path: ":memory:" });
  await migrateSqlite(outboxDb, outboxMigrations());
  await migrateSqlite(inboxDb, inboxMigrations());
  const hooks = createSyncCommitHooks(failpoints);
  const outboxCommit = new GroupCommit(outboxDb, { gathersTurns: true, hooks });
  const inboxCommit = new GroupCommit(inboxDb, { gathersTurns: true, hooks });
  return {
    outboxDb,
    inboxDb,
    outbox: createSqliteOutboxStore(outboxDb, outboxCommit),
    requeues: createSqliteRequeueStore(outboxDb, outboxCommit),
    dismissals: createSqliteDismissStore(outboxCommit),
    inbox: createSqliteInboxStore(inboxDb, inboxCommit, createRowIds(inboxDb, "inbox", clock.nowMs)),
    entries: createSqliteInboxEntries(inboxDb, inboxCommit),
    readers: createSqliteInboxReaders(inboxCommit),
    search: createSqliteBrokerIdSearch(outboxDb, inboxDb),
    members: createSqliteMembersStore(outboxDb, outboxCommit),
    negotiated: createSqliteNegotiatedStore(outboxDb, outboxCommit),
    membership: createSqliteMembershipStore(outboxDb, outboxCommit),
    nextOutboxId: createRowIds(outboxDb, "outbox", clock.nowMs),
  };
}

/** A row to accept; a test names what it cares about. */
export function newRow(stores: TestStores, clock: Clock, given: Partial<NewOutboxRow> = {}): NewOutboxRow {
  const id = stores.nextOutboxId();
  return {
    id,
    clientMessageId: `client-${id}`,
    requestFingerprint: new Uint8Array(32).fill(1),
    wireFingerprint: new Uint8Array(32).fill(2),
    to: "#general",
    destination: { kind: "topic", ref: "general" },
    priority: "next",
    canonicalMeta: "",
    replyToId: undefined,
    envelopeVersion: "1",
    payload: new TextEncoder().encode("hello"),
    enqueuedAt: clock.nowMs(),
    ...given,
  };
}

/** A message that arrives; a test names what it cares about. */
export function arrivalOf(historyId: number, body: string, given: Partial<InboxArrival> = {}): InboxArrival {
  return {
    clientMessageId: `c-${historyId}`,
    brokerMessageId: `b-${historyId}`,
    historyId,
    topic: "general",
    senderPubkey: "ab".repeat(32),
    senderName: undefined,
    priority: "next",
    meta: "",
    replyToId: undefined,
    acceptedAt: 1,
    sealed: false,
    fromAgent: undefined,
    toAgent: undefined,
    unreadable: undefined,
    restored: false,
    body: new TextEncoder().encode(body),
    ...given,
  };
}

export type LogLine = LogFields & { readonly level: string; readonly msg: string };

export function recordingLog(): Log & { readonly lines: LogLine[]; readonly events: () => unknown[] } {
  const lines: LogLine[] = [];
  const at = (level: string) => (fields: LogFields, msg: string) => {
    lines.push({ level, msg, ...fields });
  };
  return {
    lines,
    events: () => lines.map(({ event }) => event),
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
  };
}
