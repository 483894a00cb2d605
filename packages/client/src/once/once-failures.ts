// The ways in which a run of `once` can end without a result, each with its own class. Other refusals of a broker are
// passed on unchanged: a MeshError or a BrokerRefusal.
import type { ErrorBody } from "@claudemesh/protocol/errors";
import type { JsonValue } from "@claudemesh/protocol/json";

/** Has the status and body of an answer, so that code which shows errors can show this one in the same way. */
abstract class OnceFailure extends Error {
  readonly key: string;
  readonly epoch: number;
  readonly status: 409 | 500;
  readonly #code: string;

  constructor(
    kind: { readonly code: string; readonly status: 409 | 500 },
    message: string,
    at: { readonly key: string; readonly epoch: number },
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.status = kind.status;
    this.#code = kind.code;
    this.key = at.key;
    this.epoch = at.epoch;
  }

  get body(): ErrorBody {
    return { error: this.#code, message: this.message, retryable: false, key: this.key, epoch: this.epoch };
  }
}

/** Another caller runs the effect, and this caller did not want to wait. */
export class OnceRunning extends OnceFailure {
  override readonly name = "OnceRunning";
  readonly leaseUntil: number;

  constructor(at: { readonly key: string; readonly epoch: number; readonly leaseUntil: number }) {
    super(
      { code: "running", status: 409 },
      `Epoch ${at.epoch} of ${at.key} is running elsewhere; ask again when its lease has ended.`,
      at,
    );
    this.leaseUntil = at.leaseUntil;
  }

  override get body(): ErrorBody {
    return { ...super.body, lease_until: this.leaseUntil };
  }
}

/** The effect may have happened, and its result was not recorded. Nothing runs it again until a member resolves it. */
export class OnceUncertain extends OnceFailure {
  override readonly name = "OnceUncertain";

  constructor(at: { readonly key: string; readonly epoch: number }) {
    super(
      { code: "uncertain", status: 409 },
      `Epoch ${at.epoch} of ${at.key} ended without a record. ${howToResolve(at)}`,
      at,
    );
  }
}

/** The effect failed while this process held the key: it may have happened in part. */
export class OnceEffectFailed extends OnceFailure {
  override readonly name = "OnceEffectFailed";

  constructor(at: { readonly key: string; readonly epoch: number }, cause: unknown) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const message = `The effect of ${at.key} failed (${why}) and may have happened in part; the key is uncertain when its lease ends.`;
    super({ code: "effect_failed", status: 500 }, `${message} ${howToResolve(at)}`, at, cause);
  }
}

/** The effect happened and its result is here, but could not be recorded. */
export class OnceNotRecorded extends OnceFailure {
  override readonly name = "OnceNotRecorded";
  readonly result: JsonValue;

  constructor(at: { readonly key: string; readonly epoch: number }, result: JsonValue, cause: unknown) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const message = `The effect of ${at.key} happened and could not be recorded (${why}).`;
    super({ code: "not_recorded", status: 500 }, `${message} ${howToResolve(at)}`, at, cause);
    this.result = result;
  }
}

/**
 * Why an effect's signal was aborted. `settled`: a member has resolved the epoch, so that another caller may run it
 * now.
 */
export class OnceLeaseLost extends OnceFailure {
  override readonly name = "OnceLeaseLost";
  readonly why: "expired" | "settled";

  constructor(why: "expired" | "settled", at: { readonly key: string; readonly epoch: number }, cause?: unknown) {
    const what =
      why === "expired" ? "could not be renewed in time" : "is no longer this process's to renew: it was settled";
    super({ code: "lease_lost", status: 409 }, `The lease of epoch ${at.epoch} of ${at.key} ${what}.`, at, cause);
    this.why = why;
  }
}

/** Thrown by an effect that knows that nothing of it has happened: the key is released for other callers. */
export class OnceNotDone extends Error {
  override readonly name = "OnceNotDone";
}

function howToResolve({ key, epoch }: { readonly key: string; readonly epoch: number }): string {
  return (
    `Look whether the effect happened, then say so: \`claudemesh once ${key} --resolve done --epoch ${epoch}\` or ` +
    `\`claudemesh once ${key} --resolve not-done --epoch ${epoch}\`.`
  );
}
