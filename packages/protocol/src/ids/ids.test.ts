// Time-ordered ids: the published vectors, and their order and uniqueness under clocks that do what they like.
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  createUlidGenerator,
  createUuidV7Generator,
  type IdSources,
  isUlid,
  isUuidV7,
  ulidTimeMs,
  uuidV7TimeMs,
} from "./ids.ts";

interface Sequence {
  name: string;
  clock_ms: number[];
  random_hex: string[];
  texts: string[];
}
interface Vectors {
  ulid: { time_ms: number; random_hex: string; text: string }[];
  uuid_v7: { time_ms: number; random_hex: string; text: string }[];
  ulid_sequences: Sequence[];
  uuid_v7_sequences: Sequence[];
  not_ulid: string[];
  not_uuid_v7: string[];
}

const vectors: Vectors = JSON.parse(readFileSync(new URL("../../vectors/ids.json", import.meta.url), "utf8"));
const MAX_TIME_MS = 2 ** 48 - 1;

/** Plays clock readings and draws in order, and fails when more are asked for than there are. */
function scripted(clockMs: readonly number[], draws: readonly Uint8Array[]): IdSources & { drawsLeft: () => number } {
  const clock = [...clockMs];
  const random = [...draws];
  const take = <Item>(from: Item[]): Item => {
    const item = from.shift();
    if (item === undefined) throw new Error("the script is over");
    return item;
  };
  return { nowMs: () => take(clock), randomBytes: () => take(random), drawsLeft: () => random.length };
}

const fromHex = (hex: string) => Uint8Array.from(Buffer.from(hex, "hex"));

const kinds = [
  {
    kind: "ULID",
    create: createUlidGenerator,
    isValid: isUlid,
    timeMs: ulidTimeMs,
    single: vectors.ulid,
    sequences: vectors.ulid_sequences,
    invalid: vectors.not_ulid,
  },
  {
    kind: "UUIDv7",
    create: createUuidV7Generator,
    isValid: isUuidV7,
    timeMs: uuidV7TimeMs,
    single: vectors.uuid_v7,
    sequences: vectors.uuid_v7_sequences,
    invalid: vectors.not_uuid_v7,
  },
];

describe.each(kinds)("a $kind", ({ create, isValid, timeMs, single, sequences, invalid }) => {
  it.each(single)("of $time_ms and $random_hex is $text", ({ time_ms, random_hex, text }) => {
    expect(create(scripted([time_ms], [fromHex(random_hex)]))()).toBe(text);
    expect(isValid(text)).toBe(true);
    expect(timeMs(text)).toBe(time_ms);
  });

  it.each(sequences)("follows the last one when $name", ({ clock_ms, random_hex, texts }) => {
    const sources = scripted(clock_ms, random_hex.map(fromHex));
    const next = create(sources);
    expect(clock_ms.map(() => next())).toEqual(texts);
    expect(sources.drawsLeft()).toBe(0);
  });

  it.each(invalid)("is not %j", (text) => {
    expect(isValid(text)).toBe(false);
    expect(timeMs(text)).toBeUndefined();
  });

  it("is larger as text than every one before it from the same generator, whatever clock and chance do", () => {
    const met = { stoodStill: 0, ranBack: 0, carried: 0 };
    const step = fc.oneof(fc.constantFrom(0, 0, 1, 2, -1, -3), fc.integer({ min: -100_000, max: 2 ** 40 }));
    const clock = fc.array(step, { minLength: 20, maxLength: 40 }).map((steps) => {
      let nowMs = 100_000;
      return steps.map((stepMs) => (nowMs = Math.max(0, nowMs + stepMs)));
    });
    // Bytes of ones make the carry into the millisecond likely.
    const draw = fc.oneof(
      fc.uint8Array({ minLength: 10, maxLength: 10 }),
      fc.constantFrom("ffffffffffffffffffff", "fffffffffffffffffffe").map(fromHex),
    );
    fc.assert(
      fc.property(clock, fc.array(draw, { minLength: 40, maxLength: 40 }), (clockMs, draws) => {
        const next = create(scripted(clockMs, draws));
        let last = "";
        let lastMs = -1;
        for (const nowMs of clockMs) {
          const text = next();
          const textMs = timeMs(text) ?? Number.NaN;
          expect(isValid(text)).toBe(true);
          expect(text > last).toBe(true);
          expect(textMs).toBeGreaterThanOrEqual(Math.max(nowMs, lastMs));
          if (nowMs === lastMs) met.stoodStill += 1;
          if (nowMs < lastMs) met.ranBack += 1;
          if (textMs > Math.max(nowMs, lastMs)) met.carried += 1;
          last = text;
          lastMs = textMs;
        }
      }),
      { numRuns: 200 },
    );
    expect(Math.min(met.stoodStill, met.ranBack, met.carried)).toBeGreaterThan(100);
  });

  it("tells the time it was made at when the clock moved on", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: MAX_TIME_MS }),
        fc.uint8Array({ minLength: 10, maxLength: 10 }),
        (nowMs, draw) => {
          expect(timeMs(create(scripted([nowMs], [draw]))())).toBe(nowMs);
        },
      ),
    );
  });

  it("keeps all of the random bits that its form has room for", () => {
    const ofDraw = (draw: string) => create(scripted([0], [fromHex(draw)]))();
    const texts = new Set<string>();
    for (let bit = 0; bit < 80; bit += 1) texts.add(ofDraw((1n << BigInt(bit)).toString(16).padStart(20, "0")));
    // A UUIDv7 gives six of the 80 bits to version and variant: those draws all look like a draw of zeros.
    expect(texts.size).toBe(create === createUlidGenerator ? 80 : 75);
  });

  it("is unique among a hundred thousand of one millisecond", () => {
    const next = create({ nowMs: () => 1_700_000_000_000, randomBytes: (length) => new Uint8Array(length).fill(0xee) });
    expect(new Set(Array.from({ length: 100_000 }, next)).size).toBe(100_000);
  });

  it("cannot be made from a clock outside 48 bits, nor past the last id of the last millisecond", () => {
    for (const nowMs of [-1, MAX_TIME_MS + 1, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => create(scripted([nowMs], [new Uint8Array(10)]))()).toThrow(RangeError);
    }
    const next = create(scripted([MAX_TIME_MS, MAX_TIME_MS], [new Uint8Array(10).fill(0xff)]));
    next();
    expect(next).toThrow(RangeError);
  });

  it("cannot be made from too few random bytes", () => {
    expect(create({ nowMs: () => 1, randomBytes: () => new Uint8Array(9) })).toThrow(RangeError);
  });

  it("takes whole milliseconds from a clock with fractions", () => {
    expect(timeMs(create(scripted([1.9], [new Uint8Array(10)]))())).toBe(1);
  });
});

describe("two generators", () => {
  it("share nothing", () => {
    const sources: IdSources = { nowMs: () => 5, randomBytes: (length) => new Uint8Array(length) };
    const first = createUlidGenerator(sources);
    first();
    first();
    expect(createUlidGenerator(sources)()).toBe("00000000050000000000000000");
  });
});
