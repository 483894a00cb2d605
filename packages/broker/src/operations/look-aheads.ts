// What an operation will look up first, begun by a transport while it still asks who calls: where the store is across a
// network, a retry then takes one round trip instead of two. Decides nothing: the handler looks up for itself what was
// not begun here, and refuses what is wrong in its own words.
// Why: docs/tuning-log.md#an-id-is-looked-up-beside-its-token.
import { beginLookUp } from "@claudemesh/messages/services/accept";
import { isClientMessageId } from "@claudemesh/protocol/messages/client-message-id";
import { checkRegistrarText } from "@claudemesh/protocol/registrar/registrar-text";
import type { OperationName } from "@claudemesh/protocol/wire/operations";
import { registrarLimits } from "@claudemesh/protocol/wire/registrar-operations";
import { beginPriorLookUp } from "@claudemesh/registrar/services/register";
import type { BrokerContext } from "../context.ts";
import type { Caller } from "./handler.ts";

type Looking = Pick<BrokerContext, "messages" | "registrar" | "nowMs">;
type LookedAhead = Pick<Caller, "lookUp" | "priorLookUp">;
type Fields = Readonly<Record<string, unknown>>;

/** Undefined: there is nothing that a store could be asked for. The input is not validated yet. Never throws. */
export type LookAhead = (meshId: string, input: Fields) => LookedAhead | undefined;

/** Undefined: the operation begins nothing early. */
export function lookAheadOf(broker: Looking, name: OperationName): LookAhead | undefined {
  const begin = lookAheads[name];
  return begin && ((meshId, input) => begin(broker, meshId, input));
}

type Begin = (broker: Looking, ...asked: Parameters<LookAhead>) => ReturnType<LookAhead>;

const lookAheads: { readonly [Name in OperationName]?: Begin } = {
  send: ({ messages, nowMs }, meshId, { client_message_id: id }) => {
    if (typeof id !== "string" || !isClientMessageId(id)) return undefined;
    return { lookUp: beginLookUp({ store: messages.accepts, nowMs }, meshId, id) };
  },

  "registrar.register": ({ registrar }, meshId, { logical_request_key: key }) => {
    if (typeof key !== "string" || key.length > registrarLimits.keyCharacters) return undefined;
    try {
      checkRegistrarText({ key });
      return { priorLookUp: beginPriorLookUp(registrar.use().store, meshId, key) };
    } catch {
      return undefined;
    }
  },
};
