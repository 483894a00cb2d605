// The common core of time-ordered ids: a millisecond followed by random bits, which together only ever grow. While the
// clock stands still or runs back, the random part is counted up, and its overflow carries into the millisecond. ids.ts
// turns the parts into text.

/**
 * The sources of time and randomness; passed in by the caller, so that tests can repeat a run and browsers can use it.
 */
export interface IdSources {
  /** Milliseconds since the epoch; need not be monotonic. */
  readonly nowMs: () => number;
  /** Fresh, unpredictable bytes of the given length. */
  readonly randomBytes: (length: number) => Uint8Array;
}

/** The random bits as whole numbers, most significant first, each below 2 ** its width. */
export type Limbs = number[];

interface SequenceShape {
  readonly limbBits: readonly number[];
  readonly randomByteLength: number;
  readonly limbsFromBytes: (bytes: Uint8Array) => Limbs;
}

/** The current value of the sequence; `advance` changes it to the next one. */
interface MonotonicSequence {
  timeMs: number;
  limbs: Limbs;
  advance(): void;
}

const MAX_TIME_MS = 2 ** 48 - 1;

export function createMonotonicSequence(sources: IdSources, shape: SequenceShape): MonotonicSequence {
  const sequence: MonotonicSequence = {
    timeMs: -1,
    limbs: [],
    advance() {
      const nowMs = Math.floor(sources.nowMs());
      if (!(nowMs >= 0 && nowMs <= MAX_TIME_MS)) throw new RangeError("the clock is outside the 48 bits of an id");
      if (nowMs > sequence.timeMs) {
        sequence.timeMs = nowMs;
        sequence.limbs = drawLimbs(sources, shape);
      } else if (!countUp(sequence.limbs, shape.limbBits)) {
        if (sequence.timeMs === MAX_TIME_MS) throw new RangeError("the ids of the last millisecond are used up");
        sequence.timeMs += 1;
      }
    },
  };
  return sequence;
}

function drawLimbs(sources: IdSources, shape: SequenceShape): Limbs {
  const bytes = sources.randomBytes(shape.randomByteLength);
  // Too few random bytes would silently give ids that others could guess or repeat.
  if (bytes.length !== shape.randomByteLength) throw new RangeError("randomBytes gave another length than asked");
  return shape.limbsFromBytes(bytes);
}

/** Adds one; false when every limb wrapped to zero and a carry is left over. */
function countUp(limbs: Limbs, limbBits: readonly number[]): boolean {
  for (let index = limbs.length - 1; index >= 0; index -= 1) {
    const next = (limbs[index] ?? 0) + 1;
    if (next < 2 ** (limbBits[index] ?? 0)) {
      limbs[index] = next;
      return true;
    }
    limbs[index] = 0;
  }
  return false;
}
