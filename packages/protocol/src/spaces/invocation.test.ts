// The exact bytes under a signature: the same for the same envelope, whatever the order of its keys.
import { expect, test } from "vitest";
import { type InvocationEnvelope, invocationBytes } from "./invocation.ts";

test("an envelope is signed as its label, 0x00 and its canonical JSON", () => {
  const envelope: InvocationEnvelope = {
    iss: "ab",
    cmd: "/memory/commit",
    sub: { space: "plan", mesh: "m1" },
    args: { sessionId: "s1", payloadHash: "00", localSeq: 3 },
  };
  expect(new TextDecoder().decode(invocationBytes(envelope))).toBe(
    'claudemesh-invocation-1\0{"args":{"localSeq":3,"payloadHash":"00","sessionId":"s1"},"cmd":"/memory/commit",' +
      '"iss":"ab","sub":{"mesh":"m1","space":"plan"}}',
  );
});
