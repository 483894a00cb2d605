import { type ErrorCode, errorCatalogue } from "@claudemesh/protocol/error-catalogue";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestDaemon, type TestDaemon } from "../testing/test-daemon.ts";

const deep = (depth: number) => `{"to":"#general","message":"m","meta":${'{"a":'.repeat(depth)}1${"}".repeat(depth)}}`;
const bytes = (...parts: (string | number[])[]) =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.from(part))));

type Refused = { readonly what: string; readonly raw: string | Uint8Array; readonly code: ErrorCode };

const refused: Refused[] = [
  { what: "a body that is not JSON", raw: "to=general", code: "invalid_json" },
  { what: "an empty body", raw: "", code: "invalid_json" },
  { what: "an array", raw: "[]", code: "invalid_request" },
  { what: "no recipient", raw: '{"message":"m"}', code: "invalid_request" },
  { what: "a number as recipient", raw: '{"to":1,"message":"m"}', code: "invalid_request" },
  { what: "a number as message", raw: '{"to":"#general","message":1}', code: "invalid_request" },
  { what: "null as message", raw: '{"to":"#general","message":null}', code: "invalid_request" },
  { what: "a list as meta", raw: '{"to":"#general","message":"m","meta":[]}', code: "invalid_request" },
  { what: "an unknown priority", raw: '{"to":"#general","message":"m","priority":"soon"}', code: "invalid_request" },
  { what: "no message at all", raw: '{"to":"#general"}', code: "invalid_request" },
  {
    what: "both forms of message",
    raw: '{"to":"#general","message":"m","message_base64":"bQ=="}',
    code: "invalid_request",
  },
  { what: "broken base64", raw: '{"to":"#general","message_base64":"bQ="}', code: "invalid_request" },
  { what: "an unknown field", raw: '{"to":"#general","message":"m","ttl":5}', code: "unknown_field" },
  { what: "__proto__ as a field", raw: '{"to":"#general","message":"m","__proto__":{}}', code: "unknown_field" },
  { what: "the same key twice", raw: '{"to":"#general","to":"#other","message":"m"}', code: "duplicate_key" },
  {
    what: "the same key twice in meta",
    raw: '{"to":"#general","message":"m","meta":{"a":1,"\\u0061":2}}',
    code: "duplicate_key",
  },
  { what: "0x00 in meta", raw: '{"to":"#general","message":"m","meta":{"a":"x\\u0000y"}}', code: "nul_in_field" },
  { what: "0x00 in a key of meta", raw: '{"to":"#general","message":"m","meta":{"x\\u0000":1}}', code: "nul_in_field" },
  {
    what: "0x00 in reply_to_id",
    raw: '{"to":"#general","message":"m","reply_to_id":"a\\u0000"}',
    code: "nul_in_field",
  },
  { what: "0x00 in the recipient", raw: '{"to":"#general\\u0000","message":"m"}', code: "invalid_address" },
  {
    what: "0x00 in the id",
    raw: '{"to":"#general","message":"m","client_message_id":"a\\u0000"}',
    code: "invalid_client_message_id",
  },
  {
    what: "a space in the id",
    raw: '{"to":"#general","message":"m","client_message_id":"a b"}',
    code: "invalid_client_message_id",
  },
  {
    what: "an empty id",
    raw: '{"to":"#general","message":"m","client_message_id":""}',
    code: "invalid_client_message_id",
  },
  {
    what: "bytes that are not UTF-8",
    raw: bytes('{"to":"#general","message":"', [0xc3, 0x28], '"}'),
    code: "invalid_utf8",
  },
  {
    what: "an overlong encoding",
    raw: bytes('{"to":"#general","message":"', [0xc0, 0xaf], '"}'),
    code: "invalid_utf8",
  },
  { what: "half a surrogate pair", raw: '{"to":"#general","message":"\\ud800"}', code: "lone_surrogate" },
  {
    what: "half a pair in meta",
    raw: '{"to":"#general","message":"m","meta":{"a":"\\udc00"}}',
    code: "lone_surrogate",
  },
  { what: "a depth of 10,000", raw: deep(10_000), code: "too_deep" },
  { what: "brackets without end", raw: "[".repeat(100_000), code: "too_deep" },
  {
    what: "an integer beyond a double",
    raw: '{"to":"#general","message":"m","meta":{"n":9007199254740993}}',
    code: "number_out_of_range",
  },
  {
    what: "a number that overflows",
    raw: '{"to":"#general","message":"m","meta":{"n":1e999}}',
    code: "number_out_of_range",
  },
  {
    what: "meta beyond its bound",
    raw: `{"to":"#general","message":"m","meta":{"a":"${"x".repeat(20_000)}"}}`,
    code: "payload_too_large",
  },
  {
    what: "a message beyond the broker's limit",
    raw: `{"to":"#general","message":"${"x".repeat(65_537)}"}`,
    code: "payload_too_large",
  },
  {
    what: "a sealed message that grows beyond it",
    raw: `{"to":"@self","message":"${"x".repeat(65_536)}"}`,
    code: "payload_too_large",
  },
  {
    what: "a body above 1 MiB",
    raw: `{"to":"#general","message":"${"x".repeat(1_048_577)}"}`,
    code: "payload_too_large",
  },
  { what: "an address of no kind", raw: '{"to":"general","message":"m"}', code: "invalid_address" },
  { what: "a topic with a space", raw: '{"to":"#gen eral","message":"m"}', code: "invalid_address" },
  { what: "a key in capitals", raw: `{"to":"dm:${"AB".repeat(32)}","message":"m"}`, code: "invalid_address" },
  { what: "a key on no curve", raw: `{"to":"dm:${"00".repeat(32)}","message":"m"}`, code: "invalid_address" },
  {
    what: "mentions out of order",
    raw: `{"to":"#general","message":"m","meta":{"mentions":["${"b".repeat(64)}","${"a".repeat(64)}"]}}`,
    code: "invalid_mentions",
  },
];

describe("what cannot be a send is refused, and consumes nothing", () => {
  const undo: (() => void | Promise<void>)[] = [];
  let daemon: TestDaemon;
  beforeAll(async () => {
    daemon = await startTestDaemon({ whenDone: (step) => undo.unshift(step) });
  });
  afterAll(async () => {
    for (const step of undo) await step();
  });

  it.each(refused)("$what → $code", async ({ raw, code }) => {
    const answer = await daemon.call("POST", "/v1/send", { raw, headers: { "content-type": "application/json" } });
    expect(answer.body).toMatchObject({ error: code, retryable: false, message: expect.stringMatching(/\S/) });
    expect(answer.status).toBe(errorCatalogue[code].status);
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(answer.status).toBeLessThan(500);
    expect(daemon.rowCount()).toBe(0);
  });

  it("an unknown peer → destination_not_found", async () => {
    const online = await startTestDaemon();
    const members = { items: [], next_cursor: null };
    online.link.automatic.set("members.list", () => ({ type: "answered", status: 200, body: members }));
    online.link.goOnline();
    const answer = await online.send({ to: "@ghost", message: "m" });
    expect([answer.status, answer.body.error]).toEqual([404, "destination_not_found"]);
    expect(online.rowCount()).toBe(0);
  });

  it("a name that two members have → destination_ambiguous, naming both", async () => {
    const online = await startTestDaemon();
    const [first, second] = ["aa".repeat(32), "bb".repeat(32)];
    const items = [first, second].map((pubkey) => ({ pubkey, name: "bob" }));
    online.link.automatic.set("members.list", () => ({ type: "answered", status: 200, body: { items } }));
    online.link.goOnline();
    const answer = await online.send({ to: "@bob", message: "m" });
    expect([answer.status, answer.body.error]).toEqual([409, "destination_ambiguous"]);
    expect(answer.body.candidates).toEqual([first, second]);
    expect(online.rowCount()).toBe(0);
  });

  it.each([
    { what: "an unknown parameter", path: "/v1/inbox?limt=5", code: "unknown_field" },
    { what: "a parameter on a route that takes none", path: "/v1/health?verbose=1", code: "unknown_field" },
    { what: "a parameter twice", path: "/v1/inbox?limit=1&limit=2", code: "invalid_request" },
    { what: "a limit of nothing", path: "/v1/inbox?limit=0", code: "invalid_request" },
    { what: "a limit beyond the bound", path: "/v1/outbox?limit=1001", code: "invalid_request" },
    { what: "a cursor of our own making", path: "/v1/outbox?cursor=1", code: "invalid_request" },
    { what: "a time without a zone", path: "/v1/inbox?since=2026-01-01T00:00:00", code: "invalid_request" },
    { what: "a topic that is no name", path: "/v1/inbox?topic=a%20b", code: "invalid_name" },
    { what: "a sender that is no member", path: "/v1/inbox?from=%23general", code: "invalid_address" },
    { what: "a status that no row has", path: "/v1/outbox?status=lost", code: "invalid_request" },
  ])("a query with $what → $code", async ({ path, code }) => {
    const answer = await daemon.call("GET", path);
    expect([answer.status, answer.body.error]).toEqual([400, code]);
  });

  it("another media type than JSON, an unknown path, a method that the path does not take", async () => {
    const text = { raw: "hello", headers: { "content-type": "text/plain" } };
    expect((await daemon.call("POST", "/v1/send", text)).body.error).toBe("unsupported_media_type");
    expect((await daemon.call("GET", "/v1/nothing")).body.error).toBe("not_found");
    expect((await daemon.call("DELETE", "/v1/send")).body.error).toBe("method_not_allowed");
  });
});
