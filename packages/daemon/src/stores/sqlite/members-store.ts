// The member list and the broker's last announcement, kept in the outbox's database because resolving a name and
// bounding a send are part of accepting one.
import type { NegotiatedFeatures } from "@claudemesh/protocol/features";
import type { GroupCommit } from "@claudemesh/storage/group-commit";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { MemberEntry, MembersStore, NegotiatedStore } from "../../ports.ts";

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

const negotiatedKey = "negotiated";

export function createSqliteNegotiatedStore(db: Sqlite, commit: GroupCommit): NegotiatedStore {
  return {
    load: () => {
      const row = db.sql<{ value: string }>("SELECT value FROM daemon_state WHERE key = ?").get(negotiatedKey);
      return row === undefined ? undefined : (JSON.parse(row.value) as NegotiatedFeatures);
    },
    save: (features) =>
      commit.submit((tx) => {
        tx.sql(
          "INSERT INTO daemon_state (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        ).run(negotiatedKey, JSON.stringify(features));
      }),
  };
}
