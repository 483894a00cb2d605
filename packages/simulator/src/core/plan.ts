// What a run will do, all of it written down before it begins: how the mesh is set up, which operations are asked for
// and which faults happen, each at its moment. A run adds nothing to its plan but the order of what races; so a plan
// with fewer operations or faults is a run as well, and a failure can be made small.
// Why: docs/decisions/0045.
import type { AgentOperation } from "./agent-operations.ts";

export type Settings = {
  readonly seed: number;
  readonly daemons: number;
  /** Programs with a replica of the space, a registrar client and `once`; the first is an owner's. None unless said. */
  readonly agents?: number;
  /** Side by side on one store, with signals between them; one unless said. */
  readonly brokers?: number;
  /** Simulated hours with work in them; each round ends in calm and a look at everything. */
  readonly rounds: number;
  readonly roundHours: number;
  readonly rateLimit: { readonly limit: number; readonly windowSeconds: number };
  /** Undefined: for ever. */
  readonly dedupeDays: number | undefined;
  readonly messageDays: number | undefined;
  readonly inboxDays: number | undefined;
  readonly outboxDays: number;
  readonly requestTimeoutMs: number;
  /** What the broker does with a daemon's older connection when it comes again. */
  readonly connectionPolicy: "prefer_newest" | "allow_concurrent";
  /** Between rounds, in days; 0: none. Time passes while all processes sleep. */
  readonly leapDays: readonly number[];
  /** How far each host's wall clock is off, the broker's first. */
  readonly skewMs: readonly number[];
};

type Moment = { readonly atMs: number };
/** Host 0 is the broker's; then come the daemons', the agents' and the second broker's, in their order. */
type OnHost = Moment & { readonly host: number };
type Lasting = OnHost & { readonly forMs: number };

type OnDatabase = OnHost & { readonly database: "outbox" | "inbox" | "broker" };

/** Where in a transaction something goes wrong: nothing is written; all is rolled back; all is on disk. */
export type CommitPhase = "begin" | "before" | "after";

export type Fault =
  | (Lasting & { readonly kind: "crash" })
  /** The process dies at one of its next commits. */
  | (OnDatabase & {
      readonly kind: "crash_at_commit";
      readonly phase: CommitPhase;
      readonly skip: number;
      readonly forMs: number;
    })
  /** The next commits fail. One that fails after it was durable ends the process soon, as a failed flush should. */
  | (OnDatabase & {
      readonly kind: "disk_error";
      readonly phase: CommitPhase;
      readonly error: "io" | "disk_full";
      /** Commits that still go well. */
      readonly skip: number;
      readonly commits: number;
    })
  | (Lasting & { readonly kind: "partition" })
  /** Nothing arrives in one direction, and neither side notices. */
  | (Lasting & { readonly kind: "half_open"; readonly direction: "up" | "down" })
  | (Lasting & { readonly kind: "loss"; readonly rate: number })
  | (Lasting & { readonly kind: "duplication"; readonly rate: number })
  | (Lasting & { readonly kind: "slowness"; readonly delayMs: number })
  | (OnHost & { readonly kind: "cut" })
  /** The wall clock is set; a daemon notices at its next start, the broker at once. */
  | (OnHost & { readonly kind: "clock_step"; readonly byMs: number })
  /** The machine sleeps. */
  | (Lasting & { readonly kind: "sleep" })
  /** Redis is away: signals between brokers are lost, and the limiter cannot be asked, or answers that late. */
  | (Lasting & { readonly kind: "limiter_outage"; readonly slowMs: number })
  /** The program that verifies registrations finds nothing out. */
  | (Lasting & { readonly kind: "verifier_outage" })
  /** The inbox is damaged and is set aside at the next start, which is now. */
  | (OnHost & { readonly kind: "inbox_loss" });

export type Address =
  | { readonly kind: "topic"; readonly topic: number }
  | { readonly kind: "dm"; readonly daemon: number }
  | { readonly kind: "queue"; readonly queue: number }
  | { readonly kind: "nowhere" };

type Asked = Moment & { readonly number: number; readonly daemon: number };

/** What a daemon is asked for by the programs beside it. */
export type DaemonOperation =
  | (Asked & { readonly kind: "send"; readonly to: Address; readonly named: boolean; readonly bytes: number })
  /** The same request as an earlier one of this daemon. */
  | (Asked & { readonly kind: "retry"; readonly pick: number })
  /** The id of an earlier send with other content, here or on another host. */
  | (Asked & { readonly kind: "clash"; readonly pick: number; readonly abroad: boolean })
  | (Asked & {
      readonly kind: "requeue";
      readonly pick: number;
      readonly acceptDuplicate: boolean;
      readonly patched: boolean;
      readonly again: boolean;
    })
  | (Asked & { readonly kind: "prune"; readonly days: number })
  | (Asked & { readonly kind: "mark_read"; readonly pick: number })
  | (Asked & { readonly kind: "read_history"; readonly limit: number })
  | (Asked & {
      readonly kind: "consume";
      readonly queue: number;
      readonly max: number;
      readonly leaseSeconds: number;
      readonly thinkMs: number;
      readonly afterwards: "ack" | "nack" | "abandon";
    })
  | (Asked & { readonly kind: "revive"; readonly queue: number })
  | (Asked & { readonly kind: "subscribe" | "unsubscribe"; readonly topic: number });

export type Operation = DaemonOperation | AgentOperation;

export type Plan = {
  readonly settings: Settings;
  readonly operations: readonly Operation[];
  readonly faults: readonly Fault[];
};

export const topicNames = ["general", "builds"] as const;
export const queueNames = ["jobs"] as const;
export const spaceName = "plan";
export const hourMs = 3_600_000;
export const dayMs = 24 * hourMs;

export function roundMs({ roundHours }: Pick<Settings, "roundHours">): number {
  return roundHours * hourMs;
}

/** Faults and new work happen in the first part of a round; the rest is for settling. */
export const busyShare = 0.75;
