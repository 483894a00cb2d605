// Wrong builds of how a daemon sends what its outbox holds.
import type { KnownBad } from "./fault.ts";

const drainState = "packages/daemon/src/core/drain-state.ts";

export const drainFaults: readonly KnownBad[] = [
  {
    name: "a-halted-drain-sends",
    harm: "a member that the broker has removed goes on sending to it",
    edits: [
      {
        file: drainState,
        find: 'if (state.mode.state !== "running") return { state, effects: rows.map(putBack) };',
        replace: "",
      },
    ],
  },
  {
    name: "a-new-row-overtakes-a-claim",
    harm: "a message leaves before those that were sent before it",
    edits: [
      {
        file: drainState,
        find: 'if (underWay === "none" || state.mode.state !== "running")',
        replace: 'if (underWay === "none" || underWay.rows > 0)',
      },
    ],
  },
  {
    name: "waiting-rows-outlive-the-link",
    harm: "what waited in memory when the link went down is sent beside its own retry",
    edits: [
      {
        file: drainState,
        find: "{ ...state, mode, waiting: PriorityQueue.empty() }",
        replace: "{ ...state, mode }",
      },
    ],
  },
  {
    name: "a-row-that-waited-too-long-is-tried",
    harm: "a row is sent at an age at which the broker may have forgotten its id, and is stored twice",
    edits: [
      {
        file: drainState,
        find: "enqueuedAt <= expiredAtOrBefore;",
        replace: "enqueuedAt < 0 * expiredAtOrBefore;",
      },
    ],
  },
];
