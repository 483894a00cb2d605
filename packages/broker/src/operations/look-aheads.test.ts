// What is begun early, and what is left to the handler: on stores that only note what they are asked for.
import { MeshError } from "@claudemesh/protocol/errors";
import { describe, expect, test } from "vitest";
import type { BrokerContext } from "../context.ts";
import { lookAheadOf } from "./look-aheads.ts";

function start(isOpen = true) {
  const asked: string[] = [];
  const note = async (meshId: string, key: string) => void asked.push(`${meshId} ${key}`);
  const use = () => {
    if (!isOpen) throw new MeshError("storage_unavailable");
    return { store: { requests: { findConsumed: note } } };
  };
  const messages = { accepts: { findAccepted: note } };
  const broker = { messages, registrar: { use }, nowMs: () => 17 } as unknown as BrokerContext;
  const begin = (name: Parameters<typeof lookAheadOf>[1], input: Record<string, unknown>) =>
    lookAheadOf(broker, name)?.("mesh-1", input);
  return { begin, asked };
}

describe("a request begins early", () => {
  test("the look-up of a send's id, and of a registration's key", () => {
    const { begin, asked } = start();
    expect(begin("send", { client_message_id: "m1" })?.lookUp).toMatchObject({ clientMessageId: "m1", atMs: 17 });
    const { priorLookUp } = begin("registrar.register", { logical_request_key: "clé" }) ?? {};
    expect(priorLookUp).toMatchObject({ meshId: "mesh-1", logicalRequestKey: "clé" });
    expect(asked).toEqual(["mesh-1 m1", "mesh-1 clé"]);
  });

  test("nothing where it is no key that a store could be asked for, or the registrar is closed", () => {
    const { begin, asked } = start();
    for (const key of [undefined, 7, "\0", "e\u0301", "\ud800", "x".repeat(257)]) {
      expect(begin("registrar.register", { logical_request_key: key })).toBeUndefined();
    }
    expect(start(false).begin("registrar.register", { logical_request_key: "k" })).toBeUndefined();
    expect(asked).toEqual([]);
  });

  test("nothing for operations that look nothing up first", () => {
    expect(start().begin("topic.list", {})).toBeUndefined();
  });
});
