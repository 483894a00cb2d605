// When an accept's COMMIT is sent, and which answer each caller gets, on a PostgreSQL whose answers the test holds back.

import type { CommitHooks } from "@claudemesh/storage/commit-hooks";
import { StorageError } from "@claudemesh/storage/errors";
import type { Postgres, PostgresTransaction } from "@claudemesh/storage/postgres";
import { expect, test } from "vitest";
import type { OfferedSend } from "../../ports.ts";
import { AcceptBatches } from "./accept-batches.ts";

const send: OfferedSend = {
  meshId: "01890000-0000-7000-8000-000000000001",
  senderPubkey: "a".repeat(64),
  clientMessageId: "m1",
  brokerMessageId: "01890000-0000-7000-8000-000000000002",
  fingerprint: new Uint8Array(32),
  envelope: {
    version: "1",
    destination: { kind: "dm", ref: "b".repeat(64) },
    replyToId: undefined,
    priority: "next",
    canonicalMeta: "",
    body: new Uint8Array(1),
  },
  mentions: [],
  acceptedAtMs: 1,
  isOutdated: () => false,
  expiresAtMs: undefined,
};

/** Answers no statement before the test lets it, and notes the statements that it got. Claims of free ids may find one taken. */
function startHeld(hooks?: CommitHooks, taken: "none" | "one" = "none") {
  const written = Promise.withResolvers<unknown[]>();
  const seen: string[] = [];
  const query = async (_text: string, _values: unknown, name: string): Promise<unknown[]> => {
    seen.push(name);
    return written.promise;
  };
  const execute = async (text: string, values: unknown, name: string) => (await query(text, values, name)).length;
  const commits = Promise.withResolvers<void>();
  const postgres: Pick<Postgres, "transaction"> = {
    transaction: async (body) => {
      const result = await body({ query, execute } as unknown as PostgresTransaction);
      seen.push("COMMIT");
      commits.resolve();
      await written.promise;
      if (taken === "one" && seen.includes("claim_free") && !seen.includes("claim_contested")) {
        throw new StorageError("constraint", "duplicate key", { constraint: "unique" });
      }
      return result;
    },
  };
  const batches = new AcceptBatches(postgres, hooks);
  const answer = () => written.resolve([{ refusal: null, history_id: 7, audience: null }]);
  return { batches, seen, commits: commits.promise, answer };
}

test("claims leave first, and COMMIT behind the last statement without waiting for any answer", async () => {
  const { batches, seen, commits, answer } = startHeld();
  const accepting = batches.accept(send);
  await commits;
  expect(seen).toEqual(["claim_free", "lock_mesh", "write_free", "COMMIT"]);
  answer();
  expect(await accepting).toMatchObject({ result: { type: "accepted", historyId: 7 } });
});

test("hooks hear before COMMIT, after the answer to the last statement, and again when it is committed", async () => {
  const { batches, seen, answer } = startHeld({
    before: () => void seen.push("heard"),
    after: () => void seen.push("over"),
  });
  const accepting = batches.accept(send);
  await expect.poll(() => seen).toContain("write_free");
  answer();
  await accepting;
  expect(seen).toEqual(["claim_free", "lock_mesh", "write_free", "heard", "COMMIT", "over"]);
});

test("where an id was taken since its look-up the same batch asks again, id by id", async () => {
  const { batches, seen, answer } = startHeld(undefined, "one");
  answer();
  expect(await batches.accept(send)).toMatchObject({ result: { type: "accepted", historyId: 7 } });
  expect(seen).toEqual([
    ...["claim_free", "lock_mesh", "write_free", "COMMIT"],
    ...["claim_contested", "lock_mesh", "write_contested", "COMMIT"],
  ]);
});
