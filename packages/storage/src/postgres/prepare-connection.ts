// Sets and checks what every PostgreSQL connection promises, before it is used.
import type pg from "pg";
import { StorageError } from "../storage-error.ts";

export interface ConnectionSettings {
  /** The server cancels a statement after this; 0 never. */
  statementTimeoutMs: number;
  /** Plans of named statements are made once, for any values, and by the indexes. */
  genericPlans: boolean;
  /** How long all of this may take. */
  timeoutMs: number;
}

/** Runs once on each new connection. */
export async function prepareConnection(client: pg.Client, settings: ConnectionSettings): Promise<void> {
  // The driver's own limit ends when the server has let us in, and the slot in the pool is taken until this has ended too.
  const drop = () => client.connection.stream.destroy(new Error(`no answer in ${settings.timeoutMs} ms`));
  const watchdog = setTimeout(drop, settings.timeoutMs);
  try {
    await configure(client, settings);
  } finally {
    clearTimeout(watchdog);
  }
}

/**
 * Reads outside a transaction are all that autocommit may do, names are always qualified, and a commit waits for the flush
 * whatever the role's or the database's defaults say.
 */
async function configure(client: pg.Client, settings: ConnectionSettings): Promise<void> {
  await client.query(
    `SELECT set_config('synchronous_commit',
              CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false),
            set_config('search_path', 'pg_catalog', false),
            set_config('default_transaction_read_only', 'on', false),
            set_config('idle_in_transaction_session_timeout', '60s', false),
            set_config('statement_timeout', $1, false)`,
    [String(settings.statementTimeoutMs)],
  );
  if (settings.genericPlans) {
    await client.query(
      `SELECT set_config('plan_cache_mode', 'force_generic_plan', false), set_config('enable_seqscan', 'off', false)`,
    );
  }
  const { rows } = await client.query<{ synchronous_commit: string }>("SHOW synchronous_commit");
  const actual = rows[0]?.synchronous_commit;
  if (actual === "on" || actual === "remote_apply") return;
  throw new StorageError("unavailable", `PostgreSQL keeps synchronous_commit at ${actual} instead of on`);
}
