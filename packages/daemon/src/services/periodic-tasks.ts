// What a daemon does once a minute for as long as it runs: it takes the machine's sleep into account, ends rows that are
// too old, resumes a rebuild of the inbox that stopped, and once an hour applies retention. One round follows the other
// and two never overlap, however long one takes.
import type { LinkStatus } from "@claudemesh/client/internal/link-contract";
import type { Clock, Log, Timer } from "../ports.ts";
import type { Expiry } from "./expire.ts";
import type { InboxRebuild } from "./rebuild-inbox.ts";

export type PeriodicTasksPorts = {
  readonly noticeSleep: () => void;
  readonly expiry: Pick<Expiry, "sweep">;
  readonly rebuild: Pick<InboxRebuild, "run">;
  readonly linkStatus: () => LinkStatus;
  readonly applyRetention: (isStopping: () => boolean) => Promise<void>;
  readonly clock: Pick<Clock, "setTimer">;
  readonly log: Log;
};

export type PeriodicTasks = { readonly stop: () => void };

const roundMs = 60_000;
const roundsPerRetention = 60;

/** The first round begins at once. */
export function startPeriodicTasks(ports: PeriodicTasksPorts): PeriodicTasks {
  const { clock, log } = ports;
  let timer: Timer | undefined;
  let stopping = false;
  let round = 0;
  const startRoundIn = (delayMs: number) => {
    timer = clock.setTimer(delayMs, () => {
      void runRound(ports, round++, () => stopping)
        .catch((error: unknown) => log.error({ event: "heartbeat_failed", err: error }, "regular work failed"))
        .finally(() => {
          if (!stopping) startRoundIn(roundMs);
        });
    });
  };
  startRoundIn(0);
  return {
    stop: () => {
      stopping = true;
      timer?.cancel();
    },
  };
}

/** Rounds are numbered from 0. Tasks that take long ask `isStopping` between their steps. */
export async function runRound(
  { noticeSleep, expiry, rebuild, linkStatus, applyRetention, log }: Omit<PeriodicTasksPorts, "clock">,
  round: number,
  isStopping: () => boolean,
): Promise<void> {
  noticeSleep();
  // A page that the broker did not answer, or that the disk refused, must not wait for the next hello, which may be long
  // in coming.
  if (linkStatus().state === "online") {
    rebuild.run().catch((error: unknown) => {
      log.error({ event: "background_failed", what: "rebuilding the inbox", err: error }, "the rebuild failed");
    });
  }
  await expiry.sweep();
  if (round % roundsPerRetention === 0) await applyRetention(isStopping);
}
