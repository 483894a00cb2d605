// What a daemon makes of a broker's announcement: the published vectors, and whatever a broker of ours announces.
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type AnnouncedFeatures,
  announceFeatures,
  closeCodes,
  connectionPolicies,
  type DedupeParameters,
  dedupeRetentionDaysFloor,
  type NegotiatedFeatures,
  negotiate,
} from "./features.ts";

interface Vectors {
  close_codes: Record<string, number>;
  accepted: {
    name: string;
    announced: AnnouncedFeatures;
    features: { dedupe: DedupeParameters; inline_bytes: number; connection_policy: string };
    /** How many parameters have their defaults because they made no sense. */
    defaulted?: number;
  }[];
  refused: { name: string; announced: AnnouncedFeatures; error: string; close_code: number; feature: string }[];
}

const vectors: Vectors = JSON.parse(readFileSync(new URL("../../vectors/features.json", import.meta.url), "utf8"));

describe("an announcement", () => {
  it.each(vectors.accepted)("is accepted: $name", ({ announced, features, defaulted = 0 }) => {
    expect(negotiate(announced)).toEqual({
      defaulted: Array.from({ length: defaulted }, () => expect.stringContaining("is assumed")),
      ok: true,
      features: {
        dedupe: features.dedupe,
        inlineBytes: features.inline_bytes,
        connectionPolicy: features.connection_policy,
      },
    });
  });

  it.each(vectors.refused)("is refused with $close_code: $name", ({ announced, error, close_code, feature }) => {
    const negotiation = negotiate(announced);
    if (negotiation.ok) throw new Error("the announcement was accepted");
    expect(negotiation).toMatchObject({ code: error, feature });
    expect(negotiation.detail).not.toBe("");
    expect(closeCodes[negotiation.code]).toBe(close_code);
  });

  it("meets all three failures in the vectors", () => {
    expect(new Set(vectors.refused.map((vector) => vector.close_code))).toEqual(new Set([4010, 4011, 4012]));
  });
});

describe("the close codes", () => {
  it("are the published ones, each with one meaning", () => {
    expect(closeCodes).toEqual(vectors.close_codes);
    expect(new Set(Object.values(closeCodes)).size).toBe(Object.keys(closeCodes).length);
  });

  it("lie in the range that is an application's own", () => {
    for (const [name, code] of Object.entries(closeCodes)) {
      expect(code >= 4000 && code <= 4999, name).toBe(true);
    }
  });
});

const dedupe: fc.Arbitrary<DedupeParameters> = fc.oneof(
  fc.constant<DedupeParameters>({ mode: "permanent" }),
  fc.record({
    mode: fc.constant("retention_scoped" as const),
    dedupe_retention_days: fc.integer({ min: dedupeRetentionDaysFloor, max: 100_000 }),
  }),
);
const features: fc.Arbitrary<NegotiatedFeatures> = fc.record({
  dedupe,
  inlineBytes: fc.integer({ min: 1024, max: 1_048_576 }),
  connectionPolicy: fc.constantFrom(...connectionPolicies),
});

describe("any features that a broker of ours has", () => {
  it("are negotiated as they were announced", () => {
    fc.assert(
      fc.property(features, (it) => {
        expect(negotiate(JSON.parse(JSON.stringify(announceFeatures(it))))).toEqual({
          ok: true,
          features: it,
          defaulted: [],
        });
      }),
      { numRuns: 200 },
    );
  });

  it("are negotiated alike with features and parameters beside them that are not known yet", () => {
    const unknown = fc.dictionary(fc.stringMatching(/^x_[a-z]{1,8}$/), fc.jsonValue(), { maxKeys: 3 });
    fc.assert(
      fc.property(features, unknown, unknown, (it, parameters, others) => {
        const announced = Object.entries(announceFeatures(it)).map(([name, known]) => [
          name,
          { ...known, ...parameters },
        ]);
        const extended = { ...others, ...Object.fromEntries(announced) } as AnnouncedFeatures;
        expect(negotiate(extended)).toEqual({ ok: true, features: it, defaulted: [] });
      }),
      { numRuns: 200 },
    );
  });

  it("are refused once a feature is missing", () => {
    fc.assert(
      fc.property(features, fc.nat(), (it, seed) => {
        const announced = Object.entries(announceFeatures(it));
        const [missing] = announced[seed % announced.length] ?? [];
        const rest = Object.fromEntries(announced.filter(([name]) => name !== missing));
        expect(negotiate(rest)).toMatchObject({ ok: false, code: "feature_unavailable", feature: missing });
      }),
      { numRuns: 100 },
    );
  });

  it("are refused below the floor of seven days, whatever the number", () => {
    expect(dedupeRetentionDaysFloor).toBe(7);
    fc.assert(
      fc.property(features, fc.integer({ min: -10, max: 6 }), (it, days) => {
        const short = { ...it, dedupe: { mode: "retention_scoped" as const, dedupe_retention_days: days } };
        expect(negotiate(announceFeatures(short))).toMatchObject({
          ok: false,
          code: "feature_param_below_floor",
          feature: "client_message_id_dedupe",
        });
      }),
      { numRuns: 100 },
    );
  });
});
