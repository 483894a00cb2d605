// Dismissing on SQLite: a mark on a dead row, set once. The row's state stays what it is.
// Why: docs/decisions/0136.
import type { DismissStore } from "../../ports.ts";
import type { MarkedCommit } from "./marked-commit.ts";
import { dismissRow } from "./outbox-rows.ts";

export function createSqliteDismissStore({ commit, note }: MarkedCommit): DismissStore {
  return {
    dismiss: (order) =>
      commit.submit((tx) => {
        note();
        return dismissRow(tx, order);
      }),
  };
}
