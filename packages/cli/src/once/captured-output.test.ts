// What is kept of a command's output: all of it where it is short, both ends of it where it is long, and never more
// than a result can hold.
import { onceLimits } from "@claudemesh/protocol/registrar/once-limits";
import { onceResultText } from "@claudemesh/protocol/registrar/once-values";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { capturedBytes, OutputCapture, outputBytes, outputFields } from "./captured-output.ts";

function capture(...chunks: readonly (string | Buffer)[]) {
  const output = new OutputCapture();
  for (const chunk of chunks) output.push(Buffer.from(chunk));
  return output.finish();
}

describe("output", () => {
  it("that is short is kept whole, however it came", () => {
    const whole = Buffer.from("ü".repeat(capturedBytes.head));
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: whole.length }), { maxLength: 8 }), (cuts) => {
        const bounds = [0, ...cuts.toSorted((left, right) => left - right), whole.length];
        const chunks = bounds.slice(1).map((end, index) => whole.subarray(bounds[index], end));
        expect(capture(...chunks)).toEqual({ bytes: whole, leftOutBytes: 0 });
      }),
    );
  });

  it("that is long has its beginning, a mark that counts what is left out, and its end", () => {
    const { bytes, leftOutBytes } = capture("first line\n", "x".repeat(1_000_000), "\nlast line\n");
    const text = bytes.toString();
    expect(text.startsWith("first line\nxxx")).toBe(true);
    expect(text.endsWith("xxx\nlast line\n")).toBe(true);
    expect(text).toContain(`\n[claudemesh: ${leftOutBytes} bytes are left out here]\n`);
    expect(leftOutBytes).toBe(1_000_022 - capturedBytes.head - capturedBytes.tail);
  });

  it("is cut between characters, not through one, wherever the cuts fall", () => {
    for (const character of ["ü", "€", "🚀"]) {
      for (let shift = 0; shift < 4; shift++) {
        const text = "x".repeat(shift) + character.repeat(20_000);
        const fields = outputFields("stdout", capture(text));
        const kept = String(fields.stdout).replace(/\n\[claudemesh: \d+ bytes are left out here\]\n/, "");
        expect(kept).toMatch(new RegExp(`^x{${shift}}(${character})+$`, "u"));
        expect(Buffer.byteLength(kept) + Number(fields.stdout_left_out_bytes)).toBe(Buffer.byteLength(text));
      }
    }
  });

  it("is the same bytes again, as text or as base64, when nothing was left out", () => {
    const kinds = { text: 0, base64: 0 };
    const anyBytes = fc.oneof(fc.uint8Array({ maxLength: 60 }), fc.string({ unit: "grapheme" }).map(Buffer.from));
    fc.assert(
      fc.property(anyBytes, (bytes) => {
        const fields = outputFields("stderr", capture(Buffer.from(bytes)));
        kinds[Object.hasOwn(fields, "stderr") ? "text" : "base64"] += 1;
        expect(outputBytes("stderr", fields)).toEqual(Buffer.from(bytes));
      }),
    );
    expect(Math.min(kinds.text, kinds.base64)).toBeGreaterThan(10);
  });

  it("of both streams together fits a result, whatever it is made of", () => {
    for (const piece of ["x", "\u0000", "\u001b[0m", "ü", '"\\', "\ufffd"]) {
      const output = capture(piece.repeat(50_000));
      const result = { exit_code: 255, ...outputFields("stdout", output), ...outputFields("stderr", output) };
      expect(Buffer.byteLength(onceResultText(result))).toBeLessThanOrEqual(onceLimits.resultBytes);
    }
    const noise = capture(Buffer.alloc(100_000, 0xff));
    const result = { exit_code: 255, ...outputFields("stdout", noise), ...outputFields("stderr", noise) };
    expect(Buffer.byteLength(onceResultText(result))).toBeLessThanOrEqual(onceLimits.resultBytes);
  });
});
