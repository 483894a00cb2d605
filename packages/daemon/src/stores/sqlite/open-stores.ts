// Both databases of a daemon with everything that is kept in them, opened together and closed together.
import type { MeshPaths } from "@claudemesh/client/home";
import { createSyncCommitHooks } from "@claudemesh/storage/commit-hooks";
import type { FailpointName } from "@claudemesh/storage/failpoint-names";
import type { Failpoints } from "@claudemesh/storage/failpoints";
import { GroupCommit } from "@claudemesh/storage/group-commit";
import type {
  AuditReading,
  BrokerIdSearch,
  Chance,
  Clock,
  DismissStore,
  InboxEntries,
  InboxReaders,
  InboxStore,
  Log,
  MembershipStore,
  MembersStore,
  NegotiatedStore,
  OutboxStore,
  PeerPinsStore,
  RequeueStore,
  WatchOutbox,
} from "../../ports.ts";
import { systemChance } from "../../system-chance.ts";
import { createSqliteAuditReading } from "./audit-reading.ts";
import { createSqliteBrokerIdSearch } from "./broker-id-search.ts";
import { createSqliteDismissStore } from "./dismiss-store.ts";
import { createSqliteInboxEntries } from "./inbox-entries.ts";
import { createSqliteInboxReaders } from "./inbox-readers.ts";
import { createSqliteInboxStore, selectLastId } from "./inbox-store.ts";
import { createSqliteMembershipStore, createSqliteMembersStore, createSqliteNegotiatedStore } from "./members-store.ts";
import { type OpenDatabase, openInboxDatabase, openOutboxDatabase } from "./open-databases.ts";
import { createSqliteOutboxStore } from "./outbox-store.ts";
import { createOutboxWatch } from "./outbox-watch.ts";
import { createSqlitePeerPinsStore } from "./peer-pins-store.ts";
import { createSqliteRequeueStore } from "./requeue-store.ts";
import { createRowIds } from "./time-ordered-ids.ts";

export type DaemonStores = {
  readonly outbox: OutboxStore;
  readonly requeues: RequeueStore;
  readonly dismissals: DismissStore;
  readonly inbox: InboxStore;
  readonly entries: InboxEntries;
  readonly readers: InboxReaders;
  readonly search: BrokerIdSearch;
  readonly auditing: AuditReading;
  readonly members: MembersStore;
  readonly negotiated: NegotiatedStore;
  readonly membership: MembershipStore;
  readonly pins: PeerPinsStore;
  readonly nextOutboxId: () => string;
  readonly watchOutbox: WatchOutbox;
  /** Migrations that each database has seen. */
  readonly schema: { readonly outbox: number; readonly inbox: number };
  /** Commits what waits and closes both databases. */
  readonly close: () => void;
};

export async function openStores(
  paths: Pick<MeshPaths, "outboxDb" | "inboxDb">,
  clock: Pick<Clock, "nowMs">,
  failpoints: Failpoints<FailpointName>,
  log: Log,
): Promise<DaemonStores> {
  const outbox = await openOutboxDatabase(paths.outboxDb);
  try {
    const timestamp = new Date(clock.nowMs()).toISOString().replaceAll(/[:.]/g, "-");
    const inbox = await openInboxDatabase(paths.inboxDb, timestamp, log);
    return createStores(outbox, inbox, clock, failpoints);
  } catch (error) {
    outbox.db.close();
    throw error;
  }
}

/** On databases that are open and migrated. */
export function createStores(
  outbox: OpenDatabase,
  inbox: OpenDatabase,
  clock: Pick<Clock, "nowMs">,
  failpoints: Failpoints<FailpointName>,
  chance: Chance = systemChance,
): DaemonStores {
  const { nextTurn } = chance;
  // Callers have a connection each, and a turn of the loop hears a few of them.
  const committing = { nextTurn, gathersTurns: true, hooks: createSyncCommitHooks(failpoints) };
  const outboxCommit = new GroupCommit(outbox.db, committing);
  const inboxIds = createRowIds(inbox.db, "inbox", clock.nowMs, selectLastId(inbox.db), chance);
  const inboxCommit = new GroupCommit(inbox.db, committing);
  return {
    outbox: createSqliteOutboxStore(outbox.db, outboxCommit),
    requeues: createSqliteRequeueStore(outbox.db, outboxCommit),
    dismissals: createSqliteDismissStore(outboxCommit),
    inbox: createSqliteInboxStore(inbox.db, inboxCommit, inboxIds),
    entries: createSqliteInboxEntries(inbox.db, inboxCommit),
    readers: createSqliteInboxReaders(inboxCommit),
    search: createSqliteBrokerIdSearch(outbox.db, inbox.db),
    auditing: createSqliteAuditReading(outbox.db, inbox.db),
    members: createSqliteMembersStore(outbox.db, outboxCommit),
    negotiated: createSqliteNegotiatedStore(outbox.db, outboxCommit),
    membership: createSqliteMembershipStore(outbox.db, outboxCommit),
    pins: createSqlitePeerPinsStore(outbox.db, outboxCommit),
    nextOutboxId: createRowIds(outbox.db, "outbox", clock.nowMs, undefined, chance),
    watchOutbox: createOutboxWatch(outbox.db),
    schema: { outbox: outbox.schema, inbox: inbox.schema },
    close: () => {
      outboxCommit.close();
      inboxCommit.close();
      outbox.db.close();
      inbox.db.close();
    },
  };
}
