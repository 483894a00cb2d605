// Reads what the pg driver throws by SQLSTATE, and says what a lost connection means before and during COMMIT.
import pg from "pg";
import { type ConstraintKind, StorageError, type StorageErrorKind } from "../storage-error.ts";

const kindByState: ReadonlyMap<string, StorageErrorKind> = new Map([
  ["25006", "unavailable"], // takes no writes: it is a standby, or is set to read-only
  ["25P03", "unavailable"], // idle in transaction for too long: the server hung up
  ["25P04", "unavailable"], // transaction_timeout: the server hung up
  ["40001", "conflict"],
  ["40P01", "conflict"],
  ["53100", "disk_full"],
  ["55P03", "busy"],
  ["57014", "timeout"],
  ["58030", "io"],
  ["3D000", "unavailable"],
  ["XX001", "corrupt"],
  ["XX002", "corrupt"],
]);

const kindByStateClass: ReadonlyMap<string, StorageErrorKind> = new Map([
  ["08", "unavailable"],
  ["23", "constraint"],
  ["28", "unavailable"],
  ["53", "unavailable"],
  ["57", "unavailable"],
  ["58", "io"],
]);

const constraintByState: ReadonlyMap<string, ConstraintKind> = new Map([
  ["23502", "not_null"],
  ["23503", "foreign_key"],
  ["23505", "unique"],
  ["23514", "check"],
]);

/** The server went away or is going: another connection may do better. */
const connectionEndStates: ReadonlySet<string> = new Set([
  "25P03",
  "25P04",
  "53300",
  "57P01",
  "57P02",
  "57P03",
  "57P05",
]);

/** `lost` is what the connection itself reported; the driver gives its errors about that no code. */
export function toPostgresError(error: unknown, lost: boolean): unknown {
  if (error instanceof StorageError) return error;
  if (error instanceof pg.DatabaseError) return fromServer(error);
  if (!lost || !(error instanceof Error)) return error;
  return new StorageError("unavailable", `the connection to PostgreSQL was lost: ${error.message}`, { cause: error });
}

/** For a failure to get a connection at all, where everything the driver throws means that there is none. */
export function toConnectError(error: unknown): unknown {
  if (error instanceof StorageError || !(error instanceof Error)) return error;
  if (error instanceof pg.DatabaseError) return fromServer(error);
  return new StorageError("unavailable", `PostgreSQL cannot be reached: ${messageOf(error)}`, { cause: error });
}

/** What the server answered, as against what became of the way to it. */
export function isFromServer(error: unknown): boolean {
  return error instanceof StorageError && error.cause instanceof pg.DatabaseError;
}

/** The server says that this connection is over, or that there is none to be had right now. */
export function endsConnection(error: unknown): boolean {
  const cause = error instanceof StorageError ? error.cause : error;
  if (!(cause instanceof pg.DatabaseError) || cause.code === undefined) return false;
  return connectionEndStates.has(cause.code) || cause.code.startsWith("08");
}

/** Nothing was committed, and the same body may well succeed. `lost`: the connection went before COMMIT was sent. */
export function isRetryable(error: unknown, lost: boolean): boolean {
  if (!(error instanceof StorageError)) return false;
  return error.kind === "conflict" || (error.kind === "unavailable" && lost);
}

/** Whether trying to connect again can help; a wrong password or database name stays wrong. */
export function isConnectRetryable(error: unknown): boolean {
  if (!(error instanceof StorageError) || error.kind !== "unavailable") return false;
  return !(error.cause instanceof pg.DatabaseError) || endsConnection(error);
}

function fromServer(error: pg.DatabaseError): StorageError {
  const state = error.code ?? "";
  const kind = kindByState.get(state) ?? kindByStateClass.get(state.slice(0, 2)) ?? "statement";
  if (kind !== "constraint") return new StorageError(kind, error.message, { cause: error });
  return new StorageError(kind, error.message, { cause: error, constraint: constraintByState.get(state) ?? "other" });
}

// Trying several addresses fails with an AggregateError whose own message is empty.
function messageOf(error: Error): string {
  if (error.message !== "" || !(error instanceof AggregateError)) return error.message;
  return error.errors.map((each: unknown) => (each instanceof Error ? each.message : String(each))).join("; ");
}
