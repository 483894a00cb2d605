// How the work of a space ends when it fails: one class with the contract's name and a code, made from a broker's
// refusal or on this side. docs/spaces-client.md says what the caller should do about each.
import { type ErrorBody, isErrorBody } from "@claudemesh/protocol/errors";
import type { JsonValue } from "@claudemesh/protocol/json";
import type { EncodedCommit } from "@claudemesh/protocol/spaces/commit";
import type { BranchId, EntityId, ReadPath } from "@claudemesh/protocol/spaces/entity";
import type { FabricValue } from "@claudemesh/protocol/spaces/fabric-value";
import { decodeOrNothing } from "./decoded.ts";
import type { WireOutcome } from "./space-wire.ts";

export class SpaceError extends Error {
  override readonly name: string;
  /** The same as `error` in a body. */
  readonly code: string;
  /** The same call may succeed later unchanged. */
  readonly retryable: boolean;
  readonly details: Readonly<Record<string, unknown>>;
  /** How often the work had been submitted when it ended with this error. */
  attempts = 1;

  constructor(body: ErrorBody) {
    super(body.message);
    const { error, message: _, retryable, name, ...details } = body;
    this.code = error;
    this.name = typeof name === "string" ? name : "SpaceError";
    this.retryable = retryable === true;
    this.details = details;
  }
}

export type ConflictDetail = {
  readonly id: EntityId;
  readonly branch: BranchId;
  readonly path: ReadPath;
  readonly expected: { readonly seq: number };
  /** `value` is absent where nothing is at the path, or where it is too large to show. */
  readonly actual: { readonly seq: number; readonly value?: FabricValue };
};

export class ConflictError extends SpaceError {
  /** The refused commit, as it was sent. */
  readonly commit: EncodedCommit;
  readonly conflicts: readonly ConflictDetail[];

  constructor(body: ErrorBody, commit: EncodedCommit) {
    super(body);
    this.commit = commit;
    this.conflicts = Array.isArray(body.conflicts) ? body.conflicts.map(readConflict) : [];
  }
}

function readConflict(detail: ConflictDetail): ConflictDetail {
  const { actual } = detail;
  if (!Object.hasOwn(actual, "value")) return detail;
  const decoded = decodeOrNothing(actual.value as JsonValue);
  return { ...detail, actual: decoded === undefined ? { seq: actual.seq } : { seq: actual.seq, value: decoded.value } };
}

/** Errors that this side raises without a refusal of the broker. */
const ownErrors = {
  QueueFullError: {
    error: "queue_full",
    retryable: true,
    message: "Too many commits wait for their verdict; wait for some of them, or for the connection, and try again.",
  },
  SpaceClosedError: { error: "space_closed", retryable: false, message: "The space was closed; open it again." },
  ConnectionStoppedError: {
    error: "connection_stopped",
    retryable: false,
    message: "The connection has ended for good; connect again.",
  },
  SessionRevokedError: {
    error: "session_revoked_error",
    retryable: false,
    message: "Another holder took this session. Call reopen() for a new one; what was pending is lost.",
  },
  DependencyRejectedError: {
    error: "dependency_rejected_error",
    retryable: false,
    message: "The commit builds on one of this session that was rejected.",
  },
  InvalidTransactionError: {
    error: "invalid_transaction",
    retryable: false,
    message: "A transaction is built by a synchronous function, and its tx ends with it.",
  },
  LoadLimitError: {
    error: "load_limit",
    retryable: false,
    message:
      "The transaction asks for other entities each time it runs; name them from what it reads, or load them first.",
  },
  WatchLimitError: {
    error: "watch_limit",
    retryable: false,
    message: "The session watches as many entities as it may; subscribe to a prefix, or end some subscriptions.",
  },
  MalformedAnswerError: {
    error: "malformed_answer",
    retryable: false,
    message: "The broker answered with something that this client does not understand.",
  },
  HistoryLostError: {
    error: "history_lost",
    retryable: false,
    message: "The broker's history ends before what this replica has seen; open the space anew.",
  },
} as const;

export type OwnErrorName = keyof typeof ownErrors;

export function ownError(name: OwnErrorName, message?: string, details: Record<string, unknown> = {}): SpaceError {
  const { message: usual, ...rest } = ownErrors[name];
  return new SpaceError({ ...details, ...rest, name, message: message ?? usual });
}

/** A refusal in the broker's own words, so that an old client can show a newer broker's. */
export function refusalFrom(status: number, body: unknown, commit?: EncodedCommit): SpaceError {
  if (!isErrorBody(body)) {
    const retryable = status >= 500 || status === 429 || status === 408;
    const message = `The broker answered with status ${status} and nothing that this client understands.`;
    return new SpaceError({ error: "malformed_answer", name: "MalformedAnswerError", message, retryable });
  }
  return body.error === "conflict_error" && commit !== undefined
    ? new ConflictError(body, commit)
    : new SpaceError(body);
}

/** The body of a success; every other outcome is thrown. */
export function bodyOf(outcome: WireOutcome, what: string): Readonly<Record<string, unknown>> {
  if (outcome.type !== "answered") {
    const message = `The broker did not answer "${what}" (${outcome.type}); ask again once the connection is back.`;
    throw new SpaceError({ error: "broker_unreachable", name: "SpaceError", message, retryable: true });
  }
  if (outcome.status < 200 || outcome.status > 299) throw refusalFrom(outcome.status, outcome.body);
  const { body } = outcome;
  if (typeof body !== "object" || body === null) throw ownError("MalformedAnswerError");
  return body as Record<string, unknown>;
}
