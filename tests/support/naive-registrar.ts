// What the contract says of requests that come one after the other, with nothing but maps and sets.

export type ModelApproval = {
  readonly id: string;
  readonly nonce: string;
  readonly owner: number;
  readonly effect: number;
  readonly purpose: "register" | "compensate";
  readonly key: string | undefined;
  readonly notBefore: number;
  readonly notAfter: number;
  revoked: boolean;
  spent: boolean;
};

export type ModelRequest = {
  readonly key: string;
  readonly effect: number;
  readonly approval: ModelApproval | undefined;
  /** The approval's own nonce is offered, or another. */
  readonly rightNonce: boolean;
  readonly expiresAt: number | undefined;
};

export type ModelState = "inert" | "registered_closed" | "verify_failed" | "compensated";

export type Consumed = {
  readonly effect: number;
  readonly owner: number;
  state: ModelState;
  /** Known from the first answer that holds it. */
  registrationId: string | undefined;
};

/** `outcome`, as the answer's code or conflict says it. */
export type Expected =
  | "registered"
  | "duplicate"
  | "request_mismatch"
  | "effect_exists"
  | "REQUEST_STALE"
  | "NONCE_UNBOUND"
  | "REPLAY_NONCE_CONSUMED";

export class NaiveModel {
  readonly consumed = new Map<string, Consumed>();
  nowMs: number;

  constructor(nowMs: number) {
    this.nowMs = nowMs;
  }

  expect(request: ModelRequest): Expected {
    const { approval } = request;
    if (request.expiresAt !== undefined && this.nowMs > request.expiresAt) return "REQUEST_STALE";
    const prior = this.consumed.get(request.key);
    if (prior !== undefined) {
      const same = approval !== undefined && prior.owner === approval.owner && prior.effect === request.effect;
      return same ? "duplicate" : "request_mismatch";
    }
    if (approval === undefined || !request.rightNonce) return "NONCE_UNBOUND";
    if (approval.purpose !== "register" || approval.effect !== request.effect) return "NONCE_UNBOUND";
    if (approval.spent) return "REPLAY_NONCE_CONSUMED";
    if (this.nowMs < approval.notBefore || this.nowMs >= approval.notAfter || approval.revoked) return "NONCE_UNBOUND";
    return [...this.consumed.values()].some(({ effect }) => effect === request.effect) ? "effect_exists" : "registered";
  }

  consume(request: ModelRequest, state: ModelState, registrationId: string | undefined): void {
    if (request.approval === undefined) throw new Error("nothing is consumed without an approval");
    request.approval.spent = true;
    this.consumed.set(request.key, {
      effect: request.effect,
      owner: request.approval.owner,
      state,
      registrationId,
    });
  }

  /** How a compensation of `key` ends. */
  expectCompensation(key: string, approval: ModelApproval): string {
    const prior = this.consumed.get(key);
    if (prior === undefined) return "not_found";
    // Which approval it was compensated under is what tells a retry from a second compensation.
    if (prior.state === "compensated")
      return approval.spent && approval.key === key ? "duplicate" : "already_compensated";
    if (prior.state !== "verify_failed") return "NOT_COMPENSABLE";
    const fits = approval.purpose === "compensate" && approval.key === key && approval.effect === prior.effect;
    if (!fits) return "NONCE_UNBOUND";
    if (approval.spent) return "REPLAY_NONCE_CONSUMED";
    const inWindow = this.nowMs >= approval.notBefore && this.nowMs < approval.notAfter;
    return inWindow && !approval.revoked ? "compensated" : "NONCE_UNBOUND";
  }
}
