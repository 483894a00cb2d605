// What an operation will look up first, begun by a transport while it still asks who calls: where the store is across a
// network, a retry then takes one round trip instead of two. Decides nothing: the handler looks up for itself what was
// not begun here, and refuses what is wrong in its own words.
// Why: docs/tuning-log.md#an-id-is-looked-up-beside-its-token.
import { beginLookUp } from "@claudemesh/messages/services/accept";
import { isClientMessageId } from "@claudemesh/protocol/messages/client-message-id";
import type { OperationName } from "@claudemesh/protocol/wire/operations";
import type { BrokerContext } from "../context.ts";
import type { Caller } from "./handler.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Undefined where there is nothing to read ahead. The input is not validated yet. Never throws. */
export type LookAhead = (meshId: string, input: Fields) => Pick<Caller, "lookUp"> | undefined;

/** Undefined where the operation reads nothing ahead. */
export function lookAheadOf(
  { messages, nowMs }: Pick<BrokerContext, "messages" | "nowMs">,
  name: OperationName,
): LookAhead | undefined {
  if (name !== "send") return undefined;
  return (meshId, { client_message_id: id }) => {
    if (typeof id !== "string" || !isClientMessageId(id)) return undefined;
    return { lookUp: beginLookUp({ store: messages.accepts, nowMs }, meshId, id) };
  };
}
