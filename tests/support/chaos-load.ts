// Programs that send to each other through their daemons as long as a chaos run lasts, and rest when it asks them to.
import type { Random } from "./seed.ts";
import { type Sent, sendUntilAnswered } from "./senders.ts";
import { type Peer, until } from "./world.ts";

const callersPerPeer = 4;

/** Callers rest at `allowed`: a daemon whose broker is away accepts thousands, and each costs an audit its questions. */
export type Load = { on: boolean; answered: number; allowed: number };

/** Some callers give up after an unanswered try, as real ones do: their message may be there once, or not at all. */
export function startCallers(peer: Peer, to: string, sent: Sent[], load: Load, random: Random): Promise<void>[] {
  return Array.from({ length: callersPerPeer }, async (_, caller) => {
    for (let n = 0; load.on; n++) {
      await until("the load may go on", () => !load.on || load.answered < load.allowed || undefined);
      const id = `${peer.name}-${caller}-${n}`;
      const one: Sent = { id, text: `${id}: ${"x".repeat(random.below(200))}`, answered: false };
      sent.push(one);
      await sendUntilAnswered(
        () => peer.client,
        to,
        one,
        () => random.next() < 0.1,
      );
      if (one.answered) load.answered++;
    }
  });
}

/** More than there are answers while one process is struck and comes back, most of the time. */
const restingAfter = 60;

/** Lets the load run until some more is answered, so that the next blow meets it at work. */
export async function letAnswer(load: Load, answers: number): Promise<void> {
  const goal = load.answered + answers;
  load.allowed = goal + restingAfter;
  await until("the load goes on", () => load.answered >= goal || undefined);
}
