// Finding messages: by mention, by text, and one by its id.
import type { DeliveryState, MessageState } from "@claudemesh/messages/ports/reading";
import { readSearchTerms } from "@claudemesh/messages/search-terms";
import { MeshError } from "@claudemesh/protocol/errors";
import type {
  DestinationStateInput,
  MentionsInput,
  MessageStateInput,
  SearchInput,
} from "@claudemesh/protocol/wire/operations";
import { type Handlers, ok, pageLimit } from "./handler.ts";

export const readingHandlers = {
  mentions: async (broker, { member }, input: MentionsInput) => {
    const { items, nextAfter } = await broker.messages.mentions.read({
      meshId: member.meshId,
      reader: member.pubkey,
      of: input.of ?? member.pubkey,
      after: input.after ?? 0,
      limit: pageLimit(input),
    });
    return ok({ items, next_after: nextAfter ?? null });
  },

  search: async (broker, { member }, input: SearchInput) => {
    const { items, nextAfter } = await broker.messages.search.find({
      meshId: member.meshId,
      reader: member.pubkey,
      terms: readSearchTerms(input.q),
      after: input.after ?? 0,
      limit: pageLimit(input),
    });
    return ok({ items, next_after: nextAfter ?? null });
  },

  "destination.state": async (broker, { member }, { kind, ref }: DestinationStateInput) => {
    const query = { meshId: member.meshId, sender: member.pubkey, destination: { kind, ref } };
    const { refusal, hasRecipients } = await broker.messages.destinations.find(query);
    return ok({ kind, ref, refusal: refusal ?? null, has_recipients: hasRecipients });
  },

  "message.state": async (broker, { member }, input: MessageStateInput) => {
    const query = {
      meshId: member.meshId,
      brokerMessageId: input.broker_message_id,
      reader: member.pubkey,
      readerIsOwner: member.role === "owner",
      after: input.after ?? "",
      limit: pageLimit(input),
    };
    const state = await broker.messages.messageState.find(query, broker.nowMs());
    if (state === undefined) throw new MeshError("not_found", "There is no such message, or it is not yours to see.");
    return ok({ broker_message_id: input.broker_message_id, ...stateBody(state) });
  },
} satisfies Handlers;

function stateBody(state: MessageState): Record<string, unknown> {
  const { acceptedAtMs: accepted_at, counts } = state;
  if (state.sight === "counts") return { accepted_at, counts };
  const { queued } = state;
  const outcome =
    queued === undefined
      ? { deliveries: state.deliveries.map(deliveryBody), next_cursor: state.nextCursor ?? null }
      : { queue: { state: queued.state, deliveries: queued.deliveries, settled_at: queued.settledAtMs ?? null } };
  return {
    client_message_id: state.clientMessageId,
    history_id: state.historyId,
    destination: state.destination,
    sender_pubkey: state.senderPubkey,
    accepted_at,
    counts,
    ...outcome,
  };
}

function deliveryBody({ recipientPubkey, state, settledAtMs }: DeliveryState): Record<string, unknown> {
  return { recipient_pubkey: recipientPubkey, state, settled_at: settledAtMs ?? null };
}
