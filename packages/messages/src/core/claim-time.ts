// How long a try may be under way: after its look-up a send may still be claimed, and after a silence a connection may still
// be heard. Pure.
//
// The look-up is what makes a retry a retry, together with the claim that finds the row which the look-up did not. Both see
// nothing once that row is forgotten: a send that was under way while its machine slept for longer than ids are remembered
// would be taken a second time. So that nobody relies on how soon the next step comes, too late is refused, and asks again.
// Why: docs/decisions/0082.

/** Far more than any step takes, and far less than the seven days for which an id is remembered at least. */
export const underWayMs = 300_000;

/** By the wall clock, because it goes on while a machine sleeps. A clock that is set ahead refuses what is under way, once. */
export function isOutdated(sinceMs: number, nowMs: number): boolean {
  return nowMs - sinceMs > underWayMs;
}
