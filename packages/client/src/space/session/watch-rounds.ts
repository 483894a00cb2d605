// What an answer means for a round of a branch's watch set.
import { bodyOf, ownError, SpaceError } from "../space-errors.ts";
import type { WireOutcome } from "../space-wire.ts";
import { isSeq, readEntityPage } from "../sync-frame.ts";
import type { Ask } from "./session-contract.ts";
import type { LoadedRound, WatchMessage, WatchSet } from "./watch-set.ts";

export type RoundAnswer =
  /** The answer belongs to a round that is over. */
  | { readonly kind: "stale" }
  | { readonly kind: "again" }
  | { readonly kind: "failed"; readonly error: SpaceError }
  | { readonly kind: "progress"; readonly loaded: LoadedRound | undefined; readonly messages: readonly WatchMessage[] };

export function answerRound(watch: WatchSet, ask: Extract<Ask, { kind: "watch" }>, outcome: WireOutcome): RoundAnswer {
  const { round, part } = ask;
  if (!watch.isInRound(round)) return { kind: "stale" };
  try {
    const body = bodyOf(outcome, part === undefined ? "space.watch" : "space.query");
    if (part === undefined) {
      if (!isSeq(body.seq)) throw ownError("MalformedAnswerError");
      return { kind: "progress", loaded: watch.watched(round, body.seq), messages: [] };
    }
    const page = readEntityPage(body);
    if (page === undefined) throw ownError("MalformedAnswerError");
    return { kind: "progress", ...watch.queried(round, part, page) };
  } catch (error) {
    if (!(error instanceof SpaceError)) throw error;
    const parts = error.code === "payload_too_large" && part !== undefined ? watch.split(round, part) : undefined;
    if (parts !== undefined) return { kind: "progress", loaded: undefined, messages: parts };
    if (error.retryable) {
      watch.abandon(round);
      return { kind: "again" };
    }
    watch.fail(round);
    return { kind: "failed", error };
  }
}
