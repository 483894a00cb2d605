// The one way in to an operation: check the input against its schema, run the handler, turn every failure into an
// answer. A transport hands over what it parsed and sends back what it gets.
import { createSchemaCompiler, type Validator } from "@claudemesh/http/validation";
import { errorCatalogue } from "@claudemesh/protocol/error-catalogue";
import type { MeshError } from "@claudemesh/protocol/errors";
import { type Answer, answerError } from "@claudemesh/protocol/messages/accept-result";
import { type OperationName, operations } from "@claudemesh/protocol/wire/operations";
import type { BrokerContext } from "../context.ts";
import { toMeshError } from "../storage-failure.ts";
import type { Caller } from "./handler.ts";
import { handlers } from "./handlers.ts";

export type RunOperation = (name: OperationName, caller: Caller, input: object) => Promise<Answer>;

export function createOperationRunner(broker: BrokerContext): RunOperation {
  const compile = createSchemaCompiler();
  const validators = new Map<OperationName, Validator>();
  for (const name of operationNames) validators.set(name, compile(operations[name].input));
  const answerOne: RunOperation = async (name, caller, input) => {
    try {
      const refusal = validators.get(name)?.(input);
      if (refusal !== undefined) throw refusal;
      return await handlers[name](broker, caller, input as never);
    } catch (error) {
      const refused = toMeshError(error);
      logRefusal(broker, name, refused);
      return answerError(refused);
    }
  };
  return async (name, caller, input) => {
    const answer = await answerOne(name, caller, input);
    broker.metrics.answered(name, answer.status);
    return answer;
  };
}

export const operationNames = Object.keys(operations) as OperationName[];

export function isOperationName(name: string): name is OperationName {
  return Object.hasOwn(operations, name);
}

/** In the catalogue's words: the caller's answer may quote the caller, and whatever callers say stays out of the log. */
function logRefusal(broker: BrokerContext, operation: OperationName, { code, level, status, cause }: MeshError): void {
  const err = status >= 500 ? cause : undefined;
  broker.log[level]({ event: "refused", operation, code, err }, errorCatalogue[code].meaning);
}
