// The member list, the broker's last announcement and the end of a membership, kept in the outbox's database because resolving a name and
// bounding a send are part of accepting one.
import type { NegotiatedFeatures } from "@claudemesh/protocol/features";
import type { GroupCommit } from "@claudemesh/storage/group-commit";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { MemberEntry, MembershipEnd, MembershipStore, MembersStore, NegotiatedStore } from "../../ports.ts";

export function createSqliteMembersStore(db: Sqlite, commit: GroupCommit): MembersStore {
  return {
    load: () => db.sql<MemberEntry>("SELECT pubkey, name FROM member").all(),
    change: ({ put, remove }) =>
      commit.submit((tx) => {
        for (const pubkey of remove) tx.sql("DELETE FROM member WHERE pubkey = ?").run(pubkey);
        for (const { pubkey, name } of put) {
          tx.sql(
            "INSERT INTO member (pubkey, name) VALUES (?, ?) ON CONFLICT (pubkey) DO UPDATE SET name = excluded.name",
          ).run(pubkey, name);
        }
      }),
  };
}

export function createSqliteNegotiatedStore(db: Sqlite, commit: GroupCommit): NegotiatedStore {
  const fact = createFact<NegotiatedFeatures>(db, commit, "negotiated");
  return { load: fact.load, save: fact.save };
}

export function createSqliteMembershipStore(db: Sqlite, commit: GroupCommit): MembershipStore {
  return createFact<MembershipEnd>(db, commit, membershipEndKey);
}

export function loadMembershipEnd(db: Sqlite): MembershipEnd | undefined {
  return loadFact<MembershipEnd>(db, membershipEndKey);
}

/** In `daemon_state`, as long as the broker's last word is that this member was removed. */
export const membershipEndKey = "membership_ended";

/** One value that outlives the process. Undefined where there is none. */
function createFact<Value>(db: Sqlite, commit: GroupCommit, key: string) {
  return {
    load: () => loadFact<Value>(db, key),
    save: (value: Value | undefined): Promise<void> =>
      commit.submit((tx) => {
        if (value === undefined) tx.sql("DELETE FROM daemon_state WHERE key = ?").run(key);
        else tx.sql(saveFactSql).run(key, JSON.stringify(value));
      }),
  };
}

function loadFact<Value>(db: Sqlite, key: string): Value | undefined {
  const row = db.sql<{ value: string }>("SELECT value FROM daemon_state WHERE key = ?").get(key);
  return row === undefined ? undefined : (JSON.parse(row.value) as Value);
}

const saveFactSql =
  "INSERT INTO daemon_state (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
