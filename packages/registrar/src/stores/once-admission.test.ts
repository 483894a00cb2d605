// Who has to be admitted: whatever would begin a new epoch, and nothing else.
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

test("what stands and what changes an epoch is not asked; what begins one is", async () => {
  expect(await admitNew(async () => stands, refuse)).toBe(answer);
  expect(await admitNew(async () => changes, refuse)).toBeUndefined();
  await expect(admitNew(async () => begins, refuse)).rejects.toThrow("refused");
  expect(
    await admitNew(
      async () => begins,
      async () => undefined,
    ),
  ).toBeUndefined();
});

test("a refusal is not heard where another try has begun it meanwhile", async () => {
  const seen = [begins, stands];
  expect(await admitNew(async () => seen.shift() ?? begins, refuse)).toBe(answer);
});
