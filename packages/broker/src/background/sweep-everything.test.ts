// One pass over all that a broker keeps, as steps that others may come between.
import { expect, test } from "vitest";
import { sweepEverything } from "./sweep-everything.ts";

function createPorts(sessionsPerStep: readonly number[]) {
  const asked: (string | undefined)[] = [];
  const messages = {
    store: {
      housekeeping: {
        meshes: async () => [],
        sweepMesh: async () => ({ counts: {}, more: false }),
        forgetIds: async () => ({ counts: {}, next: undefined }),
      },
      presence: { sweep: async () => 0 },
      sweepLimiter: async () => 0,
    },
    nowMs: () => 1_700_000_000_000,
    messageRetentionMs: undefined,
    dedupeRetentionMs: undefined,
  };
  const spaces = {
    sweepSessions: async (_: number, after: { readonly sessionId: string } | undefined) => {
      asked.push(after?.sessionId);
      const next = { meshId: "mesh-1", spaceId: "plan", sessionId: String(asked.length) };
      return { removed: sessionsPerStep[asked.length - 1] ?? 0, next, more: asked.length < sessionsPerStep.length };
    },
  };
  return { ports: { messages, spaces }, asked };
}

test("sessions of spaces go step by step, each from where the one before ended", async () => {
  const { ports, asked } = createPorts([64, 0, 3]);
  const seen: string[] = [];
  for await (const swept of sweepEverything(ports, { forgetting: true })) {
    if (swept.space_sessions !== undefined) seen.push(`${swept.space_sessions} after ${asked.length}`);
  }
  expect(seen).toEqual(["64 after 1", "0 after 2", "3 after 3"]);
  expect(asked).toEqual([undefined, "1", "2"]);
});

test("sessions are looked through where ids are, because finding them means reading all", async () => {
  const { ports, asked } = createPorts([64]);
  for await (const swept of sweepEverything(ports, { forgetting: false })) expect(swept.space_sessions).toBeUndefined();
  expect(asked).toEqual([]);
});
