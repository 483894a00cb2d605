// The drain as a state machine: which rows may leave for the broker now, and what each event leads to. It reads no clock
// and touches no disk and no network: events bring what they need with them, and the service that carries out the effects
// (services/drain.ts) reports what came of them as the next events.
//
// The drain is in one of five modes. `GET /v1/health` and `claudemesh daemon status` show them under the same names.
//
// - waiting_for_broker: there is no connection. Rows stay pending on disk, and nothing is claimed. The drain begins here; the
//   next successful hello leads to `running`.
// - running: due rows are made inflight and their frames leave, as many as the window allows. Only in this mode does a frame
//   leave.
// - resting: the connection stands, but other rows would fare no better just now: the broker asked for a pause, was in
//   trouble or did not answer, or the disk refused to make rows inflight. Nothing leaves before `until`; then the drain runs
//   again. Each rest that follows another without a success between them may be longer. All failures of one window are one.
// - halted: the broker refuses this member. Waiting does not help, so the link says hello anew, and only a hello that
//   succeeds ends this mode.
// - stopped: the daemon is ending. This is final.
//
// A row is open from the moment at which room is taken for it until the end of its try is on disk. In between it becomes
// inflight on disk, waits in memory while the window of frames is full, and has its try. A pending row that is due gets its
// room from a claim, which the store fills in the order of priorities. A new row takes its room before it is stored, and is
// then inflight from the start. Many more rows may be open than the window has frames: a row that is stored as pending needs
// a second transaction, and sends that come in bursts would all need one. Claims take only what the window still has room for,
// because pending rows gain nothing by waiting in memory. A new row that is stored while a claim is under way leaves after the
// rows of that claim, whichever of the two transactions is reported first. When the drain leaves `running`, rows that wait in memory are
// pending again, untried; so is a row that has become too old to be tried (MSG-11).
// Why: docs/decisions/0089.
import assert from "node:assert/strict";
import type { DrainStatusBody } from "@claudemesh/client/daemon";
import { type BackoffBounds, backoffDelayMs } from "@claudemesh/protocol/messages/backoff";
import type { ClaimedRow, NewOutboxRow } from "./outbox-row.ts";
import { PriorityQueue } from "./priorities.ts";
import type { DrainSignal, TryEnd } from "./try-end.ts";

export type DrainMode = DrainStatusBody;

const modeNames: Readonly<Record<DrainMode["state"], true>> = {
  running: true,
  waiting_for_broker: true,
  resting: true,
  halted: true,
  stopped: true,
};
export const drainModes: readonly string[] = Object.keys(modeNames);

export type DrainLimits = {
  readonly backoff: BackoffBounds;
  /** Frames at the broker. */
  readonly windowRows: number;
  /** Where so many rows are open, a new one is stored as pending. */
  readonly openRows: number;
  /** The same for rows of priority `now`, so that they need not wait until all others have left. */
  readonly openRowsUrgent: number;
  /** Where the payloads of open rows are so large, nothing is claimed, and a new row is stored as pending. */
  readonly openBytes: number;
};

export type DrainState = {
  readonly mode: DrainMode;
  readonly openRows: number;
  readonly openBytes: number;
  readonly framesOut: number;
  /** Rows without a frame yet. While there are any, the window is full. */
  readonly waiting: PriorityQueue<ClaimedRow>;
  readonly claim: ClaimUnderWay | "none";
  /** Due rows may have been left behind for want of room, so that room that becomes free is for them. */
  readonly moreIsDue: boolean;
  /** Rests that no success has followed. */
  readonly rests: number;
  /** When the broker first said that the mesh's budget is spent; undefined once a success has followed. */
  readonly rateLimitedSince: number | undefined;
};

type ClaimUnderWay = {
  /** How many it may bring. */
  readonly rows: number;
  /** Rows may have become due since it began. */
  readonly again: boolean;
  /** New rows that were stored meanwhile. They leave after the rows of the claim, which came before them. */
  readonly newer: readonly ClaimedRow[];
};

export type DrainEvent =
  /** A hello has succeeded. */
  | { readonly type: "link_up" }
  | { readonly type: "link_down" }
  | { readonly type: "stop" }
  /** A row became pending, or the moment has come that `wake_at` named. */
  | { readonly type: "wake"; readonly nowMs: number }
  /** A new row is about to be stored as inflight; `hasRoom` said that it may be. */
  | { readonly type: "room_taken"; readonly bytes: number }
  /** That row was not stored, or is pending. */
  | { readonly type: "room_returned"; readonly bytes: number }
  /** That row is inflight on disk. */
  | ({ readonly type: "stored"; readonly row: ClaimedRow } & AgeLimit)
  /** The claim that was made at `madeAtMs` is on disk. `more`: due rows were left behind because its bounds were reached. */
  | ({ readonly type: "claimed"; readonly rows: readonly ClaimedRow[]; readonly more: boolean } & AgeLimit & MadeAt)
  | ({ readonly type: "claim_failed" } & Moment)
  | ({ readonly type: "try_ended"; readonly signal: DrainSignal } & Ended & AgeLimit & Moment)
  /** The end is on disk, or the daemon stops and the disk has refused it. */
  | ({ readonly type: "end_recorded" } & Ended);

/** Rows enqueued at or before this are too old to be tried. */
type AgeLimit = { readonly expiredAtOrBefore: number };
type MadeAt = { readonly madeAtMs: number };
/** `random` is in [0, 1). */
type Moment = { readonly nowMs: number; readonly random: number };
type Ended = { readonly row: ClaimedRow; readonly end: TryEnd };

export type DrainEffect =
  /** Make so many due rows inflight, with payloads of so many bytes in all. */
  | { readonly type: "claim"; readonly rows: number; readonly bytes: number }
  /** Send the row's frame, which begins its try. */
  | { readonly type: "send"; readonly row: ClaimedRow }
  /** Record how the row's try ended, or that it had none. */
  | ({ readonly type: "record_end" } & Ended)
  /** Wake the drain at this moment, or earlier where that was asked for. */
  | { readonly type: "wake_at"; readonly timeMs: number }
  /** Wake the drain when the next row becomes due that was not due at this moment. */
  | { readonly type: "wake_when_due"; readonly afterMs: number }
  | { readonly type: "cancel_wake" }
  | { readonly type: "renew_link"; readonly detail: string };

export type DrainStep = { readonly state: DrainState; readonly effects: readonly DrainEffect[] };

export const initialDrain: DrainState = {
  mode: { state: "waiting_for_broker" },
  openRows: 0,
  openBytes: 0,
  framesOut: 0,
  waiting: PriorityQueue.empty(),
  claim: "none",
  moreIsDue: false,
  rests: 0,
  rateLimitedSince: undefined,
};

/** Whether a new row may be stored as inflight. */
export function hasRoom(state: DrainState, { priority }: Pick<NewOutboxRow, "priority">, limits: DrainLimits): boolean {
  const rowsMax = priority === "now" ? limits.openRowsUrgent : limits.openRows;
  return state.mode.state === "running" && state.openRows < rowsMax && state.openBytes < limits.openBytes;
}

export function stepDrain(state: DrainState, event: DrainEvent, limits: DrainLimits): DrainStep {
  switch (event.type) {
    case "link_up":
      return linkUp(state, limits);
    case "link_down":
      return linkDown(state);
    case "stop":
      return leaveRunning(state, { state: "stopped" }, [{ type: "cancel_wake" }]);
    case "wake":
      return wake(state, event.nowMs, limits);
    case "room_taken":
      return only({ ...state, openRows: state.openRows + 1, openBytes: state.openBytes + event.bytes });
    case "room_returned":
      return free(state, event.bytes, limits);
    case "stored":
      return stored(state, event, limits);
    case "claimed":
      return claimed(state, event, limits);
    case "claim_failed":
      return claimFailed(state, event, limits);
    case "try_ended":
      return tryEnded(state, event, limits);
    case "end_recorded":
      return endRecorded(state, event, limits);
  }
}

const only = (state: DrainState): DrainStep => ({ state, effects: [] });

function andThen(first: DrainStep, next: (state: DrainState) => DrainStep): DrainStep {
  const second = next(first.state);
  return { state: second.state, effects: [...first.effects, ...second.effects] };
}

/** Whether time alone brings the next row to its turn. */
const isConnected = ({ mode }: DrainState) => mode.state === "running" || mode.state === "resting";

function linkUp(state: DrainState, limits: DrainLimits): DrainStep {
  if (state.mode.state === "stopped") return only(state);
  const fresh = { ...state, rests: 0, rateLimitedSince: undefined };
  return claim({ ...fresh, mode: { state: "running" } }, limits);
}

/** A member that the broker refuses stays refused: that it is away as well explains nothing. */
function linkDown(state: DrainState): DrainStep {
  if (!isConnected(state)) return only(state);
  return leaveRunning(state, { state: "waiting_for_broker" }, [{ type: "cancel_wake" }]);
}

function wake(state: DrainState, nowMs: number, limits: DrainLimits): DrainStep {
  const { mode } = state;
  if (mode.state !== "resting") return claim(state, limits);
  if (nowMs < mode.until) return { state, effects: [{ type: "wake_at", timeMs: mode.until }] };
  return claim({ ...state, mode: { state: "running" } }, limits);
}

/** Begins a claim, where the mode and the window allow one; one that is under way is followed by another. */
function claim(state: DrainState, limits: DrainLimits): DrainStep {
  if (state.mode.state !== "running") return only(state);
  if (state.claim !== "none") return only({ ...state, claim: { ...state.claim, again: true } });
  const [rows, bytes] = [limits.windowRows - state.openRows, limits.openBytes - state.openBytes];
  if (rows <= 0 || bytes <= 0) return only({ ...state, moreIsDue: true });
  return { state: { ...state, claim: { rows, again: false, newer: [] } }, effects: [{ type: "claim", rows, bytes }] };
}

function claimed(state: DrainState, event: Extract<DrainEvent, { type: "claimed" }>, limits: DrainLimits): DrainStep {
  const { rows, more, madeAtMs } = event;
  const ended = state.claim;
  assert(ended !== "none" && rows.length <= ended.rows, "a claim brings no more rows than it asked for");
  const openRows = state.openRows + rows.length;
  const openBytes = rows.reduce((sum, { payload }) => sum + payload.length, state.openBytes);
  const open: DrainState = { ...state, openRows, openBytes, moreIsDue: more, claim: "none" };
  return andThen(begin(open, [...rows, ...ended.newer], event, limits), (begun) => {
    if (ended.again || rows.length === ended.rows) return claim(begun, limits);
    return { state: begun, effects: isConnected(begun) ? [{ type: "wake_when_due", afterMs: madeAtMs }] : [] };
  });
}

/** The disk has no room for now, which is no better for other rows. */
function claimFailed(state: DrainState, moment: Moment, limits: DrainLimits): DrainStep {
  assert(state.claim !== "none", "a claim has failed that was not begun");
  const newer = state.claim.newer.map(putBack);
  const { state: resting, effects } = rest({ ...state, claim: "none" }, moment, limits);
  return { state: resting, effects: [...newer, ...effects] };
}

function stored(state: DrainState, event: Extract<DrainEvent, { type: "stored" }>, limits: DrainLimits): DrainStep {
  const { claim: underWay } = state;
  if (underWay === "none" || state.mode.state !== "running") return begin(state, [event.row], event, limits);
  return only({ ...state, claim: { ...underWay, newer: [...underWay.newer, event.row] } });
}

/** Rows are inflight on disk. */
function begin(state: DrainState, rows: readonly ClaimedRow[], age: AgeLimit, limits: DrainLimits): DrainStep {
  if (state.mode.state !== "running") return { state, effects: rows.map(putBack) };
  const waiting = rows.reduce((queue, row) => queue.with(row), state.waiting);
  return sendWaiting({ ...state, waiting }, age, limits);
}

/** Rows leave in their order, as far as the window has room for their frames. */
function sendWaiting(state: DrainState, age: AgeLimit, limits: DrainLimits): DrainStep {
  const effects: DrainEffect[] = [];
  let { framesOut, waiting } = state;
  while (framesOut < limits.windowRows) {
    const taken = waiting.takeFirst();
    if (taken === undefined) break;
    waiting = taken.rest;
    if (isTooOld(taken.first, age)) effects.push(putBack(taken.first));
    else {
      framesOut++;
      effects.push({ type: "send", row: taken.first });
    }
  }
  return { state: { ...state, framesOut, waiting }, effects };
}

/** Rows that wait are pending again, untried. */
function leaveRunning(state: DrainState, mode: DrainMode, effects: readonly DrainEffect[]): DrainStep {
  const ends: DrainEffect[] = [];
  for (let taken = state.waiting.takeFirst(); taken !== undefined; taken = taken.rest.takeFirst()) {
    ends.push(putBack(taken.first));
  }
  return { state: { ...state, mode, waiting: PriorityQueue.empty() }, effects: [...ends, ...effects] };
}

const isTooOld = ({ enqueuedAt }: ClaimedRow, { expiredAtOrBefore }: AgeLimit) => enqueuedAt <= expiredAtOrBefore;
const putBack = (row: ClaimedRow): DrainEffect => ({ type: "record_end", row, end: { next: "put_back" } });

function tryEnded(
  state: DrainState,
  event: Extract<DrainEvent, { type: "try_ended" }>,
  limits: DrainLimits,
): DrainStep {
  const { row, end, signal } = event;
  const ended: DrainStep = {
    state: { ...state, framesOut: state.framesOut - 1 },
    effects: [{ type: "record_end", row, end }],
  };
  const heeded = andThen(ended, (after) => heedSignal(after, signal, event, limits));
  return andThen(heeded, (after) => (after.waiting.size === 0 ? only(after) : sendWaiting(after, event, limits)));
}

function endRecorded(state: DrainState, { row, end }: Ended, limits: DrainLimits): DrainStep {
  const moreIsDue = state.moreIsDue || end.next === "put_back";
  const freed = free({ ...state, moreIsDue }, row.payload.length, limits);
  if (end.next !== "pending" || !isConnected(state)) return freed;
  return { state: freed.state, effects: [...freed.effects, { type: "wake_at", timeMs: end.nextAttemptAt }] };
}

/** The room of one row is free again. */
function free(state: DrainState, bytes: number, limits: DrainLimits): DrainStep {
  const after = { ...state, openRows: state.openRows - 1, openBytes: state.openBytes - bytes };
  return after.moreIsDue ? claim(after, limits) : only(after);
}

function heedSignal(state: DrainState, signal: DrainSignal, moment: Moment, limits: DrainLimits): DrainStep {
  switch (signal.type) {
    case "flows":
      if (state.rests === 0 && state.rateLimitedSince === undefined) return only(state);
      return only({ ...state, mode: withCause(state.mode, undefined), rests: 0, rateLimitedSince: undefined });
    case "unauthorized":
      return halt(state, signal.detail);
    case "rate_limited": {
      const rateLimitedSince = state.rateLimitedSince ?? moment.nowMs;
      return rest({ ...state, rateLimitedSince }, moment, limits, signal.retryAfterMs);
    }
    case "troubled":
    case "not_sent":
      return rest(state, moment, limits);
  }
}

function halt(state: DrainState, detail: string): DrainStep {
  if (state.mode.state === "halted" || state.mode.state === "stopped") return only(state);
  const mode: DrainMode = { state: "halted", reason: "unauthorized", detail };
  return leaveRunning(state, mode, [{ type: "cancel_wake" }, { type: "renew_link", detail }]);
}

/** Other rows would meet the same broker, so nothing leaves for a while. One window's failures count once. */
function rest(state: DrainState, { nowMs, random }: Moment, { backoff }: DrainLimits, atLeastMs = 0): DrainStep {
  const { mode } = state;
  if (!isConnected(state)) return only(state);
  const isResting = mode.state === "resting" && nowMs < mode.until;
  const rests = isResting ? state.rests : state.rests + 1;
  const until = isResting
    ? Math.max(mode.until, nowMs + atLeastMs)
    : nowMs + backoffDelayMs(rests, random, backoff, atLeastMs);
  const resting = withCause({ state: "resting", until }, state.rateLimitedSince);
  return leaveRunning({ ...state, rests }, resting, [{ type: "wake_at", timeMs: until }]);
}

function withCause(mode: DrainMode, rateLimitedSince: number | undefined): DrainMode {
  if (mode.state !== "resting") return mode;
  const cause = rateLimitedSince === undefined ? {} : { rate_limited_since: rateLimitedSince };
  return { state: "resting", until: mode.until, ...cause };
}
