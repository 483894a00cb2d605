// What the sender of a message that went to the broker directly hears of it afterwards: whether any member is to get it, and
// with `--wait delivered`, whether it has arrived. The broker is asked, because there is no outbox that would know.
import { setTimeout as sleep } from "node:timers/promises";
import { type BrokerCall, BrokerRefusal } from "@claudemesh/client/broker";
import type { StageWait } from "@claudemesh/client/daemon";
import { MeshError } from "@claudemesh/protocol/errors";
import type { Waiting } from "./send-wait.ts";

type Counts = { readonly unsettled: number; readonly delivered: number; readonly expired: number };

export type DirectDelivery = {
  readonly outcome: StageWait["outcome"];
  readonly state: "stored" | "delivered";
  /** False where no member was there to get it. */
  readonly hasRecipients: boolean;
};

const firstPauseMs = 25;
const longestPauseMs = 1_000;

/** The message is stored by now, whatever its deliveries come to. */
export async function followDirect(
  call: BrokerCall,
  brokerMessageId: string,
  waiting: Waiting | undefined,
): Promise<DirectDelivery> {
  const isDelivery = waiting?.stage === "delivered";
  const endMs = performance.now() + (isDelivery ? waiting.timeoutMs : 0);
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    const counts = await askCounts(call, brokerMessageId);
    const delivery = judge(counts, isDelivery);
    const leftMs = endMs - performance.now();
    if (delivery.outcome !== "not_yet" || leftMs <= 0) return delivery;
    await sleep(Math.min(pauseMs, leftMs));
  }
}

function judge(counts: Counts | undefined, isDelivery: boolean): DirectDelivery {
  if (counts === undefined)
    return { outcome: isDelivery ? "not_yet" : "reached", state: "stored", hasRecipients: true };
  const { unsettled, delivered, expired } = counts;
  const state = unsettled === 0 && delivered > 0 ? "delivered" : "stored";
  const hasRecipients = unsettled + delivered + expired > 0;
  if (!isDelivery || state === "delivered") return { outcome: "reached", state, hasRecipients };
  return { outcome: unsettled > 0 ? "not_yet" : "ended", state, hasRecipients };
}

/** Undefined where the broker did not say, which is no reason to doubt that it has the message. */
async function askCounts(call: BrokerCall, brokerMessageId: string): Promise<Counts | undefined> {
  try {
    const state = (await call("message.state", { broker_message_id: brokerMessageId, limit: 1 })) as { counts: Counts };
    return state.counts;
  } catch (error) {
    if (error instanceof MeshError || error instanceof BrokerRefusal) return undefined;
    throw error;
  }
}
