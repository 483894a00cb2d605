import { limits } from "@claudemesh/protocol/messages/limits";
import type { IdentifiedSend } from "@claudemesh/protocol/messages/send-request";
import { describe, expect, it } from "vitest";
import type { DaemonAnswer, DaemonCall } from "./daemon-call.ts";
import { DaemonUnreachable } from "./daemon-failures.ts";
import { sendMany, splitSends } from "./send-many.ts";

type Asked = readonly IdentifiedSend[];
type Answerer = (sends: Asked, request: number) => DaemonAnswer<unknown> | Error;

/** A daemon that answers as it is told, and what it was asked. */
function daemonThat(answer: Answerer): { readonly call: DaemonCall; readonly asked: Asked[] } {
  const asked: Asked[] = [];
  const call = async (method: string, path: string, body: unknown) => {
    expect([method, path]).toEqual(["POST", "/v1/send/many"]);
    const { sends } = body as { readonly sends: Asked };
    asked.push(sends);
    const end = answer(sends, asked.length);
    if (end instanceof Error) throw end;
    return end;
  };
  return { call: call as DaemonCall, asked };
}

const queued = (id: string) => ({ status: 202, body: { client_message_id: id, status: "queued" } });
const refusal = (status: number, error: string, retryable: boolean) => ({
  status,
  body: { error, message: error, retryable },
});
const acceptAll: Answerer = (sends) => ({
  status: 200,
  body: { results: sends.map(({ client_message_id }) => queued(client_message_id)) },
});
const away = new DaemonUnreachable("gone", { sent: true, timedOut: false });
const numbered = (count: number, message = "m") =>
  Array.from({ length: count }, (_, n) => ({ to: "#builds", message, client_message_id: `order-${n}` }));
const idsOf = (sends: readonly { readonly client_message_id: string }[]) =>
  sends.map(({ client_message_id }) => client_message_id);

describe("many sends", () => {
  it("have one outcome each, in their order, over as many requests as it takes", async () => {
    const { call, asked } = daemonThat(acceptAll);
    const sends = numbered(limits.sendsPerRequest * 2 + 1);
    const outcomes = await sendMany(call, sends);
    expect(asked.map(({ length }) => length)).toEqual([limits.sendsPerRequest, limits.sendsPerRequest, 1]);
    expect(idsOf(outcomes)).toEqual(idsOf(sends));
    expect(new Set(outcomes.map(({ type }) => type))).toEqual(new Set(["accepted"]));
    expect(outcomes[0]).toEqual({ type: "accepted", ...queued("order-0"), client_message_id: "order-0" });
  });

  it("get an id each where they bring none", async () => {
    const { call, asked } = daemonThat(acceptAll);
    const outcomes = await sendMany(call, [{ to: "#a", message: "1" }, ...numbered(1), { to: "#a", message: "2" }]);
    const ids = idsOf(asked[0] ?? []);
    expect(ids[1]).toBe("order-0");
    expect(ids).toEqual(idsOf(outcomes));
    expect(new Set(ids).size).toBe(3);
    for (const id of [ids[0], ids[2]]) expect(id).toMatch(/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
  });

  it("that are none ask for nothing", async () => {
    const { call, asked } = daemonThat(acceptAll);
    expect(await sendMany(call, [])).toEqual([]);
    expect(asked).toEqual([]);
  });

  it("are asked about again under the same ids when no answer came", async () => {
    const { call, asked } = daemonThat((sends, request) => (request < 3 ? away : acceptAll(sends, request)));
    const outcomes = await sendMany(call, [{ to: "#a", message: "1" }, ...numbered(2)]);
    expect(outcomes.map(({ type }) => type)).toEqual(["accepted", "accepted", "accepted"]);
    expect(asked).toEqual([asked[0], asked[0], asked[0]]);
  });

  it("that the daemon says later to are asked about again, and no others", async () => {
    const { call, asked } = daemonThat((sends, request) => ({
      status: 200,
      body: {
        results: sends.map(({ client_message_id: id }) => {
          if (id === "order-1" && request === 1) return refusal(507, "insufficient_storage", true);
          return id === "order-2" ? refusal(409, "idempotency_key_reused", false) : queued(id);
        }),
      },
    }));
    const outcomes = await sendMany(call, numbered(4));
    expect(outcomes.map(({ type }) => type)).toEqual(["accepted", "accepted", "refused", "accepted"]);
    expect(outcomes[2]).toMatchObject({ client_message_id: "order-2", status: 409 });
    expect(asked.map(idsOf)).toEqual([["order-0", "order-1", "order-2", "order-3"], ["order-1"]]);
  });

  it("end with the last word about each when the time for asking again is over", async () => {
    const full = refusal(507, "insufficient_storage", true);
    const { call, asked } = daemonThat((sends) => ({ status: 200, body: { results: sends.map(() => full) } }));
    expect(await sendMany(call, numbered(1), { retryForMs: 300 })).toEqual([
      { type: "refused", client_message_id: "order-0", ...full },
    ]);
    expect(asked.length).toBeGreaterThan(1);
    const gone = daemonThat(() => away);
    expect(await sendMany(gone.call, numbered(150), { retryForMs: 0 })).toEqual(
      idsOf(numbered(150)).map((client_message_id) => ({ type: "unanswered", client_message_id, error: away })),
    );
    expect(gone.asked).toHaveLength(2);
  });

  it("that spoil a request for their neighbours are refused by themselves", async () => {
    const { call, asked } = daemonThat((sends, request) =>
      idsOf(sends).includes("order-5") ? refusal(400, "lone_surrogate", false) : acceptAll(sends, request),
    );
    const outcomes = await sendMany(call, numbered(8));
    expect(outcomes.flatMap(({ type }, index) => (type === "refused" ? [index] : []))).toEqual([5]);
    expect(idsOf(outcomes)).toEqual(idsOf(numbered(8)));
    expect(asked.length).toBeLessThan(8);
  });

  it("count as unanswered where the answer leaves one out", async () => {
    const { call } = daemonThat(() => ({ status: 200, body: { results: [queued("order-0")] } }));
    const outcomes = await sendMany(call, numbered(2), { retryForMs: 0 });
    expect(outcomes).toMatchObject([{ type: "unanswered", error: { sent: true } }, { type: "unanswered" }]);
  });

  it("throw what is no failure of the daemon", async () => {
    const { call } = daemonThat(() => new TypeError("a bug"));
    await expect(sendMany(call, numbered(1))).rejects.toThrow("a bug");
  });
});

describe("a request", () => {
  it("holds no more bytes than the daemon reads, and as many sends as fit", () => {
    const sends = numbered(40, "ü".repeat(30_000));
    const parts = splitSends(sends);
    expect(parts.flat()).toEqual(sends);
    expect(parts.length).toBeGreaterThan(1);
    const bytes = parts.map((part) => Buffer.byteLength(JSON.stringify({ sends: part })));
    for (const [index, part] of parts.entries()) {
      expect(bytes[index]).toBeLessThanOrEqual(limits.requestBytes);
      const next = parts[index + 1]?.[0];
      if (next === undefined) continue;
      expect(Buffer.byteLength(JSON.stringify({ sends: [...part, next] }))).toBeGreaterThan(limits.requestBytes - 16);
    }
  });

  it("holds one alone that is larger than a request", () => {
    const [small, large] = [numbered(1), numbered(1, "x".repeat(limits.requestBytes))];
    expect(splitSends([...small, ...large, ...small])).toEqual([small, large, small]);
  });
});
