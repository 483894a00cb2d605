// What a miss shows the reader of a report, and what it hides.
import { expect, test } from "vitest";
import { Miss } from "./endings.ts";

test("a miss shows request and answer without the tokens and nonces in them", () => {
  const request = 'POST /commits\n{"sessionId":"s-1","sessionToken":"cms_secret","commit":{"localSeq":1}}';
  const got = 'status 201 {"authorization_nonce":"cmn_secret","not_after":5}';
  const { facts, message } = new Miss({ expected: "status 200", got, request });
  expect(facts.request).toBe('POST /commits\n{"sessionId":"s-1","sessionToken":"…","commit":{"localSeq":1}}');
  expect(facts.got).toBe('status 201 {"authorization_nonce":"…","not_after":5}');
  expect(message).not.toContain("secret");
  const cut = new Miss({ expected: "x", got: '{"sessionToken":"cms_secr', request: "" });
  expect(cut.facts.got).toBe('{"sessionToken":"…"');
});
