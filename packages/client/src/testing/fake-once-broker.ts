// A broker of `once` in memory for tests: the protocol's own decisions on a list of epochs, and answers that are lost
// on demand. It has no transport and throws refusals as a client would.
import { MeshError } from "@claudemesh/protocol/errors";
import {
  decideOnceClaim,
  decideOnceRecord,
  decideOnceRenewal,
  decideOnceResolve,
  type OnceAnswer,
  type OnceDecision,
  type OnceEpoch,
} from "@claudemesh/protocol/registrar/once-state";
import { onceResultText } from "@claudemesh/protocol/registrar/once-values";
import type { OnceClaimInput, OnceRecordInput, OnceResolveInput } from "@claudemesh/protocol/wire/once-operations";
import type { BrokerCall } from "../broker/broker-client.ts";

/** Before: the request never arrived. After: it was carried out, and the answer was lost. */
export type Loss = "before" | "after";

export class FakeOnceBroker {
  readonly epochs: OnceEpoch[] = [];
  readonly asked: string[] = [];
  /** Decides for each request whether it is lost. */
  lose: (operation: string, count: number) => Loss | undefined = () => undefined;
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  callAs(member: string): BrokerCall {
    return async (operation, input) => {
      const count = this.asked.push(operation);
      const loss = this.lose(operation, count);
      const unreachable = (sent: boolean) =>
        new MeshError("broker_unreachable", "The fake broker was told to be away.", { sent });
      if (loss === "before") throw unreachable(false);
      const answer = this.#carryOut(operation, input, member);
      if (loss === "after") throw unreachable(true);
      return bodyOf(answer);
    };
  }

  #carryOut(operation: string, input: object, member: string): OnceAnswer {
    const decision = this.#decide(operation, input, member);
    if (decision.next !== undefined) this.epochs[decision.next.epoch - 1] = decision.next;
    return decision.answer;
  }

  #decide(operation: string, input: object, member: string): OnceDecision {
    const nowMs = this.#nowMs();
    if (operation === "once.claim") {
      const { claim_id: claimId, inputs_fingerprint: inputsFingerprint, lease_s } = input as OnceClaimInput;
      const claim = { claimId, holder: member, inputsFingerprint, leaseSeconds: lease_s };
      const own = this.epochs.find((one) => one.claimId === claimId && one.holder === member);
      return decideOnceClaim({ newest: this.epochs.at(-1), own }, claim, nowMs);
    }
    const { epoch, result } = input as OnceRecordInput;
    const stored = this.epochs[epoch - 1];
    if (operation === "once.renew") return decideOnceRenewal(stored, member, nowMs);
    if (operation === "once.record") {
      return decideOnceRecord(stored, { holder: member, result: onceResultText(result as never) }, nowMs);
    }
    const { outcome } = input as OnceResolveInput;
    if (outcome === "not_done") return decideOnceResolve(stored, { outcome, by: member }, nowMs);
    const text = result === undefined ? undefined : onceResultText(result as never);
    return decideOnceResolve(stored, { outcome: "done", result: text, by: member }, nowMs);
  }
}

function bodyOf(answer: OnceAnswer): Record<string, unknown> {
  if (answer.type === "unknown_epoch") throw new MeshError("not_found");
  const { epoch, leaseUntilMs, claimId, settlement } = answer.epoch;
  const details = { epoch, lease_until: leaseUntilMs };
  switch (answer.type) {
    case "held":
      return details;
    case "done":
      return {
        epoch,
        result: settlement && settlement.how !== "resolved_not_done" ? JSON.parse(settlement.result) : null,
      };
    case "settled":
      return { epoch };
    case "uncertain":
      throw new MeshError("uncertain", undefined, { ...details, claim_id: claimId });
    case "settled_otherwise":
      throw new MeshError("epoch_settled", undefined, { epoch });
    case "not_the_holder":
      throw new MeshError("forbidden");
    default:
      throw new MeshError(answer.type, undefined, details);
  }
}
