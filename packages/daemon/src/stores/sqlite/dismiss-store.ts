// Dismissing on SQLite: a mark on a dead row, set once. The row's state stays what it is, but for a waiting row of a former
// member, which nothing will ever send: it dies of that and is marked in one statement.
// Why: docs/decisions/0136.
import type { GroupCommit } from "@claudemesh/storage/group-commit";
import type { DismissStore } from "../../ports.ts";
import { dismissRow } from "./outbox-rows.ts";

export function createSqliteDismissStore(commit: GroupCommit): DismissStore {
  return {
    dismiss: (order) => commit.submit((tx) => dismissRow(tx, order), "outbox"),
  };
}
