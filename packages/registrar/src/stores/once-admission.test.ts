// Which calls have to be admitted: those that would begin a new epoch, and no other.
import type { OnceDecision } from "@claudemesh/protocol/registrar/once-state";
import { expect, test } from "vitest";
import { admitNew } from "./once-admission.ts";

const answer = { type: "unknown_epoch" } as const;
const next = {} as NonNullable<OnceDecision["next"]>;
const begins: OnceDecision = { answer, next, begins: true };
const changes: OnceDecision = { answer, next };
const stands: OnceDecision = { answer };
const refuse = async () => {
  throw new Error("refused");
};

test("a call that is answered or changes an epoch needs no admission; one that begins an epoch does", async () => {
  expect(await admitNew(async () => stands, refuse)).toEqual({ type: "answered", answer });
  expect(await admitNew(async () => changes, refuse)).toEqual({ type: "admitted" });
  await expect(admitNew(async () => begins, refuse)).rejects.toThrow("refused");
  expect(
    await admitNew(
      async () => begins,
      async () => undefined,
    ),
  ).toEqual({ type: "admitted" });
});

test("a refusal is ignored where another try has begun the epoch meanwhile", async () => {
  const seen = [begins, stands];
  expect(await admitNew(async () => seen.shift() ?? begins, refuse)).toEqual({ type: "answered", answer });
});
