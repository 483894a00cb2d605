// The one failure that leaves this package. A caller chooses on `kind`; the catalogue code, the status and whether to
// retry are the caller's to decide. What SQLite or PostgreSQL said stays in `cause` and is never matched by its text.

export type StorageErrorKind =
  /** No room left. The transaction is rolled back. */
  | "disk_full"
  /** A read, write or flush failed. After one during COMMIT the outcome is open until the file is opened again. */
  | "io"
  /** The file or page is not what a database wrote. */
  | "corrupt"
  /** Another writer held the lock for longer than we wait. Nothing was written. */
  | "busy"
  /** Another process holds the instance lock. */
  | "locked"
  /** A row broke a declared rule; `constraint` says which sort. */
  | "constraint"
  /** Concurrent transactions could not be put in an order, after all retries. Nothing was written. */
  | "conflict"
  /** A statement ran longer than allowed. The transaction is rolled back. */
  | "timeout"
  /** The store cannot be opened or reached, or was lost before COMMIT was sent. Nothing was written. */
  | "unavailable"
  /** The connection was lost while COMMIT was under way: it may or may not have happened. Never retried here. */
  | "commit_unknown"
  /** The path is a link, a folder or already taken. */
  | "path_refused"
  /** The database holds a migration that this build does not know. */
  | "schema_newer"
  /** A migration that ran is not the one this build knows under that number. */
  | "schema_changed"
  /** An integer in a row does not fit a number exactly. */
  | "unsafe_integer"
  /** The database refused the statement itself: a bug in the caller. */
  | "statement"
  /** Used after close. */
  | "closed";

export type ConstraintKind = "unique" | "foreign_key" | "not_null" | "check" | "other";

export interface StorageErrorOptions {
  cause?: unknown;
  constraint?: ConstraintKind;
  statement?: string | undefined;
}

export class StorageError extends Error {
  override readonly name = "StorageError";
  readonly kind: StorageErrorKind;
  readonly constraint: ConstraintKind | undefined;
  /** The name of the statement that failed, where it has one. */
  readonly statement: string | undefined;

  constructor(kind: StorageErrorKind, message: string, options: StorageErrorOptions = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.kind = kind;
    this.constraint = options.constraint;
    this.statement = options.statement;
  }

  /** The same failure, known to be that of a statement. */
  from(statement: string): StorageError {
    const { kind, message, cause, constraint } = this;
    return new StorageError(kind, message, { cause, statement, ...(constraint === undefined ? {} : { constraint }) });
  }
}

/** The database refused a row or a statement. Everything else would be the same for the other items. */
export function isRefusal(error: unknown): boolean {
  return error instanceof StorageError && (error.kind === "constraint" || error.kind === "statement");
}
