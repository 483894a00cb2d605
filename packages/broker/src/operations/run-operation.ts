// The one way in to an operation: check the input against its schema, run the handler, turn every failure into an
// answer. A transport passes what it has parsed and sends the answer.
import { createSchemaCompiler, type Validator } from "@claudemesh/http/validation";
import { isMentionFailure } from "@claudemesh/messages/mention-failure";
import { errorCatalogue } from "@claudemesh/protocol/error-catalogue";
import { MeshError } from "@claudemesh/protocol/errors";
import { type Answer, answerError } from "@claudemesh/protocol/messages/accept-result";
import { type OperationName, operations } from "@claudemesh/protocol/wire/operations";
import type { BrokerContext } from "../context.ts";
import { toMeshError } from "../storage-failure.ts";
import { asksForMember, type Caller, type RoleCaller, waitsForTurn } from "./handler.ts";
import { handlers } from "./handlers.ts";

export type RunOperation = (name: OperationName, caller: Caller, input: object) => Promise<Answer>;

type Validators = ReadonlyMap<OperationName, Validator>;

/** Knows nothing of any broker, so that several can share it. */
export function compileInputs(): Validators {
  const compile = createSchemaCompiler();
  return new Map(operationNames.map((name) => [name, compile(operations[name].input)]));
}

export function createOperationRunner(broker: BrokerContext, validators: Validators = compileInputs()): RunOperation {
  return async (name, caller, input) => {
    let answer: Answer;
    try {
      const refusal = validators.get(name)?.(input);
      if (refusal !== undefined) throw refusal;
      if (waitsForTurn(name)) await turnOf(broker, caller);
      answer = await dispatch(broker, name, caller, input as never);
    } catch (error) {
      const refused = toMeshError(error);
      logRefusal(broker, name, refused);
      answer = answerError(refused);
    }
    broker.metrics.answered(name, answer.status);
    return answer;
  };
}

function turnOf({ watchers }: BrokerContext, { member: { meshId, pubkey } }: Caller): Promise<void> {
  return new Promise((resolve) => watchers.nextTurn(meshId, pubkey, resolve));
}

/**
 * A connection outlives a role and, where another broker revoked it, a membership. So the caller is looked up again for
 * operations that change something or depend on a role: from its next request on, an owner that stepped down may do no more
 * than a member, and a former member nothing, whichever signals have passed between brokers.
 */
async function dispatch(broker: BrokerContext, name: OperationName, caller: Caller, input: never): Promise<Answer> {
  const handler: AnyHandler = handlers[name];
  // What does not depend on a role has a handler that is shown none, by its type.
  if (!asksForMember(name, caller)) return handler(broker, caller as RoleCaller, input);
  const member = await broker.members.findMember(caller.member.meshId, caller.member.pubkey);
  if (member === undefined || member.revoked) throw new MeshError("unauthorized");
  return handler(broker, { ...caller, member }, input);
}

type AnyHandler = (broker: BrokerContext, caller: RoleCaller, input: never) => Promise<Answer>;

export const operationNames = Object.keys(operations) as OperationName[];

export function isOperationName(name: string): name is OperationName {
  return Object.hasOwn(operations, name);
}

/** In the catalogue's words: the caller's answer may quote the caller, and whatever callers say stays out of the log. */
function logRefusal(broker: BrokerContext, operation: OperationName, { code, level, status, cause }: MeshError): void {
  const err = status >= 500 ? cause : undefined;
  if (isMentionFailure(cause)) {
    const meaning = "the mention index refused a mention, so its message was not accepted; the store itself answers";
    broker.log.error({ event: "mention_insert_failed", operation, code, err }, meaning);
    return;
  }
  broker.log[level]({ event: "refused", operation, code, err }, errorCatalogue[code].meaning);
}
