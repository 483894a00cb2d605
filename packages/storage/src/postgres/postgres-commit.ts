// Transactions on PostgreSQL that carry a label, so that hooks hear of them: what GroupCommit.submit is on SQLite.
import type { CommitHooks, CommitLabel } from "../commit-hooks.ts";
import type { Postgres, PostgresTransaction } from "./postgres.ts";

export type PostgresCommit = {
  /** As `Postgres.transaction`. */
  readonly submit: <R>(body: (tx: PostgresTransaction) => Promise<R>, label: CommitLabel) => Promise<R>;
};

export function createPostgresCommit(
  postgres: Pick<Postgres, "transaction">,
  hooks: CommitHooks | undefined,
): PostgresCommit {
  if (hooks === undefined) return { submit: (body) => postgres.transaction(body) };
  return {
    submit: async (body, label) => {
      const result = await postgres.transaction(async (tx) => {
        const done = await body(tx);
        await hooks.before(label);
        return done;
      });
      await hooks.after(label);
      return result;
    },
  };
}
