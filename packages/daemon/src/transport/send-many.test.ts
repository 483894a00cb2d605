import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { settle } from "../testing/scripted-link.ts";
import { startTestDaemon, type TestDaemon } from "../testing/test-daemon.ts";

type ItemAnswer = { readonly status: number; readonly body: Record<string, unknown> };

const item = (id: string, fields: object = {}) => ({
  to: "#general",
  message: `body of ${id}`,
  client_message_id: id,
  ...fields,
});
const nested = (levels: number): unknown => (levels === 0 ? 1 : { a: nested(levels - 1) });

async function sendMany(daemon: TestDaemon, sends: readonly unknown[]): Promise<ItemAnswer[]> {
  const answer = await daemon.call("POST", "/v1/send/many", { json: { sends } });
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  expect(Object.keys(answer.body)).toEqual(["results"]);
  return answer.body.results;
}

async function sendAlone(daemon: TestDaemon, send: unknown): Promise<ItemAnswer> {
  const { status, body } = await daemon.send(send);
  return { status, body };
}

/** One for all cases of a table: starting one takes longer than asking it. */
function sharedDaemon(): { readonly daemon: Promise<TestDaemon> } {
  const undo: (() => void | Promise<void>)[] = [];
  const shared: { daemon: Promise<TestDaemon> } = { daemon: Promise.reject(new Error("not started")) };
  shared.daemon.catch(() => undefined);
  beforeAll(async () => {
    shared.daemon = startTestDaemon({ whenDone: (step) => undo.unshift(step) });
    await shared.daemon;
  });
  afterAll(async () => {
    for (const step of undo) await step();
  });
  return shared;
}

const storedIds = (daemon: TestDaemon) =>
  daemon
    .outboxDb()
    .sql<{ id: string }>("SELECT client_message_id AS id FROM outbox ORDER BY rowid")
    .all()
    .map(({ id }) => id);

describe("many sends in one request", () => {
  it("are stored in their order and answered in it, each with its own row", async () => {
    const daemon = await startTestDaemon();
    const ids = Array.from({ length: 100 }, (_, n) => `order-${n}`);
    const results = await sendMany(
      daemon,
      ids.map((id) => item(id)),
    );
    expect(results.map(({ status, body }) => [status, body.client_message_id, body.status, body.duplicate])).toEqual(
      ids.map((id) => [202, id, "queued", false]),
    );
    expect(storedIds(daemon)).toEqual(ids);
  });

  it("leave for the broker in their order", async () => {
    const daemon = await startTestDaemon();
    daemon.link.goOnline();
    const ids = Array.from({ length: 20 }, (_, n) => `order-${n}`);
    await sendMany(
      daemon,
      ids.map((id) => item(id)),
    );
    await settle();
    expect(daemon.link.ofKind("send").map(({ input }) => input.client_message_id)).toEqual(ids);
  });

  it("are answered as each would have been alone: all eleven rows", async () => {
    const daemon = await startTestDaemon();
    const states = ["pending", "inflight", "done", "dead", "aborted"];
    await sendMany(
      daemon,
      states.map((state) => item(state)),
    );
    const change =
      "UPDATE outbox SET status = client_message_id, last_error = 'why', history_id = 7, broker_message_id = 'b'";
    daemon.outboxDb().sql(change).run();
    const sends = states.flatMap((state) => [item(state), item(state, { message: "other" })]);
    const alone = await Promise.all(sends.map((send) => sendAlone(daemon, send)));
    const results = await sendMany(daemon, [...sends, item("new")]);
    expect(results.slice(0, -1)).toEqual(alone);
    expect(results.map(({ status }) => status)).toEqual([202, 409, 202, 409, 200, 409, 409, 409, 409, 409, 202]);
  });

  it("of one id are like callers in that order: the first is new, an equal one a duplicate, another a conflict", async () => {
    const daemon = await startTestDaemon();
    const [first, equal, other, last] = await sendMany(daemon, [
      item("order-1"),
      item("order-1"),
      item("order-1", { message: "other" }),
      item("order-2"),
    ]);
    expect(first).toMatchObject({ status: 202, body: { duplicate: false } });
    expect(equal).toEqual({ status: 202, body: { ...first?.body, duplicate: true } });
    expect(other).toMatchObject({ status: 409, body: { conflict: "outbox_pending_fingerprint_mismatch" } });
    expect(last).toMatchObject({ status: 202, body: { duplicate: false } });
    expect(storedIds(daemon)).toEqual(["order-1", "order-2"]);
  });

  it("asked again after a lost answer take effect once", async () => {
    const daemon = await startTestDaemon();
    const sends = ["order-1", "order-2", "order-3"].map((id) => item(id));
    const first = await sendMany(daemon, sends);
    const again = await sendMany(daemon, sends);
    expect(again).toEqual(first.map(({ status, body }) => ({ status, body: { ...body, duplicate: true } })));
    expect(daemon.rowCount()).toBe(3);
  });
});

describe("one bad send among good ones", () => {
  const shared = sharedDaemon();
  const slug = (text: string) => text.replaceAll(/[^a-z]/g, "-");
  const bad: readonly { readonly what: string; readonly send: unknown; readonly status: number }[] = [
    { what: "a number", send: 7, status: 400 },
    { what: "null", send: null, status: 400 },
    { what: "a list", send: [], status: 400 },
    { what: "no recipient", send: { message: "m", client_message_id: "bad" }, status: 400 },
    { what: "an unknown field", send: item("bad", { ttl: 5 }), status: 400 },
    { what: "a wrong type", send: item("bad", { message: 1 }), status: 400 },
    { what: "an unknown priority", send: item("bad", { priority: "soon" }), status: 400 },
    { what: "both forms of message", send: item("bad", { message_base64: "bQ==" }), status: 400 },
    { what: "an address of no kind", send: item("bad", { to: "general" }), status: 400 },
    { what: "an id with a space", send: item("bad id"), status: 400 },
    { what: "a zero byte in meta", send: item("bad", { meta: { a: "\0" } }), status: 400 },
    { what: "mentions that are none", send: item("bad", { meta: { mentions: [1] } }), status: 400 },
    { what: "a message beyond the broker's limit", send: item("bad", { message: "x".repeat(65_537) }), status: 413 },
  ];

  it.each(bad)("with $what is refused as it would be alone, and harms no neighbour", async ({ what, send, status }) => {
    const daemon = await shared.daemon;
    const rowsBefore = daemon.rowCount();
    const alone = await sendAlone(daemon, send);
    const results = await sendMany(daemon, [item(`${slug(what)}-1`), send, item(`${slug(what)}-2`)]);
    expect(results.map((each) => [each.status, each.body.duplicate])).toEqual([
      [202, false],
      [status, undefined],
      [202, false],
    ]);
    expect(results[1]).toEqual(alone);
    expect(daemon.rowCount()).toBe(rowsBefore + 2);
  });

  it("without an id is refused with a word about why, although alone it would get one", async () => {
    const daemon = await startTestDaemon();
    const { client_message_id: _, ...nameless } = item("bad");
    const results = await sendMany(daemon, [item("order-1"), nameless, item("order-2")]);
    expect(results.map(({ status }) => status)).toEqual([202, 400, 202]);
    expect(results[1]?.body).toMatchObject({ error: "invalid_request", field: "client_message_id", retryable: false });
    expect(results[1]?.body.message).toContain("client_message_id");
    expect(storedIds(daemon)).toEqual(["order-1", "order-2"]);
  });

  it("to a name that the broker has to be asked about is refused alone when no member has it", async () => {
    const daemon = await startTestDaemon();
    const members = { items: [], next_cursor: null };
    daemon.link.automatic.set("members.list", () => ({ type: "answered", status: 200, body: members }));
    daemon.link.goOnline();
    const results = await sendMany(daemon, [item("order-1"), item("bad", { to: "@ghost" }), item("order-2")]);
    expect(results.map(({ status, body }) => [status, body.error])).toEqual([
      [202, undefined],
      [404, "destination_not_found"],
      [202, undefined],
    ]);
    expect(storedIds(daemon)).toEqual(["order-1", "order-2"]);
  });

  it("may be as deep as alone", async () => {
    const daemon = await startTestDaemon();
    const deepest = item("deep", { meta: nested(63) });
    expect(await sendMany(daemon, [deepest])).toMatchObject([{ status: 202, body: { duplicate: false } }]);
    expect(await sendAlone(daemon, deepest)).toMatchObject({ status: 202, body: { duplicate: true } });
  });

  it("finds a full outbox alone: those before it are stored, and a retry is answered from its row", async () => {
    const daemon = await startTestDaemon({ overrides: { outbox: { max_bytes: 262_144 } } });
    const large = (n: number) => item(`order-${n}`, { message: "x".repeat(8_000) });
    const results = await sendMany(
      daemon,
      Array.from({ length: 60 }, (_, n) => large(n)),
    );
    const accepted = results.filter(({ status }) => status === 202).length;
    expect(accepted).toBeGreaterThan(5);
    expect(results.slice(accepted).map(({ status, body }) => [status, body.error])).toEqual(
      Array(60 - accepted).fill([507, "insufficient_storage"]),
    );
    expect(daemon.rowCount()).toBe(accepted);
    expect(await sendMany(daemon, [large(0)])).toMatchObject([{ status: 202, body: { duplicate: true } }]);
  });
});

describe("MSG-1: many sends share a transaction, and none is accepted without it", () => {
  it("a commit that fails accepts none of them", async () => {
    const daemon = await startTestDaemon({ env: { CLAUDEMESH_FAILPOINTS: "outbox.before_commit@1=error" } });
    const sends = Array.from({ length: 50 }, (_, n) => item(`order-${n}`));
    const results = await sendMany(daemon, sends);
    expect(new Set(results.map(({ status }) => status))).toEqual(new Set([507]));
    expect(daemon.rowCount()).toBe(0);
    const again = await sendMany(daemon, sends);
    expect(again.map(({ status, body }) => [status, body.duplicate])).toEqual(Array(50).fill([202, false]));
  });
});

describe("a request that is no list of sends is refused whole, and consumes nothing", () => {
  const shared = sharedDaemon();
  const json = (value: unknown) => JSON.stringify(value);
  const good = json(item("order-1"));
  it.each([
    { what: "no list", raw: "{}", code: "invalid_request" },
    { what: "an empty list", raw: '{"sends":[]}', code: "invalid_request" },
    { what: "an object for a list", raw: `{"sends":${good}}`, code: "invalid_request" },
    { what: "a bare list", raw: `[${good}]`, code: "invalid_request" },
    { what: "another field", raw: `{"sends":[${good}],"atomic":true}`, code: "unknown_field" },
    { what: "more than 100", raw: json({ sends: Array(101).fill(item("order-1")) }), code: "invalid_request" },
    { what: "no JSON", raw: `{"sends":[${good},]}`, code: "invalid_json" },
    { what: "a key twice in a send", raw: `{"sends":[${good},{"to":"#a","to":"#b"}]}`, code: "duplicate_key" },
    { what: "brackets without end", raw: `{"sends":[${"[".repeat(1_000)}`, code: "too_deep" },
    {
      what: "a send that is deeper than alone",
      raw: json({ sends: [item("a", { meta: nested(64) })] }),
      code: "too_deep",
    },
    { what: "half a pair", raw: `{"sends":[${good},{"message":"\\ud800"}]}`, code: "lone_surrogate" },
    {
      what: "over 1 MiB",
      raw: json({ sends: Array(17).fill(item("a", { message: "x".repeat(65_000) })) }),
      code: "payload_too_large",
    },
  ])("with $what → $code", async ({ raw, code }) => {
    const daemon = await shared.daemon;
    const answer = await daemon.call("POST", "/v1/send/many", { raw, headers: { "content-type": "application/json" } });
    expect(answer.body).toMatchObject({ error: code, retryable: false, message: expect.stringMatching(/\S/) });
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(daemon.rowCount()).toBe(0);
  });

  it("with a header that names one message → invalid_request, and says what to do", async () => {
    const daemon = await shared.daemon;
    const headers = { "idempotency-key": "order-1" };
    const answer = await daemon.call("POST", "/v1/send/many", { json: { sends: [item("order-1")] }, headers });
    expect(answer).toMatchObject({ status: 400, body: { error: "invalid_request", field: "Idempotency-Key" } });
    expect(answer.body.message).toContain("client_message_id");
    expect(daemon.rowCount()).toBe(0);
  });
});
