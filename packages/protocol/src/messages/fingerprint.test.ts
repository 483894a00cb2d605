// Fingerprints against the published vectors, twice: by the source, and by a second way of computing them that is
// written down here from the contract alone. Random envelopes are in fingerprint-properties.test.ts.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type JsonValue, parseStrictJsonText } from "../json/strict-json.ts";
import { type AcceptRequest, readAcceptRequest } from "./accept-request.ts";
import { destinationKinds } from "./addresses.ts";
import { type EnvelopeVersion, envelopeVersions, type Priority, priorities } from "./envelope.ts";
import {
  fingerprint,
  fingerprintBytes,
  fingerprintPrefix,
  fingerprintPreimage,
  type Sha256,
  sameFingerprint,
} from "./fingerprint.ts";
import { limits } from "./limits.ts";

interface VectorRequest {
  envelope_version?: EnvelopeVersion;
  destination: { kind: "topic" | "dm" | "queue"; ref: string };
  reply_to_id?: string;
  priority?: Priority;
  meta_json?: string;
  body?: string;
  body_base64?: string;
}
interface Vector {
  name: string;
  request: VectorRequest;
  parts: string[];
  fingerprint: string;
  prefix: string;
  same_as?: string;
}

const { cases }: { cases: Vector[] } = JSON.parse(
  readFileSync(new URL("../../vectors/fingerprints.json", import.meta.url), "utf8"),
);

const sha256: Sha256 = {
  bytes: (data) => new Uint8Array(createHash("sha256").update(data).digest()),
  hex: (data) => createHash("sha256").update(data).digest("hex"),
};

function asAcceptRequest({ meta_json, ...rest }: VectorRequest): AcceptRequest {
  const meta = meta_json === undefined ? {} : { meta: parseStrictJsonText(meta_json, { maxDepth: limits.jsonDepth }) };
  return { client_message_id: "any", ...rest, ...meta } as AcceptRequest;
}

/** RFC 8785 in five lines: JSON.stringify already writes scalars as it asks, and default sort is by code units. */
function naiveCanonical(value: JsonValue): string {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(naiveCanonical).join(",")}]`;
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${naiveCanonical(value[key] as JsonValue)}`).join(",")}}`;
}

function naiveParts(request: VectorRequest): string[] {
  const body =
    request.body === undefined ? Buffer.from(request.body_base64 ?? "", "base64") : Buffer.from(request.body);
  const meta = request.meta_json === undefined ? "" : naiveCanonical(JSON.parse(request.meta_json));
  return [
    request.envelope_version ?? "1",
    request.destination.kind,
    request.destination.ref,
    request.reply_to_id ?? "",
    request.priority ?? "next",
    meta === "{}" ? "" : meta,
    createHash("sha256").update(body).digest("hex"),
  ];
}

function naiveFingerprint(request: VectorRequest): string {
  const hash = createHash("sha256");
  for (const [index, part] of naiveParts(request).entries()) {
    if (index > 0) hash.update(Uint8Array.of(0));
    hash.update(Buffer.from(part, "utf8"));
  }
  return hash.digest("hex");
}

describe("the published fingerprints", () => {
  it.each(cases)("by the source: $name", ({ request, parts, fingerprint: hex, prefix }) => {
    const { envelope } = readAcceptRequest(asAcceptRequest(request));
    expect(fingerprintPreimage(sha256, envelope)).toBe(parts.join("\0"));
    const bytes = fingerprint(sha256, envelope);
    expect(bytes).toHaveLength(fingerprintBytes);
    expect(Buffer.from(bytes).toString("hex")).toBe(hex);
    expect(fingerprintPrefix(bytes)).toBe(prefix);
  });

  it.each(cases)("by hand: $name", ({ request, parts, fingerprint: hex, prefix }) => {
    expect(naiveParts(request)).toEqual(parts);
    expect(naiveFingerprint(request)).toBe(hex);
    expect(prefix).toBe(hex.slice(0, 16));
  });

  it("are the same only where the vectors say so", () => {
    const owners = new Map<string, string>();
    for (const vector of cases) {
      if (vector.same_as === undefined) {
        expect(owners.get(vector.fingerprint), vector.name).toBeUndefined();
        owners.set(vector.fingerprint, vector.name);
      } else {
        expect(owners.get(vector.fingerprint), vector.name).toBe(vector.same_as);
      }
    }
  });

  it("cover every kind, every priority, both envelope versions, replies, meta, and bodies of both spellings", () => {
    const requests = cases.map((vector) => vector.request);
    expect(cases.length).toBeGreaterThanOrEqual(25);
    expect(new Set(cases.map((vector) => vector.name)).size).toBe(cases.length);
    expect(new Set(requests.map((request) => request.destination.kind))).toEqual(new Set(destinationKinds));
    expect(new Set(requests.flatMap((request) => request.priority ?? []))).toEqual(new Set(priorities));
    expect(new Set(requests.flatMap((request) => request.envelope_version ?? []))).toEqual(new Set(envelopeVersions));
    expect(requests.some((request) => request.reply_to_id !== undefined)).toBe(true);
    expect(requests.some((request) => request.meta_json?.includes("__proto__"))).toBe(true);
    expect(requests.some((request) => request.body === "")).toBe(true);
    expect(requests.some((request) => request.body_base64 === "")).toBe(true);
  });
});

describe("a fingerprint", () => {
  it("is shown as its first eight bytes in lower-case hex", () => {
    const bytes = Uint8Array.from({ length: 32 }, (_, at) => (at === 0 ? 0 : 256 - at));
    expect(fingerprintPrefix(bytes)).toBe("00fffefdfcfbfaf9");
  });

  it("is the same as another only if all bytes are", () => {
    const bytes = Uint8Array.from({ length: 32 }, (_, at) => at);
    expect(sameFingerprint(bytes, bytes.slice())).toBe(true);
    for (let at = 0; at < bytes.length; at++) {
      const other = bytes.slice();
      other[at] = (other[at] ?? 0) ^ 1;
      expect(sameFingerprint(bytes, other)).toBe(false);
    }
    expect(sameFingerprint(bytes, bytes.slice(0, 31))).toBe(false);
    expect(sameFingerprint(bytes.slice(0, 31), bytes)).toBe(false);
    expect(sameFingerprint(new Uint8Array(), bytes)).toBe(false);
  });
});
