// Which fault points a labelled transaction meets, and when.
import { describe, expect, test } from "vitest";
import { createCommitHooks, createSyncCommitHooks } from "./commit-hooks.ts";
import { failpointNames } from "./failpoint-names.ts";
import { createFailpoints, parseFailpoints } from "./failpoints.ts";
import type { PostgresTransaction } from "./postgres/postgres.ts";
import { createPostgresCommit } from "./postgres/postgres-commit.ts";

const failpoints = (text: string) => createFailpoints(parseFailpoints(text, failpointNames));

describe("fault points as hooks", () => {
  test("are hit by their own label, before or after as they say", async () => {
    const hooks = createCommitHooks(failpoints("accept.before_commit=error,once.after_commit=error"));
    await expect(hooks?.before("fence", "accept")).rejects.toThrow("accept.before_commit");
    await hooks?.after("fence", "accept");
    await hooks?.before("once");
    await expect(hooks?.after("once")).rejects.toThrow("once.after_commit");
  });

  test("count every transaction with their label once", () => {
    const hooks = createSyncCommitHooks(failpoints("outbox.before_commit@2=error"));
    hooks?.before("outbox");
    hooks?.before("inbox");
    expect(() => hooks?.before("outbox")).toThrow("outbox.before_commit");
    hooks?.before("outbox");
  });

  test("are nothing where none is set", () => {
    expect(createCommitHooks(failpoints(""))).toBeUndefined();
    expect(createSyncCommitHooks(failpoints(""))).toBeUndefined();
  });
});

describe("a labelled transaction on PostgreSQL", () => {
  function start(failing?: "before" | "after") {
    const seen: string[] = [];
    const hear = (when: "before" | "after") => (label: string) => {
      seen.push(`${when} ${label}`);
      if (when === failing) throw new Error(`made to fail ${when}`);
    };
    const postgres = {
      transaction: async <R>(body: (tx: PostgresTransaction) => Promise<R>): Promise<R> => {
        const result = await body({} as PostgresTransaction);
        seen.push("COMMIT");
        return result;
      },
    };
    const commit = createPostgresCommit(postgres, { before: hear("before"), after: hear("after") });
    const body = async () => {
      seen.push("body");
      return 7;
    };
    return { seen, work: commit.submit(body, "fence") };
  }

  test("is heard of before its COMMIT and before its caller", async () => {
    const { seen, work } = start();
    expect(await work).toBe(7);
    expect(seen).toEqual(["body", "before fence", "COMMIT", "after fence"]);
  });

  test("is not committed where a hook fails before, and is committed where one fails after", async () => {
    const before = start("before");
    await expect(before.work).rejects.toThrow("made to fail before");
    expect(before.seen).not.toContain("COMMIT");
    const after = start("after");
    await expect(after.work).rejects.toThrow("made to fail after");
    expect(after.seen).toContain("COMMIT");
  });
});
