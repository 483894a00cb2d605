// What is begun early, and what is left to the handler: on a store that only notes what it is asked for.
import { describe, expect, test } from "vitest";
import type { BrokerContext } from "../context.ts";
import { lookAheadOf } from "./look-aheads.ts";

function start() {
  const asked: string[] = [];
  const findAccepted = async (meshId: string, id: string) => void asked.push(`${meshId} ${id}`);
  const broker = { messages: { accepts: { findAccepted } }, nowMs: () => 17 } as unknown as BrokerContext;
  const begin = (name: Parameters<typeof lookAheadOf>[1], input: Record<string, unknown>) =>
    lookAheadOf(broker, name)?.("mesh-1", input);
  return { begin, asked };
}

describe("a request begins early", () => {
  test("the look-up of a send's id", () => {
    const { begin, asked } = start();
    expect(begin("send", { client_message_id: "m1" })?.lookUp).toMatchObject({ clientMessageId: "m1", atMs: 17 });
    expect(asked).toEqual(["mesh-1 m1"]);
  });

  test("nothing where it is no id that a store could be asked for", () => {
    const { begin, asked } = start();
    for (const id of [undefined, 7, "", "\0", "e\u0301", "x".repeat(257)]) {
      expect(begin("send", { client_message_id: id })).toBeUndefined();
    }
    expect(asked).toEqual([]);
  });

  test("nothing for operations that look nothing up first", () => {
    expect(start().begin("topic.list", {})).toBeUndefined();
    expect(start().begin("registrar.register", { logical_request_key: "k" })).toBeUndefined();
  });
});
