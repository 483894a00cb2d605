// The catalogue as a whole, and the one error class with the one shape that it has on every boundary.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ErrorCode, errorCatalogue } from "./catalogue.ts";
import { isErrorBody, MeshError } from "./errors.ts";

const entries = Object.entries(errorCatalogue) as [ErrorCode, (typeof errorCatalogue)[ErrorCode]][];

describe("the error catalogue", () => {
  it.each(entries)("has a sound entry for %s", (code, { status, retryable, level, meaning }) => {
    expect(code).toMatch(/^[a-z]+[a-z0-9]*(_[a-z0-9]+)*$/);
    expect(Number.isInteger(status) && status >= 400 && status <= 599).toBe(true);
    expect(["debug", "info", "warn", "error"]).toContain(level);
    expect(meaning).toMatch(/\S\.$/);
    // A client that knows only the status must come to the same conclusion as one that reads `retryable`; the one
    // exception waits for the client itself, which has yet to send what the commit builds on.
    const passes = status >= 500 || status === 429 || status === 408 || code === "pending_dependency_error";
    expect(retryable).toBe(passes);
  });

  it("calls nothing that a caller did wrong an error of ours", () => {
    for (const [code, { status, level }] of entries) expect(level === "error" && status < 500, code).toBe(false);
  });

  it("has the codes and statuses that the contract names", () => {
    const named: [ErrorCode, number][] = [
      ["idempotency_key_ambiguous", 400],
      ["invalid_utf8", 400],
      ["unknown_field", 400],
      ["token_in_query", 400],
      ["not_subscribed", 403],
      ["destination_not_found", 404],
      ["idempotency_key_reused", 409],
      ["destination_ambiguous", 409],
      ["fenced", 409],
      ["lease_lost", 409],
      ["payload_too_large", 413],
      ["rate_limited", 429],
      ["daemon_busy", 429],
      ["limiter_unavailable", 503],
      ["insufficient_storage", 507],
      ["conflict_error", 409],
      ["dependency_rejected_error", 409],
      ["replay_mismatch_error", 409],
      ["local_seq_passed_error", 409],
      ["send_rejected_error", 409],
      ["pending_dependency_error", 422],
      ["basis_required_error", 422],
      ["patch_error", 422],
      ["session_revoked_error", 403],
      ["entity_not_found", 404],
    ];
    for (const [code, status] of named) expect(errorCatalogue[code].status, code).toBe(status);
  });
});

describe("a MeshError", () => {
  it.each(entries)(
    "for %s has the catalogue's status, retryable and level",
    (code, { status, retryable, level, name }) => {
      const error = new MeshError(code);
      expect(error).toBeInstanceOf(Error);
      expect(error).toMatchObject({ name: name ?? "MeshError", code, status, retryable, level });
    },
  );

  it("that the space's contract names has that name, in its body too, and its code in snake_case", () => {
    const names = entries.flatMap(([code, { name }]) => (name === undefined ? [] : [[code, name] as const]));
    expect(names.length).toBeGreaterThan(0);
    for (const [code, name] of names) {
      expect(code).toBe(name.replaceAll(/(?!^)[A-Z]/g, (letter) => `_${letter}`).toLowerCase());
      expect(JSON.stringify(new MeshError(code, "No.", { localSeq: 3 }).toBody())).toBe(
        `{"error":"${code}","name":"${name}","message":"No.","retryable":${errorCatalogue[code].retryable},"localSeq":3}`,
      );
    }
  });

  it("says what the catalogue says unless it is told better", () => {
    expect(new MeshError("fenced").message).toBe(errorCatalogue.fenced.meaning);
    expect(new MeshError("fenced", "Other words.").message).toBe("Other words.");
  });

  it("has a body of error, message, retryable and then its details", () => {
    const error = new MeshError("invalid_request", "Wrong.", { field: "to", limit: 3 });
    expect(JSON.stringify(error.toBody())).toBe(
      '{"error":"invalid_request","message":"Wrong.","retryable":false,"field":"to","limit":3}',
    );
    expect(JSON.stringify(new MeshError("busy", "Wait.").toBody())).toBe(
      '{"error":"busy","message":"Wait.","retryable":true}',
    );
  });

  it("never lets a detail replace what the catalogue fixes", () => {
    const details = { error: "ok", message: "All is well.", retryable: true, status: 200, extra: 1 };
    const error = new MeshError("forbidden", "No.", details);
    expect(error.toBody()).toEqual({ ...details, error: "forbidden", message: "No.", retryable: false });
    expect(error.status).toBe(403);
  });

  it("keeps its cause for the log and out of the body", () => {
    const cause = new Error("secret path");
    const error = new MeshError("internal", undefined, {}, cause);
    expect(error.cause).toBe(cause);
    expect(JSON.stringify(error.toBody())).not.toContain("secret");
    expect("cause" in new MeshError("internal")).toBe(false);
  });
});

describe("an error body", () => {
  it("is recognised whatever the code and details", () => {
    const code = fc.constantFrom(...entries.map(([name]) => name));
    fc.assert(
      fc.property(code, fc.string(), fc.dictionary(fc.string(), fc.jsonValue()), (name, message, details) => {
        const body = new MeshError(name, message, details).toBody();
        expect(isErrorBody(JSON.parse(JSON.stringify(body)))).toBe(true);
      }),
      { numRuns: 100 },
    );
  });

  it("is recognised with a code that this version does not know", () => {
    expect(isErrorBody({ error: "from_the_future", message: "Hm.", retryable: false })).toBe(true);
  });

  it.each([
    null,
    undefined,
    "error",
    1,
    [],
    {},
    { error: "x" },
    { message: "x" },
    { error: 1, message: "x" },
    { error: "x", message: null },
  ])("is not %j", (value) => {
    expect(isErrorBody(value)).toBe(false);
  });
});
