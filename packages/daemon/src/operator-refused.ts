// Why a command that works on a daemon's folder changes nothing: a closed set that a program can choose on, and one
// sentence that says what to do.
import type { MeshPaths } from "@claudemesh/client/home";
import type { ErrorBody } from "@claudemesh/protocol/errors";
import { StorageError } from "@claudemesh/storage/errors";
import { acquireInstanceLock } from "@claudemesh/storage/instance-lock";

export type OperatorRefusalReason =
  | "daemon_running"
  /** Rows would be left behind that only the old keys can send, or whose fate only they can ask for. */
  | "outbox_unsettled"
  | "other_mesh"
  | "nothing_to_recover"
  | "nothing_to_back_up"
  | "target_in_the_way"
  | "no_room"
  | "outbox_corrupt"
  | "schema_newer";

export class OperatorRefused extends Error {
  override readonly name = "OperatorRefused";
  readonly reason: OperatorRefusalReason;
  /** Work on files has no HTTP status; this is the one of something that does not serve just now. */
  readonly status = 503;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(reason: OperatorRefusalReason, message: string, details: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.reason = reason;
    this.details = details;
  }

  get body(): ErrorBody {
    return { error: this.reason, message: this.message, retryable: false, ...this.details };
  }
}

/** Keeps every daemon out of the folder while the work lasts. */
export async function withStoppedDaemon<T>(
  paths: Pick<MeshPaths, "mesh" | "lock">,
  work: () => T | Promise<T>,
): Promise<T> {
  const lock = await acquireInstanceLock(paths.lock, { waitMs: 0 }).catch((error: unknown) => {
    throw error instanceof StorageError && error.kind === "locked" ? runningDaemon(paths.mesh) : error;
  });
  try {
    return await work();
  } finally {
    lock.release();
  }
}

function runningDaemon(mesh: string): OperatorRefused {
  const message = `The daemon of ${mesh} is running; stop it first: claudemesh daemon down --mesh ${mesh}`;
  return new OperatorRefused("daemon_running", message, { mesh });
}
