// Puts a limiter in front of a store that has none: it limits between the look-up and the transaction. An id that turns out
// to be committed after all is answered from its row, whatever the limiter says.
import { answerFromStored } from "../core/stored-accept.ts";
import type { Limiter } from "../ports/limiter.ts";
import type { AcceptStore, CommittedAccept, SendToAccept } from "../ports.ts";

export type LimitOptions = {
  /** What becomes of new ids while the limiter is away. */
  readonly whenUnavailable: "refuse" | "pass";
  /** A new id passed without having been counted. */
  readonly onPassedUncounted: () => void;
  /** A unit was spent on a send that the transaction then refused. It is not given back. */
  readonly onSpentThenRefused: () => void;
};

export function limitAccepts(store: AcceptStore, limiter: Limiter, options: LimitOptions): AcceptStore {
  return {
    findAccepted: store.findAccepted,
    accept: async (send) => {
      // A send that can only be refused costs no unit. The store checks again at the last moment, and that answer counts.
      if (send.isOutdated()) return refuse({ type: "outdated" });
      const decision = await limiter.consume(send.meshId, send.clientMessageId, send.acceptedAtMs);
      if (decision.type === "denied") {
        const { retryAfterSeconds } = decision;
        return (await answerCommitted(store, send)) ?? refuse({ type: "rate_limited", retryAfterSeconds });
      }
      if (decision.type === "unavailable") {
        if (options.whenUnavailable === "refuse") {
          return (await answerCommitted(store, send)) ?? refuse({ type: "refused", code: "limiter_unavailable" });
        }
        options.onPassedUncounted();
        return store.accept(send);
      }
      const committed = await store.accept(send);
      if (committed.result.type === "refused" && decision.spent) options.onSpentThenRefused();
      return committed;
    },
  };
}

/** Another try of the same id may have committed since the first look-up, and a retry is never refused by a limit. */
async function answerCommitted(store: AcceptStore, send: SendToAccept): Promise<CommittedAccept | undefined> {
  const result = answerFromStored(await store.findAccepted(send.meshId, send.clientMessageId), send);
  return result && { result, recipients: [] };
}

function refuse(result: CommittedAccept["result"]): CommittedAccept {
  return { result, recipients: [] };
}
