// The inside of a box against the published vectors, and over random contents: what is written is read back, whatever is
// changed is noticed, and lengths tell no more than a step.
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeHex, encodeHex } from "../encoding/hex.ts";
import type { JsonValue } from "../json/strict-json.ts";
import { type Meta, type Priority, priorities, readMeta } from "./envelope.ts";
import { limits } from "./limits.ts";
import {
  type BrokerLabels,
  encodeSealedContent,
  findRelabelled,
  paddedLength,
  readSealedContent,
  type SealedContent,
  sealOverheadBytes,
} from "./sealed-content.ts";

type Vectors = {
  readonly members: readonly { readonly name: string; readonly ed25519: { readonly public_key: string } }[];
  readonly version_3: {
    readonly steps: readonly (readonly [number, number])[];
    readonly cases: readonly {
      readonly name: string;
      readonly sender: string;
      readonly recipient: string;
      readonly client_message_id: string;
      readonly reply_to_id?: string;
      readonly priority?: Priority;
      readonly from_agent?: string;
      readonly to_agent?: string;
      readonly meta?: string;
      readonly body: string;
      readonly inside: string;
      readonly sealed: string;
    }[];
  };
};

const vectors = JSON.parse(readFileSync(new URL("../../vectors/sealing.json", import.meta.url), "utf8")) as Vectors;

const keyOf = (name: string) => vectors.members.find((member) => member.name === name)?.ed25519.public_key ?? "";
const bytesOf = (hex: string) => decodeHex(hex) ?? new Uint8Array();

function contentOf(vector: Vectors["version_3"]["cases"][number]): SealedContent {
  return {
    sender: keyOf(vector.sender),
    recipient: keyOf(vector.recipient),
    clientMessageId: vector.client_message_id,
    replyToId: vector.reply_to_id,
    priority: vector.priority ?? "next",
    fromAgent: vector.from_agent,
    toAgent: vector.to_agent,
    canonicalMeta: vector.meta ?? "",
    body: bytesOf(vector.body),
  };
}

const publicKey = fc.uint8Array({ minLength: 32, maxLength: 32 }).map(encodeHex);
const printable = fc.string({
  minLength: 1,
  maxLength: 128,
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
});
const name = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/);
const meta = fc
  .dictionary(fc.string({ unit: "grapheme" }), fc.jsonValue())
  .filter((value) => !("mentions" in value) && !JSON.stringify(value).includes("\\u0000"))
  .map((value) => readMeta(value as unknown as Meta));
const content: fc.Arbitrary<SealedContent> = fc.record({
  sender: publicKey,
  recipient: publicKey,
  clientMessageId: printable,
  replyToId: fc.option(printable, { nil: undefined }),
  priority: fc.constantFrom(...priorities),
  fromAgent: fc.option(name, { nil: undefined }),
  toAgent: fc.option(name, { nil: undefined }),
  canonicalMeta: meta,
  body: fc.uint8Array({ maxLength: 2_000 }),
});

describe("the inside of a box", () => {
  it.each(vectors.version_3.cases.map((vector) => [vector.name, vector] as const))(
    "is as published: %s",
    (_, vector) => {
      const { bytes, headLength } = encodeSealedContent(contentOf(vector));
      expect(encodeHex(bytes)).toBe(vector.inside);
      expect(readSealedContent(bytes)).toEqual(contentOf(vector));
      expect(bytes.length + sealOverheadBytes).toBe(vector.sealed.length / 2);
      expect(encodeHex(bytes.subarray(headLength + 4, headLength + 4 + vector.body.length / 2))).toBe(vector.body);
    },
  );

  it("reads back as what was written, and the same content has the same bytes in any memory", () => {
    fc.assert(
      fc.property(content, (written) => {
        const { bytes } = encodeSealedContent(written);
        expect(readSealedContent(bytes)).toEqual(written);
        const used = encodeSealedContent(written, (length) => new Uint8Array(length).fill(0xff)).bytes;
        expect(used).toEqual(bytes);
      }),
    );
  });

  it("differs where any one field does, before the body begins unless it is the body", () => {
    let compared = 0;
    fc.assert(
      fc.property(content, content, (one, other) => {
        const base = encodeSealedContent(one);
        for (const field of Object.keys(one) as (keyof SealedContent)[]) {
          const changed = { ...one, [field]: other[field] };
          if (JSON.stringify(changed) === JSON.stringify(one)) continue;
          compared++;
          const { bytes, headLength } = encodeSealedContent(changed);
          expect(bytes).not.toEqual(base.bytes);
          const heads = [base.bytes.subarray(0, base.headLength), bytes.subarray(0, headLength)].map(encodeHex);
          expect(heads[0] === heads[1]).toBe(field === "body");
        }
      }),
    );
    expect(compared).toBeGreaterThan(500);
  });

  it("is not read with a field too many or too few, a field that no sender may write, or lengths that lead outside", () => {
    const sound = contentOf(vectors.version_3.cases[4] as Vectors["version_3"]["cases"][number]);
    expect(readSealedContent(encodeSealedContent(sound).bytes)).toEqual(sound);
    const deep = `{"a":${"[".repeat(limits.jsonDepth)}${"]".repeat(limits.jsonDepth)}}`;
    const wrong: Partial<Record<keyof SealedContent, unknown>>[] = [
      { sender: "AB".repeat(32) },
      { recipient: sound.recipient.slice(1) },
      { clientMessageId: "" },
      { clientMessageId: "a b" },
      { clientMessageId: "a\0b" },
      { replyToId: "é" },
      { priority: "urgent" },
      { fromAgent: "-x" },
      { toAgent: "a/b" },
      { canonicalMeta: "{}" },
      { canonicalMeta: '{ "a":1}' },
      { canonicalMeta: '{"b":1,"a":2}' },
      { canonicalMeta: "[1]" },
      { canonicalMeta: "{" },
      { canonicalMeta: '{"mentions":["x"]}' },
      { canonicalMeta: '{"a":"\\u0000"}' },
      { canonicalMeta: `{"a":"${"x".repeat(limits.metaBytes)}"}` },
      { canonicalMeta: deep },
    ];
    for (const change of wrong) {
      const { bytes } = encodeSealedContent({ ...sound, ...change } as SealedContent);
      expect(readSealedContent(bytes), JSON.stringify(change).slice(0, 60)).toBeUndefined();
    }
    const { bytes, headLength } = encodeSealedContent(sound);
    for (const at of [0, headLength]) {
      const changed = bytes.slice();
      changed[at] = 0xff;
      expect(readSealedContent(changed)).toBeUndefined();
    }
    for (const length of [0, 3, 4, headLength, headLength + 3]) {
      expect(readSealedContent(bytes.subarray(0, length))).toBeUndefined();
    }
    const notText = bytes.slice();
    notText[4] = 0xff;
    expect(readSealedContent(notText)).toBeUndefined();
  });

  it("never throws, whatever the bytes are", () => {
    fc.assert(
      fc.property(content, fc.nat(), fc.nat(255), fc.nat(), (written, at, byte, cut) => {
        const bytes = encodeSealedContent(written).bytes.slice();
        bytes[at % bytes.length] = byte;
        readSealedContent(bytes);
        readSealedContent(bytes.subarray(0, cut % (bytes.length + 1)));
      }),
    );
    fc.assert(fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => void readSealedContent(bytes)));
  });
});

describe("the length of a sealed body", () => {
  it.each(vectors.version_3.steps)("%i becomes %i", (length, step) => {
    expect(paddedLength(length)).toBe(step);
  });

  it("is one of few, is never below what is inside, and never more than an eighth above", () => {
    const steps = new Set<number>();
    for (let length = 1; length <= limits.inlineBytesMax; length += length < 2_000 ? 1 : 997) {
      const step = paddedLength(length);
      steps.add(step);
      expect(step).toBeGreaterThanOrEqual(length);
      if (length >= 256) expect(step).toBeLessThanOrEqual(length * 1.126);
      expect(paddedLength(step)).toBe(step);
    }
    expect(steps.size).toBeLessThanOrEqual(73);
  });
});

describe("what the broker says about a box", () => {
  const labelsOf = (inside: SealedContent): BrokerLabels => ({ ...inside, meta: null });

  it("is believed where it is what the box says", () => {
    fc.assert(fc.property(content, (inside) => findRelabelled(inside, labelsOf(inside)) === undefined));
  });

  it("is found out where any one label differs", () => {
    const fields = ["sender", "recipient", "clientMessageId", "replyToId", "priority"] as const;
    let compared = 0;
    fc.assert(
      fc.property(content, content, fc.constantFrom(...fields), (inside, other, field) => {
        fc.pre(inside[field] !== other[field]);
        compared++;
        expect(findRelabelled(inside, { ...labelsOf(inside), [field]: other[field] })).toBe(field);
      }),
    );
    expect(compared).toBeGreaterThanOrEqual(100);
    const inside = contentOf(vectors.version_3.cases[4] as Vectors["version_3"]["cases"][number]);
    const meta = JSON.parse(inside.canonicalMeta) as Record<string, JsonValue>;
    for (const given of [{}, meta]) expect(findRelabelled(inside, { ...labelsOf(inside), meta: given })).toBe("meta");
  });
});
