// The look-up before a commit's sends are prepared, while the same commit is being decided elsewhere.
import { expect, test } from "vitest";
import { hashToken } from "../../core/session.ts";
import { writeAcceptedResult } from "../../core/verdict.ts";
import { runAsync, waitFor } from "../../ports/flow.ts";
import type { SessionRow, VerdictRow } from "../../ports/rows.ts";
import type { SpaceView } from "../../ports.ts";
import { fingerprintOf } from "./record.ts";
import { lookUpWrite, type Writer } from "./replay.ts";

test("a commit that is decided between two looks is answered, and never taken for passed over (SPC-1)", async () => {
  const fingerprint = fingerprintOf("payload");
  const writer: Writer = {
    memberPubkey: "alice",
    sessionId: "s1",
    sessionToken: "token",
    localSeq: 1,
    fingerprint,
    nowMs: 1,
  };
  const verdict: VerdictRow = {
    sessionId: "s1",
    localSeq: 1,
    memberPubkey: "alice",
    fingerprint,
    branch: "",
    seq: 7,
    result: writeAcceptedResult([]),
    decidedAtMs: 1,
  };
  const tokenHash = hashToken("token");
  let isDecided = false;
  // It is decided while the question about the session is on its way.
  const session = async (): Promise<SessionRow> => {
    await Promise.resolve();
    isDecided = true;
    return { sessionId: "s1", memberPubkey: "alice", epoch: 1, tokenHash, lastLocalSeq: 1, usedAtMs: 1 };
  };
  const space = { spaceId: "plan", signedWrites: "optional", lastSeq: 7, createdBy: "alice", createdAtMs: 1 } as const;
  const view: Pick<SpaceView, "findSpace" | "findSession" | "findVerdicts"> = {
    findSpace: () => waitFor(Promise.resolve(space)),
    findSession: () => waitFor(session()),
    findVerdicts: () => waitFor(Promise.resolve(isDecided ? [verdict] : [])),
  };
  expect(await runAsync(lookUpWrite(view, writer))).toMatchObject({ type: "accepted", seq: 7, replayed: true });
});
