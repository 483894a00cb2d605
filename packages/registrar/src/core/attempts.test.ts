// Many retries that are assigned at once get the same rows as one after the other.
import fc from "fast-check";
import { expect, test } from "vitest";
import { assignRows, attemptsByName, rowOfAttempt } from "./attempts.ts";

const retry = (logicalRequestKey: string, attempt: number, tries: number) => ({
  meshId: "m",
  logicalRequestKey,
  attemptId: `attempt ${attempt}`,
  memberPubkey: "p",
  tries,
  atMs: attempt,
});

test("assigning retries together adds to the same rows as assigning them one by one, each row once", () => {
  const someRetry = fc
    .tuple(fc.constantFrom("a", "b"), fc.nat(2 * attemptsByName), fc.integer({ min: 1, max: 5 }))
    .map(([key, attempt, tries]) => retry(key, attempt, tries));
  fc.assert(
    fc.property(fc.array(someRetry, { maxLength: 300, size: "max" }), fc.nat(300), (retries, split) => {
      const stored = new Map<string, { key: string; seq: number; attemptId: string; tries: number }>();
      for (const each of retries) {
        const rows = [...stored.values()].filter(({ key }) => key === each.logicalRequestKey);
        const { seq, attemptId } = rowOfAttempt(rows, each.attemptId);
        const id = `${each.logicalRequestKey}/${seq}`;
        const tries = each.tries + (stored.get(id)?.tries ?? 0);
        stored.set(id, { key: each.logicalRequestKey, seq, attemptId, tries });
      }
      // In two batches, the second over what the first has left.
      const added = new Map<string, { meshId: string; logicalRequestKey: string; seq: number; attemptId: string }>();
      const tries = new Map<string, number>();
      for (const batch of [retries.slice(0, split), retries.slice(split)]) {
        const assigned = assignRows([...added.values()], batch);
        const ids = assigned.map(({ logicalRequestKey, seq }) => `${logicalRequestKey}/${seq}`);
        expect(new Set(ids).size).toBe(assigned.length);
        for (const row of assigned) {
          const id = `${row.logicalRequestKey}/${row.seq}`;
          if (!added.has(id)) added.set(id, row);
          tries.set(id, (tries.get(id) ?? 0) + row.tries);
        }
      }
      const expected = [...stored].map(([id, row]) => [id, row.attemptId, row.tries]);
      const found = [...added].map(([id, row]) => [id, row.attemptId, tries.get(id)]);
      expect(found.sort()).toEqual(expected.sort());
    }),
  );
});
