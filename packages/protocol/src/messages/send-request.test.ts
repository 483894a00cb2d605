// Reading what a program asks of its daemon and what a broker is asked to accept: bodies in both spellings, defaults,
// and what each refuses. The parts they share (meta, mentions, addresses, ids) are tested beside those.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type AcceptRequest, acceptRequestSchema, readAcceptRequest, writeAcceptRequest } from "./accept-request.ts";
import { limits } from "./limits.ts";
import { readBody, readSendContent, sendRequestSchema } from "./send-request.ts";

const alice = "0a".repeat(32);
const bob = "0b".repeat(32);
const refusal = (code: string, field: string) =>
  expect.objectContaining({ name: "MeshError", code, details: expect.objectContaining({ field }) });

describe("a body", () => {
  it("is the UTF-8 of its text", () => {
    expect(readBody("aé🚀\0", undefined, "message")).toEqual(new TextEncoder().encode("aé🚀\0"));
    expect(readBody("", undefined, "message")).toEqual(new Uint8Array());
  });

  it("is any bytes in base64", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 600 }), (bytes) => {
        expect(readBody(undefined, Buffer.from(bytes).toString("base64"), "body")).toEqual(bytes);
      }),
      { numRuns: 200 },
    );
  });

  it("is given exactly once", () => {
    expect(() => readBody(undefined, undefined, "message")).toThrow(refusal("invalid_request", "message"));
    expect(() => readBody("a", "YQ==", "message")).toThrow(refusal("invalid_request", "message"));
    expect(() => readBody("", "", "body")).toThrow(refusal("invalid_request", "body"));
  });

  it.each(["YQ", "YQ=", "YR==", "YQ==\n", " YQ==", "Y Q==", "_-__", "YQ==YQ==", "é"])(
    "is refused in base64 that has another spelling: %j",
    (base64) => {
      expect(() => readBody(undefined, base64, "message")).toThrow(refusal("invalid_request", "message_base64"));
    },
  );

  it.each(["\ud800", "a\udc00", "\udc00\ud800"])("is refused with half a surrogate pair: %j", (text) => {
    expect(() => readBody(text, undefined, "message")).toThrow(refusal("lone_surrogate", "message"));
  });

  it("differs where the text differs, for any two texts that are accepted", () => {
    const text = fc.array(fc.constantFrom("a", "\ufffd", "\ud800", "\udc00", "\0"), { maxLength: 3 });
    let accepted = 0;
    const read = (parts: string[]) => {
      try {
        return Buffer.from(readBody(parts.join(""), undefined, "message")).toString("hex");
      } catch {
        return undefined;
      }
    };
    fc.assert(
      fc.property(text, text, (left, right) => {
        const bodies = [read(left), read(right)];
        if (bodies.includes(undefined)) return;
        accepted += 1;
        expect(bodies[0] === bodies[1]).toBe(left.join("") === right.join(""));
      }),
      { numRuns: 1000 },
    );
    expect(accepted).toBeGreaterThan(100);
  });
});

describe("a send", () => {
  it("has priority next, no meta and no reply unless it says so", () => {
    expect(readSendContent({ message: "hello" })).toEqual({
      body: new TextEncoder().encode("hello"),
      priority: "next",
      canonicalMeta: "",
      replyToId: undefined,
    });
  });

  it("keeps what it says", () => {
    const content = readSendContent({
      message_base64: "AP8=",
      priority: "now",
      meta: { b: 1, a: 2 },
      reply_to_id: "r-1",
    });
    expect(content).toEqual({
      body: Uint8Array.of(0, 255),
      priority: "now",
      canonicalMeta: '{"a":2,"b":1}',
      replyToId: "r-1",
    });
  });

  it("is refused for a bad reply, a bad meta or bad mentions", () => {
    expect(() => readSendContent({ message: "x", reply_to_id: "" })).toThrow(refusal("invalid_request", "reply_to_id"));
    expect(() => readSendContent({ message: "x", meta: { a: "\0" } })).toThrow(refusal("nul_in_field", "meta"));
    expect(() => readSendContent({ message: "x", meta: { mentions: [bob, alice] } })).toThrow(
      refusal("invalid_mentions", "meta.mentions"),
    );
  });

  it("has exactly the fields of the contract", () => {
    expect(Object.keys(sendRequestSchema.properties).toSorted()).toEqual(
      ["client_message_id", "message", "message_base64", "meta", "priority", "reply_to_id", "to"].toSorted(),
    );
    expect(sendRequestSchema.required).toEqual(["to"]);
    expect(sendRequestSchema.additionalProperties).toBe(false);
  });
});

describe("an accept", () => {
  const minimal: AcceptRequest = {
    client_message_id: "id-1",
    destination: { kind: "topic", ref: "builds" },
    body: "x",
  };

  it("has envelope version 1 and priority next unless it says so", () => {
    expect(readAcceptRequest(minimal)).toEqual({
      clientMessageId: "id-1",
      envelope: {
        version: "1",
        destination: { kind: "topic", ref: "builds" },
        replyToId: undefined,
        priority: "next",
        canonicalMeta: "",
        body: new TextEncoder().encode("x"),
      },
      mentions: [],
    });
  });

  it("tells whom it mentions", () => {
    const read = readAcceptRequest({ ...minimal, meta: { mentions: [alice, bob] } });
    expect(read.mentions).toEqual([alice, bob]);
    expect(read.envelope.canonicalMeta).toContain(alice);
  });

  it("may be sealed only as a direct message", () => {
    const dm: AcceptRequest = {
      client_message_id: "id-1",
      destination: { kind: "dm", ref: alice },
      body_base64: "AAAA",
      envelope_version: "2",
    };
    for (const envelope_version of ["2", "3"] as const) {
      expect(readAcceptRequest({ ...dm, envelope_version }).envelope.version).toBe(envelope_version);
      for (const kind of ["topic", "queue"] as const) {
        expect(() => readAcceptRequest({ ...dm, envelope_version, destination: { kind, ref: "builds" } })).toThrow(
          refusal("invalid_request", "envelope_version"),
        );
      }
    }
  });

  it("of version 3 has its meta inside the box and none beside it", () => {
    const dm = { client_message_id: "id-1", destination: { kind: "dm", ref: alice } as const, body_base64: "AAAA" };
    for (const meta of [{}, { a: 1 }]) {
      expect(() => readAcceptRequest({ ...dm, envelope_version: "3", meta })).toThrow(
        refusal("invalid_request", "meta"),
      );
      expect(readAcceptRequest({ ...dm, envelope_version: "2", meta }).envelope.version).toBe("2");
    }
  });

  it("is written so that it reads as the same envelope, whatever its bytes are", () => {
    const dm = { kind: "dm", ref: alice } as const;
    const common = { priority: "low", replyToId: "b-1" } as const;
    const bodies = [new Uint8Array(), Uint8Array.of(0xff, 0), new TextEncoder().encode("é\0"), new Uint8Array(200_000)];
    for (const body of bodies) {
      for (const version of ["1", "2", "3"] as const) {
        const canonicalMeta = version === "3" ? "" : '{"n":100000000000000000000}';
        const envelope = { ...common, version, destination: dm, canonicalMeta, body };
        expect(readAcceptRequest(writeAcceptRequest("id-1", envelope)).envelope).toEqual(envelope);
      }
    }
  });

  it("is refused for a bad id, destination, reply, meta or body", () => {
    expect(() => readAcceptRequest({ ...minimal, client_message_id: "a b" })).toThrow(
      expect.objectContaining({ code: "invalid_client_message_id" }),
    );
    expect(() => readAcceptRequest({ ...minimal, destination: { kind: "dm", ref: "alice" } })).toThrow(
      refusal("invalid_address", "destination.ref"),
    );
    expect(() => readAcceptRequest({ ...minimal, reply_to_id: "a\0" })).toThrow(refusal("nul_in_field", "reply_to_id"));
    expect(() => readAcceptRequest({ ...minimal, meta: { "\0": 1 } })).toThrow(refusal("nul_in_field", "meta"));
    expect(() => readAcceptRequest({ ...minimal, body_base64: "AAAA" })).toThrow(refusal("invalid_request", "body"));
  });

  it("reads a body above the default limit, because a committed retry is answered before any limit", () => {
    const body = "x".repeat(limits.inlineBytes + 1);
    expect(readAcceptRequest({ ...minimal, body }).envelope.body).toHaveLength(limits.inlineBytes + 1);
  });

  it("has exactly the fields of the contract", () => {
    const fields = ["body", "body_base64", "client_message_id", "destination", "envelope_version", "meta", "priority"];
    expect(Object.keys(acceptRequestSchema.properties).toSorted()).toEqual([...fields, "reply_to_id"].toSorted());
    expect(acceptRequestSchema.required).toEqual(["client_message_id", "destination"]);
  });
});
