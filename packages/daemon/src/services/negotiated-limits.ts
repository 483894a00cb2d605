// What the broker announced last, and the limits that follow from it. Kept on disk, because a daemon whose broker is
// away still has to bound what it accepts and how long it tries.
import type { NegotiatedFeatures } from "@claudemesh/protocol/features";
import { limits } from "@claudemesh/protocol/messages/limits";
import { deriveMaxAge, type MaxAge } from "@claudemesh/protocol/messages/max-age";
import { fenceProvesNothingBefore, hoursToMs, requeueProvesNothingBefore } from "../core/age-limits.ts";
import type { NegotiatedStore } from "../ports.ts";

export type NegotiatedLimits = {
  /** The largest wire body that is accepted. */
  readonly inlineBytes: () => number;
  /** Rows enqueued at or before this are not tried any more. */
  readonly expiredAtOrBefore: (nowMs: number) => number;
  /** Rows enqueued at or before this keep an unknown fate, whatever the broker says. */
  readonly fenceProvesNothingBefore: (nowMs: number) => number;
  /** Rows enqueued at or before this are not requeued on the broker's word that they were not accepted. */
  readonly requeueProvesNothingBefore: (nowMs: number) => number;
  /** Stores what a hello announced. Not ok where the configured age leaves the new window, which the caller acts on. */
  readonly adopt: (features: NegotiatedFeatures) => Promise<MaxAge>;
};

export type LoadedLimits = { readonly ok: true; readonly limits: NegotiatedLimits } | Extract<MaxAge, { ok: false }>;

/** Not ok where the configured age leaves the window that was announced last. */
export function loadNegotiatedLimits(store: NegotiatedStore, overrideHours: number | undefined): LoadedLimits {
  let features = store.load();
  const first = deriveMaxAge(features?.dedupe, overrideHours);
  if (!first.ok) return first;
  let maxAgeMs = hoursToMs(first.hours);
  const negotiated: NegotiatedLimits = {
    inlineBytes: () => features?.inlineBytes ?? limits.inlineBytes,
    expiredAtOrBefore: (nowMs) => nowMs - maxAgeMs,
    fenceProvesNothingBefore: (nowMs) => fenceProvesNothingBefore(features?.dedupe, nowMs),
    requeueProvesNothingBefore: (nowMs) => requeueProvesNothingBefore(features?.dedupe, nowMs),
    adopt: async (announced) => {
      const changed = JSON.stringify(announced) !== JSON.stringify(features);
      features = announced;
      const derived = deriveMaxAge(announced.dedupe, overrideHours);
      if (derived.ok) maxAgeMs = hoursToMs(derived.hours);
      if (changed) await store.save(announced);
      return derived;
    },
  };
  return { ok: true, limits: negotiated };
}
