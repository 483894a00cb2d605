// What failures of the store are called, in the answer and in the log: a store that is away, one that refuses what it is
// asked, and a mention index that is not as it should be are three things.
import { setImmediate as turn } from "node:timers/promises";
import { FairTurns } from "@claudemesh/spaces/services/sync/fair-turns";
import { StorageError } from "@claudemesh/storage/errors";
import { describe, expect, test } from "vitest";
import type { BrokerContext } from "../context.ts";
import type { Caller } from "./handler.ts";
import { createOperationRunner } from "./run-operation.ts";

/** A broker whose store fails like this, whatever it is asked. */
async function failWith(error: unknown) {
  const logged: object[] = [];
  const note = (fields: object, meaning: string) => void logged.push({ ...fields, meaning });
  const broker = {
    members: { findMember: () => Promise.reject(error) },
    log: { error: note, warn: note, info: note, debug: note },
    metrics: { answered: () => undefined },
    watchers: { nextTurn: (_meshId: string, _pubkey: string, run: () => void) => run() },
  } as unknown as BrokerContext;
  const run = createOperationRunner(broker);
  const caller = { member: { meshId: "m", pubkey: "p", role: "owner" }, kind: "client" } as unknown as Caller;
  const { status, body } = await run("invite.list", caller, {});
  return { status, code: (body as { error: string }).error, logged };
}

describe("reads that may bring much", () => {
  test("have a turn of the event loop each, and members take turns, however many one has asked for at once", async () => {
    const loop: (() => void)[] = [];
    const turns = new FairTurns((run) => loop.push(run));
    const read: string[] = [];
    const broker = {
      messages: {
        history: {
          read: async ({ reader }: { reader: string }) => {
            read.push(reader);
            return { items: [] };
          },
        },
      },
      metrics: { answered: () => undefined },
      watchers: { nextTurn: (_: string, pubkey: string, run: () => void) => turns.take(pubkey, run) },
    } as unknown as BrokerContext;
    const run = createOperationRunner(broker);
    const ask = (pubkey: string) => run("history", { member: { meshId: "m", pubkey } } as unknown as Caller, {});
    const asked = [ask("mallory"), ask("mallory"), ask("mallory"), ask("bob")];
    const perTurn: number[] = [];
    while (loop.length > 0) {
      const before = read.length;
      loop.shift()?.();
      await turn();
      perTurn.push(read.length - before);
    }
    await Promise.all(asked);
    expect(read).toEqual(["mallory", "bob", "mallory", "mallory"]);
    expect(perTurn).toEqual([1, 1, 1, 1]);
  });
});

describe("a failure of the store", () => {
  test("that cannot be reached is called so", async () => {
    const failed = await failWith(new StorageError("unavailable", "no route"));
    expect(failed).toMatchObject({ status: 503, code: "storage_unavailable", logged: [{ event: "refused" }] });
  });

  test.for(["constraint", "statement"] as const)(
    "that refuses what it is asked (%s) is not called away",
    async (kind) => {
      const failed = await failWith(new StorageError(kind, "no such table"));
      expect(failed).toMatchObject({ status: 500, code: "internal", logged: [{ event: "refused", code: "internal" }] });
    },
  );

  test("that refuses a mention is one event of its own in the log", async () => {
    const error = new StorageError("constraint", "mentions are broken").from("write_mentions");
    const { status, code, logged } = await failWith(error);
    expect([status, code]).toEqual([500, "internal"]);
    expect(logged).toEqual([
      {
        event: "mention_insert_failed",
        operation: "invite.list",
        code: "internal",
        err: error,
        meaning: expect.stringContaining("the store itself answers"),
      },
    ]);
  });

  test("whose disk is full while it writes a mention is a full disk", async () => {
    const failed = await failWith(new StorageError("disk_full", "no room").from("write_mentions"));
    expect(failed).toMatchObject({ status: 507, code: "insufficient_storage", logged: [{ event: "refused" }] });
  });
});
