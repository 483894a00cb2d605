// Waits until a message has reached a stage: stored at the broker, or delivered to all its recipients. The daemon
// pushes no word of deliveries to a sender, so this asks at growing intervals; a daemon that cannot be reached for a
// moment is asked again.
import { setTimeout as sleep } from "node:timers/promises";
import { type ErrorBody, isErrorBody } from "@claudemesh/protocol/errors";
import { DaemonRefused, DaemonUnreachable } from "./daemon-failures.ts";
import type { MessageFacts } from "./report-bodies.ts";

export type WaitStage = "stored" | "delivered";

/** `ended`: the message will never reach the stage by itself. `message` is what was known last. */
export type StageWait = { readonly outcome: "reached" | "not_yet" | "ended"; readonly message: MessageFacts };

export type StageWaitOptions = { readonly timeoutMs: number; readonly signal?: AbortSignal };

type Ask = () => Promise<{ readonly status: number; readonly body: MessageFacts | ErrorBody }>;

const firstPauseMs = 25;
const longestPauseMs = 1_000;

export async function waitForStage(ask: Ask, stage: WaitStage, options: StageWaitOptions): Promise<StageWait> {
  const endMs = performance.now() + options.timeoutMs;
  let last: MessageFacts | undefined;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    const leftMs = () => endMs - performance.now();
    try {
      last = await askOnce(ask);
      const outcome = judgeStage(last, stage);
      if (outcome !== "not_yet" || leftMs() <= 0 || options.signal?.aborted === true) return { outcome, message: last };
    } catch (error) {
      if (!(error instanceof DaemonUnreachable)) throw error;
      if (leftMs() <= 0) {
        if (last === undefined) throw error;
        return { outcome: "not_yet", message: last };
      }
    }
    await pause(Math.min(pauseMs, Math.max(leftMs(), 0)), options.signal);
  }
}

/** Compares how far a message has come with the wanted stage. */
export function judgeStage({ state, notes }: MessageFacts, stage: WaitStage): StageWait["outcome"] {
  if (state === "dead" || state === "aborted") return "ended";
  if (state === "queued" || state === "inflight") return "not_yet";
  if (stage === "stored" || state === "delivered" || state === "read") return "reached";
  // A later subscriber does not get the message, and a delivery that expired before it was fetched never arrives.
  const hasNoRecipient = notes?.some(({ code }) => code === "no_recipients") === true;
  return state === "expired" || hasNoRecipient ? "ended" : "not_yet";
}

async function askOnce(ask: Ask): Promise<MessageFacts> {
  const { status, body } = await ask();
  if (isErrorBody(body)) throw new DaemonRefused(status, body);
  return body;
}

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(ms, undefined, signal === undefined ? {} : { signal });
  } catch (error) {
    if (signal?.aborted !== true) throw error;
  }
}
