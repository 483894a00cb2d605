// What is stored of a destination, as the answer to its sender: the same verdicts that an accept gives.
import type { DestinationState } from "../ports/reading.ts";

const noDestination: DestinationState = { refusal: "destination_not_found", hasRecipients: false };

/** Of a member or a queue, whose only question is whether it is there. */
export function stateOfPresence(isThere: boolean): DestinationState {
  return isThere ? { refusal: undefined, hasRecipients: true } : noDestination;
}

export type StoredTopicState = {
  readonly onlySubscribers: boolean;
  readonly isSubscribed: boolean;
  readonly hasOthers: boolean;
};

export function stateOfTopic(topic: StoredTopicState | undefined): DestinationState {
  if (topic === undefined) return noDestination;
  const mayPost = !topic.onlySubscribers || topic.isSubscribed;
  return { refusal: mayPost ? undefined : "not_subscribed", hasRecipients: topic.hasOthers };
}
