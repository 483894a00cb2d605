// Both databases of a daemon with everything that is kept in them, opened together and closed together.
import type { MeshPaths } from "@claudemesh/client/home";
import type { FailpointName } from "@claudemesh/storage/failpoint-names";
import type { Failpoints } from "@claudemesh/storage/failpoints";
import type { Clock, InboxStore, Log, MembersStore, NegotiatedStore, OutboxStore } from "../../ports.ts";
import { createSqliteInboxStore } from "./inbox-store.ts";
import { createMarkedCommit } from "./marked-commit.ts";
import { createSqliteMembersStore, createSqliteNegotiatedStore } from "./members-store.ts";
import { openInboxDatabase, openOutboxDatabase } from "./open-databases.ts";
import { createSqliteOutboxStore } from "./outbox-store.ts";
import { createRowIds } from "./time-ordered-ids.ts";

export type DaemonStores = {
  readonly outbox: OutboxStore;
  readonly inbox: InboxStore;
  readonly members: MembersStore;
  readonly negotiated: NegotiatedStore;
  readonly nextOutboxId: () => string;
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
    const outboxCommit = createMarkedCommit(outbox.db, failpoints, {
      before: "outbox.before_commit",
      after: "outbox.after_commit",
    });
    const inboxCommit = createMarkedCommit(inbox.db, failpoints, { after: "inbox.after_commit" });
    return {
      outbox: createSqliteOutboxStore(outbox.db, outboxCommit),
      inbox: createSqliteInboxStore(inbox.db, inboxCommit, createRowIds(inbox.db, "inbox", clock.nowMs)),
      members: createSqliteMembersStore(outbox.db, outboxCommit.commit),
      negotiated: createSqliteNegotiatedStore(outbox.db, outboxCommit.commit),
      nextOutboxId: createRowIds(outbox.db, "outbox", clock.nowMs),
      schema: { outbox: outbox.schema, inbox: inbox.schema },
      close: () => {
        outboxCommit.commit.close();
        inboxCommit.commit.close();
        outbox.db.close();
        inbox.db.close();
      },
    };
  } catch (error) {
    outbox.db.close();
    throw error;
  }
}
