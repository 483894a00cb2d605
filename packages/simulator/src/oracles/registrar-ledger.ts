// Everything that the registrar has ever written, held against the naive model in the order in which it was committed,
// and everything that callers were answered, held against that: one registration per key and per effect, one use of a
// nonce, the same record in every answer, and no refusal that is in no audit.
import { type ModelApproval, type ModelState, NaiveModel } from "../../../../tests/support/naive-registrar.ts";
import type { EdgeAnswer } from "./session-watch.ts";
import { Violation } from "./violation.ts";

export type ApprovalRow = {
  readonly approval_id: string;
  readonly run_id: string;
  readonly purpose: "register" | "compensate";
  readonly logical_request_key: string | null;
  readonly not_before: number;
  readonly not_after: number;
  readonly revoked_at: number | null;
};

export type ConsumeRow = {
  readonly logical_request_key: string;
  readonly run_id: string;
  readonly approval_id: string;
  readonly registration_id: string;
  readonly consumed_at: number;
};

export type CompensationRow = {
  readonly logical_request_key: string;
  readonly approval_id: string;
  readonly compensated_at: number;
};

type RegistrarBody = {
  readonly error?: string;
  readonly conflict?: string;
  readonly state?: string;
  readonly registration?: { readonly registration_id: string };
};

/** The one owner that a simulated mesh has. */
const owner = 0;
/** What a key that is taken can not be answered with any more. */
const freeAgain: readonly unknown[] = ["nonce_unbound", "replay_nonce_consumed", "effect_exists"];

export class RegistrarLedger {
  readonly #model = new NaiveModel(0);
  readonly #approvals = new Map<string, ModelApproval>();
  readonly #created = new Set<string>();
  /** Answered refusals: the audit tells of at least so many. */
  refusals = 0;
  readonly tally = { registrations: 0, compensations: 0, duplicates: 0 };

  get consumedKeys(): readonly string[] {
    return [...this.#model.consumed.keys()];
  }

  stateOf(key: string): ModelState | undefined {
    return this.#model.consumed.get(key)?.state;
  }

  noteApproval(row: ApprovalRow): void {
    const known = this.#approvals.get(row.approval_id);
    if (known !== undefined) {
      known.revoked = row.revoked_at !== null;
      return;
    }
    this.#approvals.set(row.approval_id, {
      id: row.approval_id,
      nonce: "",
      owner,
      effect: effectOf(row),
      purpose: row.purpose,
      key: row.logical_request_key ?? undefined,
      notBefore: row.not_before,
      notAfter: row.not_after,
      revoked: row.revoked_at !== null,
      spent: false,
    });
  }

  noteConsumed(row: ConsumeRow): void {
    const key = row.logical_request_key;
    const approval = this.#approvals.get(row.approval_id);
    const request = { key, effect: effectOf(row), approval, rightNonce: true, expiresAt: undefined };
    this.#model.nowMs = row.consumed_at;
    const expected = this.#model.expect(request);
    if (expected !== "registered") refuse(`${key} was registered for ${row.run_id}, which is ${expected}`);
    this.#model.consume(request, "inert", row.registration_id);
    this.tally.registrations += 1;
  }

  noteVerified(key: string, state: "registered_closed" | "verify_failed"): void {
    const consumed = this.#model.consumed.get(key);
    if (consumed?.state !== "inert") refuse(`${key} was ${consumed?.state ?? "free"} and became ${state}`);
    else consumed.state = state;
  }

  noteCompensated({ logical_request_key: key, approval_id, compensated_at }: CompensationRow): void {
    const approval = this.#approvals.get(approval_id);
    const consumed = this.#model.consumed.get(key);
    this.#model.nowMs = compensated_at;
    const expected = approval === undefined ? "NONCE_UNBOUND" : this.#model.expectCompensation(key, approval);
    if (expected !== "compensated" || approval === undefined || consumed === undefined) {
      refuse(`${key} was compensated, which is ${expected}`);
    } else {
      approval.spent = true;
      consumed.state = "compensated";
      this.tally.compensations += 1;
    }
  }

  /** Called when an agent asks; the result takes the answer. */
  asking(call: string, key: string | undefined): (answer: EdgeAnswer) => void {
    const wasConsumed = key !== undefined && this.#model.consumed.has(key);
    return (answer) => {
      const { status } = answer;
      const isChange = call !== "registrar.resolve";
      if (isChange && status > 400 && status < 500) this.refusals += 1;
      if (key === undefined) return;
      if (call === "registrar.register") this.#checkRegister(key, wasConsumed, answer);
      if (call === "registrar.resolve" && status === 200) this.#checkStatus(key, wasConsumed, answer);
    };
  }

  checkAudit(audited: number): void {
    if (audited >= this.refusals) return;
    throw new Violation("refusal_unaudited", `${this.refusals} refusals were answered and ${audited} are in the audit`);
  }

  #checkRegister(key: string, wasConsumed: boolean, { status, body }: EdgeAnswer): void {
    const { error, conflict, registration } = body as RegistrarBody;
    if (status === 201) {
      if (wasConsumed || this.#created.has(key)) refuse(`${key} was taken, and was registered as new`);
      this.#created.add(key);
    }
    if (wasConsumed && freeAgain.includes(conflict ?? error)) refuse(`${key} was taken, and is answered with ${error}`);
    if (status === 200) this.tally.duplicates += 1;
    const isOwn = status === 201 || status === 200 || error === "attempt_collision";
    if (isOwn) this.#checkRecord(key, registration);
  }

  #checkStatus(key: string, wasConsumed: boolean, { body }: EdgeAnswer): void {
    const { state, registration } = body as RegistrarBody;
    if (wasConsumed && state === "unknown") refuse(`${key} was taken, and is unknown`);
    if (registration !== undefined) this.#checkRecord(key, registration);
  }

  #checkRecord(key: string, registration: RegistrarBody["registration"]): void {
    const stored = this.#model.consumed.get(key)?.registrationId;
    if (stored !== undefined && stored === registration?.registration_id) return;
    refuse(`${key} is ${stored ?? "free"}, and was answered with ${registration?.registration_id ?? "nothing"}`);
  }
}

function refuse(message: string): void {
  throw new Violation("registered_wrongly", message);
}

/** Runs are named by the number of their effect. */
function effectOf({ run_id }: { readonly run_id: string }): number {
  return Number(/^run-([0-9]+)/.exec(run_id)?.[1]);
}
