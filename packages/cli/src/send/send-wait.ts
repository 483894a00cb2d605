// `claudemesh send --wait`: what a command says and ends with once a message has come as far as it was to come, or has not.
import type { DaemonClient, StageWait, WaitStage } from "@claudemesh/client/daemon";
import { InvalidArgumentError } from "commander";
import { exitCodes } from "../exit-codes.ts";

export type Waiting = { readonly stage: WaitStage; readonly timeoutMs: number };

/** What `--json` shows beside the send's own answer. */
export type WaitBody = {
  readonly stage: WaitStage;
  readonly outcome: StageWait["outcome"];
  readonly state: string;
  readonly last_error: string | null;
};

export const waitTimeoutMs = 60_000;

export function parseStage(text: string): WaitStage {
  if (text === "stored" || text === "delivered") return text;
  if (text === "in_turn" || text === "handled") {
    throw new InvalidArgumentError(`Nothing reports ${text} yet; wait for stored or delivered.`);
  }
  throw new InvalidArgumentError("It takes stored or delivered.");
}

export async function waitFor(daemon: DaemonClient, outboxId: string, waiting: Waiting): Promise<WaitBody> {
  const { stage, timeoutMs } = waiting;
  const { outcome, message } = await daemon.waitForStage(outboxId, stage, { timeoutMs });
  return { stage, outcome, state: message.state, last_error: message.last_error };
}

export const waitExitCodes: Readonly<Record<StageWait["outcome"], number>> = {
  reached: exitCodes.done,
  not_yet: exitCodes.notYet,
  ended: exitCodes.failed,
};

/** For people, on stderr; undefined where it came as far as it should. */
export function waitComplaint(id: string, wait: WaitBody, timeoutMs: number): string | undefined {
  const look = `look with \`claudemesh status ${id}\``;
  switch (wait.outcome) {
    case "reached":
      return undefined;
    case "not_yet":
      return `${id} is ${wait.state}, and not ${wait.stage} within ${timeoutMs / 1_000} s; it goes on by itself: ${look}.`;
    case "ended":
      return `${id} is ${wait.state} and will not be ${wait.stage}${wait.last_error === null ? "" : ` (${wait.last_error})`}; ${look}.`;
  }
}
