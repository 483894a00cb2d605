// Ids that sort by the time at which they were made: ULIDs (client message ids made by the daemon) and UUIDv7 (broker
// message ids, mesh ids). Within one generator the texts strictly increase, whatever the clock does; only their random
// bits keep the ids of two generators apart. Only the canonical spelling is an id: ULIDs in capitals, UUIDs in lower
// case.
import { createMonotonicSequence, type IdSources, type Limbs } from "./monotonic-sequence.ts";

export type { IdSources } from "./monotonic-sequence.ts";

const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Four limbs of 20 bits make the 80 random bits, and each limb is four Crockford characters. */
const ULID_LIMB_BITS = [20, 20, 20, 20];
/** The 74 random bits as the text divides them: rand_a, then rand_b in the groups of the text. */
const UUID_V7_LIMB_BITS = [12, 14, 16, 16, 16];
const VERSION_7 = 0x7000;
const VARIANT = 0x8000;
const RANDOM_BYTE_LENGTH = 10;

export function createUlidGenerator(sources: IdSources): () => string {
  const sequence = createMonotonicSequence(sources, {
    limbBits: ULID_LIMB_BITS,
    randomByteLength: RANDOM_BYTE_LENGTH,
    limbsFromBytes: ulidLimbs,
  });
  return () => {
    sequence.advance();
    let text = crockford(Math.floor(sequence.timeMs / 2 ** 20), 6) + crockford(sequence.timeMs % 2 ** 20, 4);
    for (const limb of sequence.limbs) text += crockford(limb, 4);
    return text;
  };
}

export function createUuidV7Generator(sources: IdSources): () => string {
  const sequence = createMonotonicSequence(sources, {
    limbBits: UUID_V7_LIMB_BITS,
    randomByteLength: RANDOM_BYTE_LENGTH,
    limbsFromBytes: uuidV7Limbs,
  });
  // While only the last limb is counted up, all but the last digits stay the same, so that part of the text is reused.
  // A new draw brings new limbs, and a carry, even into the millisecond, starts the last limb anew.
  let head = "";
  let headLimbs: Limbs = [];
  let lowBefore = 0;
  return () => {
    sequence.advance();
    const { timeMs, limbs } = sequence;
    const low = limbs[4] ?? 0;
    if (limbs !== headLimbs || low <= lowBefore) {
      head = uuidV7Head(timeMs, limbs);
      headLimbs = limbs;
    }
    lowBefore = low;
    return head + hex4(low);
  };
}

/** All but the last four digits. */
function uuidV7Head(timeMs: number, limbs: Limbs): string {
  const time = hex4(Math.floor(timeMs / 2 ** 32)) + hex4((timeMs / 2 ** 16) & 0xffff);
  const [randA = 0, randB = 0, high = 0, middle = 0] = limbs;
  const node = hex4(high) + hex4(middle);
  return `${time}-${hex4(timeMs & 0xffff)}-${hex4(VERSION_7 | randA)}-${hex4(VARIANT | randB)}-${node}`;
}

export function isUlid(text: string): boolean {
  return ULID.test(text);
}

export function isUuidV7(text: string): boolean {
  return UUID_V7.test(text);
}

/** The millisecond inside a ULID; undefined where the text is no ULID. */
export function ulidTimeMs(text: string): number | undefined {
  if (!isUlid(text)) return undefined;
  let timeMs = 0;
  for (const character of text.slice(0, 10)) timeMs = timeMs * 32 + CROCKFORD.indexOf(character);
  return timeMs;
}

/** The millisecond inside a UUIDv7; undefined where the text is no UUIDv7. */
export function uuidV7TimeMs(text: string): number | undefined {
  return isUuidV7(text) ? Number.parseInt(text.slice(0, 8) + text.slice(9, 13), 16) : undefined;
}

function ulidLimbs(bytes: Uint8Array): Limbs {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0, i = 0, j = 0] = bytes;
  return [
    (a << 12) | (b << 4) | (c >> 4),
    ((c & 0xf) << 16) | (d << 8) | e,
    (f << 12) | (g << 4) | (h >> 4),
    ((h & 0xf) << 16) | (i << 8) | j,
  ];
}

/** The bytes are at the positions that they have in the id; the bits of version and variant are cut from them. */
function uuidV7Limbs(bytes: Uint8Array): Limbs {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0, i = 0, j = 0] = bytes;
  return [((a & 0xf) << 8) | b, ((c & 0x3f) << 8) | d, (e << 8) | f, (g << 8) | h, (i << 8) | j];
}

function crockford(value: number, length: number): string {
  let text = "";
  for (let shift = (length - 1) * 5; shift >= 0; shift -= 5) text += CROCKFORD[(value >>> shift) & 0x1f];
  return text;
}

/** Sixteen bits as four digits. */
function hex4(value: number): string {
  return (0x1_0000 + value).toString(16).slice(1);
}
