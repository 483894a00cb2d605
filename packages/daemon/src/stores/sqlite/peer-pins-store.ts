// Pinned keys of names, in the outbox's database: a send to a name rests on its pin. What a pin means is decided in the core.
import type { GroupCommit } from "@claudemesh/storage/group-commit";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { PeerPin } from "../../core/peer-pin.ts";
import type { PeerPinsStore } from "../../ports.ts";

export function createSqlitePeerPinsStore(db: Sqlite, commit: Pick<GroupCommit, "submit">): PeerPinsStore {
  return {
    load: () => loadPins(db),
    put: (pin) =>
      commit.submit((tx) => {
        putPin(tx, pin);
      }),
  };
}

type PinRow = { name: string; pubkey: string; pinned_at: number; verified_at: number | null };

export function loadPins(db: Sqlite): PeerPin[] {
  const rows = db.sql<PinRow>("SELECT name, pubkey, pinned_at, verified_at FROM peer_pin").all();
  return rows.map(({ name, pubkey, pinned_at, verified_at }) => ({
    name,
    pubkey,
    pinnedAt: pinned_at,
    verifiedAt: verified_at ?? undefined,
  }));
}

export function putPin(tx: Sqlite, { name, pubkey, pinnedAt, verifiedAt }: PeerPin): void {
  tx.sql(
    `INSERT INTO peer_pin (name, pubkey, pinned_at, verified_at) VALUES (?, ?, ?, ?)
     ON CONFLICT (name) DO UPDATE SET pubkey = excluded.pubkey, pinned_at = excluded.pinned_at,
       verified_at = excluded.verified_at`,
  ).run(name, pubkey, pinnedAt, verifiedAt ?? null);
}
