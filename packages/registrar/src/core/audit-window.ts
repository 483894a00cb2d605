// How much of the audit one member's refusals may fill: so many rows in a window, and from then on a count, which
// becomes one row when the window is over. No refusal is lost, and none can fill a disk.
// Why: docs/decisions/0011.

export const auditWindowMs = 60_000;
export const auditRowsPerWindow = 60;

export type AuditWindow = {
  readonly windowStartMs: number;
  readonly written: number;
  readonly suppressed: number;
};

export type AuditStep = {
  /** Write the refusal as a row of its own. */
  readonly write: boolean;
  /** Refusals of the window before that no row tells of; 0: none. */
  readonly summarise: number;
  readonly window: AuditWindow;
};

export function countRefusal(window: AuditWindow | undefined, nowMs: number): AuditStep {
  if (window === undefined || isOver(window, nowMs)) {
    const fresh = { windowStartMs: nowMs, written: 1, suppressed: 0 };
    return { write: true, summarise: window?.suppressed ?? 0, window: fresh };
  }
  if (window.written < auditRowsPerWindow) {
    return { write: true, summarise: 0, window: { ...window, written: window.written + 1 } };
  }
  return { write: false, summarise: 0, window: { ...window, suppressed: window.suppressed + 1 } };
}

/** A clock that was set back ends a window too: it would otherwise last until the clock has caught up. */
function isOver({ windowStartMs }: AuditWindow, nowMs: number): boolean {
  return nowMs >= windowStartMs + auditWindowMs || nowMs < windowStartMs;
}
