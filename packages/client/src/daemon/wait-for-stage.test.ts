import { expect, it } from "vitest";
import { DaemonUnreachable } from "./daemon-failures.ts";
import type { MessageFacts, MessageStateName } from "./report-bodies.ts";
import { judgeStage, waitForStage } from "./wait-for-stage.ts";

const facts = (state: MessageStateName, notes: MessageFacts["notes"] = []) => ({ state, notes }) as MessageFacts;
const noRecipients = [{ code: "no_recipients", text: "" }] as const;

it.each([
  ["queued", "not_yet", "not_yet"],
  ["inflight", "not_yet", "not_yet"],
  ["stored", "reached", "not_yet"],
  ["delivered", "reached", "reached"],
  ["read", "reached", "reached"],
  ["expired", "reached", "ended"],
  ["dead", "ended", "ended"],
  ["aborted", "ended", "ended"],
] as const)("%s: stored is %s, delivered is %s", (state, stored, delivered) => {
  expect(judgeStage(facts(state), "stored")).toBe(stored);
  expect(judgeStage(facts(state), "delivered")).toBe(delivered);
});

it("a stored message without recipients is never delivered", () => {
  expect(judgeStage(facts("stored", noRecipients), "delivered")).toBe("ended");
  expect(judgeStage(facts("stored", noRecipients), "stored")).toBe("reached");
});

it("asks until the stage is reached, also past a daemon that was away", async () => {
  const away = new DaemonUnreachable("away", { sent: false, timedOut: false, cause: undefined });
  const answers = [facts("queued"), away, facts("stored"), facts("delivered")];
  const ask = async () => {
    const next = answers.shift();
    if (next === undefined || next instanceof Error) throw next ?? new Error("asked too often");
    return { status: 200, body: next };
  };
  const waited = await waitForStage(ask, "delivered", { timeoutMs: 60_000 });
  expect(waited).toEqual({ outcome: "reached", message: facts("delivered") });
});

it("says how far it is when the time is over, or when the caller has enough", async () => {
  const ask = async () => ({ status: 200, body: facts("queued") });
  expect((await waitForStage(ask, "stored", { timeoutMs: 0 })).outcome).toBe("not_yet");
  const signal = AbortSignal.abort();
  expect((await waitForStage(ask, "stored", { timeoutMs: 60_000, signal })).outcome).toBe("not_yet");
});

it("throws what the daemon refuses, and that it is away where it never answered", async () => {
  const refusal = { error: "not_found", message: "no such message", retryable: false };
  const refused = waitForStage(async () => ({ status: 404, body: refusal }), "stored", { timeoutMs: 0 });
  await expect(refused).rejects.toMatchObject({ status: 404, body: refusal });
  const away = new DaemonUnreachable("away", { sent: false, timedOut: false, cause: undefined });
  await expect(waitForStage(async () => Promise.reject(away), "stored", { timeoutMs: 0 })).rejects.toBe(away);
});
