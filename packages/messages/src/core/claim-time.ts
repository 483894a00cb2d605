// How long a try may be under way: after its look-up a send may still be claimed, and after a silence a connection may still
// be heard. Pure.
//
// A retry is recognised by the look-up, or by the claim, which finds a row that was written since the look-up. Both find nothing
// once that row is forgotten, so a send that was under way while its machine slept for longer than ids are remembered would
// take effect a second time. Therefore a send that is too late after its look-up is refused, and its sender tries again.
// Why: docs/decisions/0082.

/** Far more than any step takes, and far less than the seven days for which an id is remembered at least. */
export const underWayMs = 300_000;

/** By the wall clock, because it goes on while a machine sleeps. A clock that is set ahead refuses what is under way, once. */
export function isOutdated(sinceMs: number, nowMs: number): boolean {
  return nowMs - sinceMs > underWayMs;
}
