// What the broker's answer to a fence does to a row. Only a clear answer moves anything: everything else leaves the
// fate unknown, which is always safe.
import type { LinkOutcome } from "@claudemesh/client/internal/link-contract";

export type FenceAnswer =
  | {
      readonly fate: "committed";
      readonly brokerMessageId: string;
      readonly historyId: number;
      /** False: retention has removed the message. A broker that does not say so has it. */
      readonly historyAvailable: boolean;
    }
  /** No try of this row can commit any more. */
  | { readonly fate: "fenced" }
  /** The id stands for other content or belongs to another member, so this row never committed and never will. */
  | { readonly fate: "taken" }
  | { readonly fate: "unknown" };

export function readFenceAnswer(outcome: LinkOutcome): FenceAnswer {
  if (outcome.type !== "answered" || outcome.status !== 200) return { fate: "unknown" };
  if (typeof outcome.body !== "object" || outcome.body === null) return { fate: "unknown" };
  const { fate, broker_message_id, history_id, history_available } = outcome.body as Record<string, unknown>;
  if (fate === "fenced" || fate === "taken") return { fate };
  if (fate !== "committed") return { fate: "unknown" };
  if (typeof broker_message_id !== "string" || typeof history_id !== "number") return { fate: "unknown" };
  return {
    fate,
    brokerMessageId: broker_message_id,
    historyId: history_id,
    historyAvailable: history_available !== false,
  };
}
