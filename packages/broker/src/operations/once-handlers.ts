// The calls of `once`: claim a key, keep it, say what came of it, look. What each may answer is decided in the
// protocol's once-state.ts; here it gets its status and its words.
import assert from "node:assert/strict";
import { MeshError } from "@claudemesh/protocol/errors";
import { parseOwnJsonText } from "@claudemesh/protocol/json";
import type { Answer } from "@claudemesh/protocol/messages/accept-result";
import { onceLimits } from "@claudemesh/protocol/registrar/once-limits";
import {
  type OnceEpoch,
  type OnceSettlement,
  type OnceState,
  onceStateAt,
} from "@claudemesh/protocol/registrar/once-state";
import { onceResultText } from "@claudemesh/protocol/registrar/once-values";
import type {
  OnceClaimInput,
  OnceGetInput,
  OnceListInput,
  OnceRecordInput,
  OnceRenewInput,
  OnceResolveInput,
} from "@claudemesh/protocol/wire/once-operations";
import type { OnceOutcome } from "@claudemesh/registrar/once-ports";
import type { BrokerContext } from "../context.ts";
import { type Caller, type Handlers, ok, pageLimit } from "./handler.ts";

type OnceCall = "claim" | "renew" | "record" | "resolve";

export const onceHandlers = {
  "once.claim": async (broker, caller, input: OnceClaimInput) => {
    const claim = {
      claimId: input.claim_id,
      holder: caller.member.pubkey,
      inputsFingerprint: input.inputs_fingerprint,
      leaseSeconds: input.lease_s,
    };
    const key = keyOf(caller, input);
    const admit = () => broker.admitNew(key.meshId, `once/${claim.holder}/${claim.claimId}/${key.key}`);
    const outcome = counted(broker, "claim", await broker.once.claim(key, claim, broker.nowMs(), admit));
    if (outcome.type === "held") return { status: 201, body: heldBody(outcome.epoch) };
    if (outcome.type === "done") return ok({ ...resultOf(outcome.epoch.settlement), epoch: outcome.epoch.epoch });
    throw refusalOf(outcome, input.key);
  },

  "once.renew": async (broker, caller, input: OnceRenewInput) => {
    const key = { ...keyOf(caller, input), epoch: input.epoch };
    const outcome = counted(broker, "renew", await broker.once.renew(key, caller.member.pubkey, broker.nowMs()));
    if (outcome.type === "held") return ok(heldBody(outcome.epoch));
    throw refusalOf(outcome, input.key);
  },

  "once.record": async (broker, caller, input: OnceRecordInput) => {
    const key = { ...keyOf(caller, input), epoch: input.epoch };
    const record = { holder: caller.member.pubkey, result: onceResultText(input.result as never) };
    return settledAnswer(counted(broker, "record", await broker.once.record(key, record, broker.nowMs())), input.key);
  },

  "once.resolve": async (broker, caller, input: OnceResolveInput) => {
    const key = { ...keyOf(caller, input), epoch: input.epoch };
    const { outcome, result } = input;
    if (outcome === "not_done" && result !== undefined) {
      throw new MeshError("invalid_request", "What was not done has no result.", { field: "result" });
    }
    const text = result === undefined ? undefined : onceResultText(result as never);
    const said = outcome === "done" ? { outcome, result: text } : { outcome };
    const resolution = { ...said, by: caller.member.pubkey };
    return settledAnswer(
      counted(broker, "resolve", await broker.once.resolve(key, resolution, broker.nowMs())),
      input.key,
    );
  },

  "once.list": async (broker, { member }, input: OnceListInput) => {
    const limit = pageLimit(input);
    const unsettled = input.state === "running" || input.state === "uncertain";
    const query = { meshId: member.meshId, after: input.after ?? "", limit, unsettled };
    const keys = await broker.once.list(query);
    const nowMs = broker.nowMs();
    const items = keys
      .map(({ key, newest }) => ({ key, ...epochItem(newest, nowMs) }))
      .filter(({ state }) => input.state === undefined || state === input.state);
    // A page is so many keys that were looked at, of which those of another state are left out.
    return ok({ items, next_cursor: keys.length === limit ? (keys.at(-1)?.key ?? null) : null });
  },

  "once.get": async (broker, caller, input: OnceGetInput) => {
    const epochs = await broker.once.epochs(keyOf(caller, input), onceLimits.epochsShown);
    const [newest] = epochs;
    const nowMs = broker.nowMs();
    return ok({
      key: input.key,
      state: onceStateAt(newest, nowMs),
      epoch: newest?.epoch ?? null,
      ...(newest?.settlement === undefined ? {} : resultOf(newest.settlement)),
      epochs: epochs.map((epoch) => epochItem(epoch, nowMs)),
    });
  },
} satisfies Handlers;

function keyOf({ member }: Caller, input: { readonly key: string }) {
  return { meshId: member.meshId, key: input.key };
}

function counted(broker: BrokerContext, call: OnceCall, outcome: OnceOutcome): OnceOutcome {
  broker.metrics.onceAnswered(call, outcome.type);
  return outcome;
}

function heldBody(epoch: OnceEpoch): Record<string, unknown> {
  return { epoch: epoch.epoch, lease_until: epoch.leaseUntilMs };
}

function settledAnswer(outcome: OnceOutcome, key: string): Answer {
  if (outcome.type !== "settled") throw refusalOf(outcome, key);
  return ok({ epoch: outcome.epoch.epoch, ...settlementBody(outcome.epoch.settlement) });
}

function outcomeOf(settlement: OnceSettlement): "done" | "not_done" {
  return settlement.how === "resolved_not_done" ? "not_done" : "done";
}

/** How an epoch ended and on whose word: its holder's by a record, or a member's by a resolve. */
function settlementBody(settlement: OnceSettlement): Record<string, unknown> {
  return {
    outcome: outcomeOf(settlement),
    settled_by: settlement.how === "recorded" ? "record" : "resolve",
    settled_by_pubkey: settlement.by,
    settled_at: settlement.atMs,
  };
}

function resultOf(settlement: OnceSettlement): { result?: unknown } {
  return settlement.how === "resolved_not_done" ? {} : { result: parseOwnJsonText(settlement.result) };
}

function epochItem(epoch: OnceEpoch, nowMs: number): { readonly state: OnceState } & Record<string, unknown> {
  return {
    epoch: epoch.epoch,
    state: onceStateAt(epoch, nowMs),
    claim_id: epoch.claimId,
    holder_pubkey: epoch.holder,
    inputs_fingerprint: epoch.inputsFingerprint,
    claimed_at: epoch.claimedAtMs,
    lease_until: epoch.leaseUntilMs,
    ...(epoch.settlement === undefined ? {} : settlementBody(epoch.settlement)),
  };
}

function refusalOf(outcome: OnceOutcome, key: string): MeshError {
  if (outcome.type === "not_a_member") return new MeshError("unauthorized");
  if (outcome.type === "unknown_epoch") {
    return new MeshError("not_found", `The key ${key} has no such epoch; look with \`claudemesh once ${key} --show\`.`);
  }
  const { epoch } = outcome;
  const details = { epoch: epoch.epoch, lease_until: epoch.leaseUntilMs, holder_pubkey: epoch.holder };
  switch (outcome.type) {
    case "running":
      return new MeshError("running", `Epoch ${epoch.epoch} of ${key} runs until its lease ends.`, details);
    case "uncertain":
      return new MeshError("uncertain", uncertainMessage(key, epoch.epoch), { ...details, claim_id: epoch.claimId });
    case "inputs_mismatch":
      return new MeshError("inputs_mismatch", undefined, { epoch: epoch.epoch });
    case "settled_otherwise":
      return new MeshError("epoch_settled", undefined, {
        epoch: epoch.epoch,
        ...(epoch.settlement === undefined ? {} : settlementBody(epoch.settlement)),
      });
    case "not_the_holder":
      return new MeshError("forbidden", `Only the member that claimed epoch ${epoch.epoch} of ${key} may do that.`);
    default:
      return assert.fail(`${outcome.type} is no refusal`);
  }
}

function uncertainMessage(key: string, epoch: number): string {
  return (
    `The lease of epoch ${epoch} of ${key} ended and nothing was recorded, so its effect may have happened. Look ` +
    `whether it did, then say so: \`claudemesh once ${key} --resolve done --epoch ${epoch}\`, or \`--resolve not-done\`.`
  );
}
