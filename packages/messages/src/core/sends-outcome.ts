// How the sends of a commit end, from how each of them ended. Pure.
import type { AcceptResult } from "@claudemesh/protocol/messages/accept-result";
import type { SendsOutcome } from "@claudemesh/protocol/messages/commit-sends";
import type { CommittedAccept } from "../ports.ts";

/** A consumed id is refused whatever it stands for: the commit is new, so that its send was not meant by that id. */
export function refusalOfSend(result: AcceptResult): string | undefined {
  switch (result.type) {
    case "accepted":
      return undefined;
    case "duplicate":
    case "reused":
    case "owned_by_another":
      return "idempotency_key_reused";
    case "refused":
      return result.code;
    default:
      return result.type;
  }
}

export function outcomeOfSends(accepts: readonly CommittedAccept[]): SendsOutcome {
  const recipients = new Set<string>();
  for (const [index, accept] of accepts.entries()) {
    const code = refusalOfSend(accept.result);
    if (code !== undefined) return { type: "refused", index, code };
    for (const recipient of accept.recipients) recipients.add(recipient);
  }
  return { type: "accepted", recipients: [...recipients] };
}
