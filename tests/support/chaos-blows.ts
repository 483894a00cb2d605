// What is done to processes in a chaos run, one blow at a time. The run decides which, to what and when.
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "./seed.ts";

/** A daemon or a broker; after a start it is another process. */
export type Victim = {
  readonly process: { readonly signal: (signal: NodeJS.Signals) => void };
  readonly kill: () => Promise<void>;
  readonly start: () => Promise<unknown>;
};

/** As long as it takes a process to start, more or less: a second kill within it hits anything from exec to recovery. */
const startUpMs = 400;
/** Short enough for the load to go on, long enough for buffers to fill and others to notice. */
const stopMs = 250;

/** One blow: the process dies, or stands still for a while, or both; sometimes it dies again before it has recovered. */
export const blows = {
  kill: async (victim: Victim) => {
    await victim.kill();
    await victim.start();
  },
  kill_in_recovery: async (victim: Victim, random: Random) => {
    await victim.kill();
    const recovering = victim.start().catch(() => undefined);
    await sleep(random.below(startUpMs));
    await victim.kill();
    await recovering;
    await victim.start();
  },
  stop: async (victim: Victim, random: Random) => {
    victim.process.signal("SIGSTOP");
    await sleep(random.below(stopMs));
    victim.process.signal("SIGCONT");
  },
  stop_and_kill: async (victim: Victim, random: Random) => {
    victim.process.signal("SIGSTOP");
    await sleep(random.below(stopMs));
    await victim.kill();
    await victim.start();
  },
} as const;

/** As often as each is struck: a plain death and a pause twice as often as what is made of them. */
export const blowChances = ["kill", "kill", "kill_in_recovery", "stop", "stop", "stop_and_kill"] as const;
