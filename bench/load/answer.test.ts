import { describe, expect, it } from "vitest";
import { answerLength, hasStatus } from "./answer.ts";

const answer = (status: string, body: string) =>
  Buffer.from(`HTTP/1.1 ${status}\r\nContent-Length: ${body.length}\r\nKeep-Alive: timeout=72\r\n\r\n${body}`);

describe("an answer", () => {
  it("is as long as its head and the body that the head announces", () => {
    const whole = answer("202 Accepted", '{"status":"queued"}');
    expect(answerLength(whole)).toBe(whole.length);
    expect(answerLength(whole.subarray(0, -5))).toBe(whole.length);
    expect(answerLength(whole.subarray(0, 40))).toBeUndefined();
  });

  it("is what the caller wants with the status that it expects alone", () => {
    expect(hasStatus(answer("202 Accepted", "{}"), 202)).toBe(true);
    expect(hasStatus(answer("201 Created", "{}"), 201)).toBe(true);
    for (const status of ["200 OK", "429 Too Many Requests", "507 Insufficient Storage", "2020 No"]) {
      expect(hasStatus(answer(status, "{}"), 202)).toBe(false);
    }
  });

  it("that announces no length is never taken for a whole one", () => {
    const chunked = Buffer.from("HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n");
    expect(answerLength(chunked)).toBe(0);
  });
});
