// The one error class that crosses boundaries, and the one JSON shape that it has there. The meaning of each code is in
// catalogue.ts. Outcomes on which a caller must choose are closed unions, not errors.
import { type ErrorCode, errorCatalogue, type LogLevel } from "./catalogue.ts";

export type { ErrorCode, LogLevel } from "./catalogue.ts";

/** The shape of every refusal on HTTP, in WebSocket replies and on the command line with --json. */
export type ErrorBody = {
  readonly error: string;
  readonly message: string;
  readonly retryable: boolean;
  readonly [detail: string]: unknown;
};

export class MeshError extends Error {
  override readonly name: string;
  readonly code: ErrorCode;
  /** Further fields of the body. A program needs only these and the code, never the message. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message?: string, details: Record<string, unknown> = {}, cause?: unknown) {
    super(message ?? errorCatalogue[code].meaning, cause === undefined ? undefined : { cause });
    this.name = errorCatalogue[code].name ?? "MeshError";
    this.code = code;
    this.details = details;
  }

  get status(): number {
    return errorCatalogue[this.code].status;
  }

  get retryable(): boolean {
    return errorCatalogue[this.code].retryable;
  }

  get level(): LogLevel {
    return errorCatalogue[this.code].level;
  }

  /** A detail never replaces a field that the catalogue fixes. */
  toBody(): ErrorBody {
    const { name } = errorCatalogue[this.code];
    const named = name === undefined ? { error: this.code } : { error: this.code, name };
    const fixed = { ...named, message: this.message, retryable: this.retryable };
    return { ...fixed, ...this.details, ...fixed };
  }
}

/** True for any value that has the shape of an error body, from this version of claudemesh or another. */
export function isErrorBody(value: unknown): value is ErrorBody {
  if (typeof value !== "object" || value === null) return false;
  const body = value as Record<string, unknown>;
  return typeof body.error === "string" && typeof body.message === "string";
}
