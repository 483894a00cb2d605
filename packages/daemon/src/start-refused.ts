// Why a daemon does not start: a closed set that a command can choose on, and one sentence that says what to do.
import type { ErrorBody } from "@claudemesh/protocol/errors";

export type StartRefusalReason =
  /** Another daemon runs on this folder. */
  | "already_running"
  | "config_invalid"
  /** The folder lacks a key, or a file in it is not ours alone. */
  | "files_unusable"
  /** An ephemeral daemon was asked for where the folder has keys of its own. */
  | "keys_in_the_way"
  | "outbox_corrupt"
  /** The keys belong to another host, and `[clone] policy` says to refuse. */
  | "host_changed"
  | "schema_newer"
  | "outbox_max_age_above_dedupe_window"
  /** Something that is not a socket stands where the socket goes, or the address is taken. */
  | "cannot_listen"
  /** The disk has no room for what a start writes. */
  | "disk_full"
  | "storage_unavailable";

export class StartRefused extends Error {
  override readonly name = "StartRefused";
  readonly reason: StartRefusalReason;
  /** A start has no HTTP status; this is the one of a server that cannot serve. */
  readonly status = 503;

  constructor(reason: StartRefusalReason, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.reason = reason;
  }

  /** As a program reads it: the shape of every other refusal. */
  get body(): ErrorBody {
    return { error: this.reason, message: this.message, retryable: false };
  }
}
