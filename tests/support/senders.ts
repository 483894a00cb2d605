// Programs that send as real ones do: they keep asking with the same id until they are answered, or give up. What was
// answered and what was only tried is written down, for the oracle.

import { setTimeout as sleep } from "node:timers/promises";
import { type DaemonClient, DaemonUnreachable } from "@claudemesh/client/daemon";

export type Sent = { readonly id: string; readonly text: string; answered: boolean };

const retryMs = 25;

/** True once the daemon answered 2xx; false if the caller gave up after an unanswered try. */
export async function sendUntilAnswered(
  client: () => DaemonClient,
  to: string,
  sent: Sent,
  giveUp: () => boolean = () => false,
): Promise<boolean> {
  for (;;) {
    try {
      const { status, body } = await client().send({ to, message: sent.text, client_message_id: sent.id });
      if (status === 200 || status === 202) {
        sent.answered = true;
        return true;
      }
      const retryable = (body as { retryable?: boolean }).retryable === true;
      if (!retryable) throw new Error(`${sent.id} was refused with ${status}: ${JSON.stringify(body)}`);
    } catch (error) {
      if (!(error instanceof DaemonUnreachable)) throw error;
      if (giveUp()) return false;
    }
    await sleep(retryMs);
  }
}
