// 2.2: which programs may use the local API, and its limits.
import { statSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { CannotBegin } from "../../frame/endings.ts";
import { eventually, expectAnswer, expectEqual, expectRefusal, expectThat } from "../../frame/expect.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import { addressOf, type HttpAnswer, type HttpCall, readBody } from "../../transport/http.ts";
import type { DaemonWorld, Door } from "./world.ts";

const anId = "0198c0de-0000-7000-8000-0000000000aa";

/** Every route, with an input that would be accepted. */
const everyRoute: readonly HttpCall[] = [
  { method: "POST", path: "/v1/send", json: { to: "@self", message: "x" } },
  { method: "POST", path: "/v1/topic/post", json: { topic: "t", message: "x" } },
  { method: "POST", path: "/v1/topic/subscribe", json: { topic: "t" } },
  { method: "POST", path: "/v1/topic/unsubscribe", json: { topic: "t" } },
  { method: "GET", path: "/v1/topic/list" },
  { method: "POST", path: "/v1/queue/q/lease", json: { lease_request_id: "x", max: 1, lease_s: 1 } },
  { method: "POST", path: "/v1/queue/q/ack", json: { lease_token: anId, broker_message_ids: [anId] } },
  { method: "POST", path: "/v1/queue/q/nack", json: { lease_token: anId, broker_message_ids: [anId] } },
  { method: "GET", path: "/v1/queue/q/parked" },
  { method: "GET", path: "/v1/inbox" },
  { method: "GET", path: "/v1/inbox/search?q=x" },
  { method: "POST", path: "/v1/inbox/x/read", json: {} },
  { method: "GET", path: "/v1/events" },
  { method: "GET", path: "/v1/messages/x" },
  { method: "GET", path: "/v1/peers" },
  { method: "POST", path: "/v1/profile", json: { status: "x" } },
  { method: "GET", path: "/v1/outbox" },
  { method: "GET", path: "/v1/outbox/x" },
  { method: "POST", path: "/v1/outbox/requeue", json: { id: "x" } },
  { method: "POST", path: "/v1/outbox/prune", json: { older_than_days: 36_500 } },
  { method: "GET", path: "/v1/version" },
  { method: "GET", path: "/v1/compat" },
  { method: "GET", path: "/v1/metrics" },
  { method: "GET", path: "/openapi.json" },
];

function expectNoCors(answer: HttpAnswer): void {
  const names = Object.keys(answer.headers).filter((name) => name.startsWith("access-control-"));
  expectEqual(names, [], "CORS headers", answer.request);
}

const strangers: readonly Scenario<DaemonWorld>[] = [
  scenario("2.2", "token", "over TCP every route needs the local token", async (world) => {
    const { tcp } = world;
    for (const call of everyRoute) {
      for (const token of [undefined, "wrong", `${tcp.token}x`, ""]) {
        expectNoCors(expectRefusal(await world.ask({ ...call, token }, tcp), 401, "unauthorized"));
      }
    }
    expectAnswer(await world.ask({ method: "GET", path: "/v1/version" }, tcp), 200);
  }),
  scenario("2.2", "token-scheme", "the token stands in Authorization: Bearer, and nowhere else", async (world) => {
    const { tcp } = world;
    for (const authorization of [tcp.token ?? "", `Basic ${tcp.token}`, `Token ${tcp.token}`]) {
      const answer = await world.ask(
        { method: "GET", path: "/v1/version", token: undefined, headers: { authorization } },
        tcp,
      );
      expectRefusal(answer, 401, "unauthorized");
    }
  }),
  scenario(
    "2.2",
    "token-in-query",
    "a token in the query, also encoded, is refused even beside a good header",
    async (world) => {
      const { tcp } = world;
      const token = tcp.token ?? "";
      const hex = [...Buffer.from(token)].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
      const queries = [
        `token=${token}`,
        `limit=${token}`,
        `x=${hex}`,
        `x=${hex.replaceAll("%", "%25")}`,
        `${token}=1`,
        "access_token=guess",
      ];
      for (const query of queries) {
        const answer = expectRefusal(
          await world.ask({ method: "GET", path: `/v1/inbox?${query}`, shownPath: "/v1/inbox?(the token)" }, tcp),
          400,
          "token_in_query",
        );
        expectThat(
          !answer.text.includes(token),
          "an answer without the token",
          "it repeats the token",
          `GET /v1/inbox?…`,
        );
      }
    },
  ),
  scenario("2.2", "host", "a Host that is not this machine's loopback is 403", async (world) => {
    const { tcp } = world;
    const get = (host: string) => world.ask({ method: "GET", path: "/v1/version", headers: { host } }, tcp);
    for (const host of [
      "evil.example",
      "127.0.0.1.evil.example",
      "localhost.evil.example:80",
      "192.168.0.1",
      "localhost:80:80",
    ]) {
      expectNoCors(expectRefusal(await get(host), 403, "forbidden_host"));
    }
    for (const host of ["localhost", "127.0.0.1", "[::1]", "localhost:1234", "[::1]:80", "LOCALHOST"]) {
      expectAnswer(await get(host), 200);
    }
  }),
  scenario(
    "2.2",
    "origin",
    "an Origin that is not on the allow-list is 403, preflight too, and no CORS header is ever sent",
    async (world) => {
      const { tcp } = world;
      for (const origin of ["https://evil.example", "null", "http://localhost:3000"]) {
        expectNoCors(
          expectRefusal(
            await world.ask({ method: "GET", path: "/v1/version", headers: { origin } }, tcp),
            403,
            "forbidden_origin",
          ),
        );
        const preflight = {
          origin,
          "access-control-request-method": "POST",
          "access-control-request-headers": "authorization",
        };
        expectNoCors(
          expectRefusal(
            await world.ask({ method: "OPTIONS", path: "/v1/send", token: undefined, headers: preflight }, tcp),
            403,
          ),
        );
      }
      expectNoCors(expectAnswer(await world.ask({ method: "GET", path: "/v1/version" }, tcp), 200));
    },
  ),
  scenario("2.2", "socket-mode", "the Unix socket needs no token; its mode is 0600 and is the guard", async (world) => {
    const { socket } = world;
    if (socket.target.type !== "unix") throw new CannotBegin("a socket has a path");
    const mode = statSync(socket.target.path).mode & 0o777;
    expectEqual(mode.toString(8), "600", "the socket's mode", `stat ${socket.target.path}`);
    expectAnswer(await world.ask({ method: "GET", path: "/v1/version" }, socket), 200);
  }),
];

/** Sends the headers of a request without its body; `answer` gives the answer once one has come. */
function beginRequest(door: Door, contentLength: number) {
  const headers = {
    "content-type": "application/json",
    "content-length": contentLength,
    ...(door.token === undefined ? {} : { authorization: `Bearer ${door.token}` }),
  };
  const request = `POST /v1/send\ncontent-length: ${contentLength}\n(headers alone)`;
  let answer: HttpAnswer | undefined;
  const outgoing = httpRequest(
    { ...addressOf(door.target), method: "POST", path: "/v1/send", headers, agent: false },
    (incoming) => {
      let text = "";
      incoming.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      incoming.on("end", () => {
        answer = { status: incoming.statusCode ?? 0, headers: incoming.headers, text, body: readBody(text), request };
      });
    },
  );
  outgoing.on("error", () => undefined);
  outgoing.flushHeaders();
  return { answer: () => answer, end: () => outgoing.destroy(), request };
}

const bounds: readonly Scenario<DaemonWorld>[] = [
  scenario("2.2", "body-bound", "a body over 1 MiB is 413 before it is read whole", async (world) => {
    const pending = beginRequest(world.door, 3_000_000);
    try {
      const answer = await eventually("an answer to the headers alone", async () => {
        const found = pending.answer();
        return found === undefined ? { got: "none", request: pending.request } : { found };
      });
      expectRefusal(answer, 413, "payload_too_large");
    } finally {
      pending.end();
    }
  }),
  scenario(
    "2.2",
    "in-flight-bound",
    "more than 64 requests in flight are 429 daemon_busy, and fewer are not",
    async (world) => {
      const pending = Array.from({ length: 80 }, () => beginRequest(world.door, 100));
      try {
        const busy = await eventually("429 for requests beyond the bound", async () => {
          const answers = pending.flatMap((each) => each.answer() ?? []);
          return answers.length >= 16
            ? { found: answers }
            : { got: `${answers.length} answers`, request: "POST /v1/send, 80 at once" };
        });
        for (const answer of busy) expectRefusal(answer, 429, "daemon_busy");
        expectEqual(busy.length, 16, "refused of 80", "POST /v1/send, 80 at once");
      } finally {
        for (const each of pending) each.end();
      }
      await eventually("the daemon answers again", async () => {
        const answer = await world.get("/v1/version");
        return answer.status === 200 ? { found: true } : { got: answer.body, request: answer.request };
      });
    },
  ),
  scenario("2.2", "stream-bound", "more than 32 event streams are 429 too_many_streams", async (world) => {
    const streams = [];
    for (let n = 0; n < 32; n++) streams.push(await world.events());
    expectEqual(
      streams.filter(({ status }) => status === 200).length,
      32,
      "streams with 200",
      "GET /v1/events, 32 times",
    );
    expectRefusal(await world.get("/v1/events"), 429, "too_many_streams");
    for (const stream of streams) stream.close();
    await eventually("a stream is free again", async () => {
      const stream = await world.events();
      return stream.status === 200 ? { found: true } : { got: stream.status, request: stream.request };
    });
  }),
];

const shapes: readonly Scenario<DaemonWorld>[] = [
  scenario("2.2", "unknown-fields", "unknown fields in body and query are refused on every route", async (world) => {
    for (const { method, path, json } of everyRoute) {
      const odd = `${path}${path.includes("?") ? "&" : "?"}colour=blue`;
      expectRefusal(await world.ask({ method, path: odd, json }), 400, "unknown_field");
      if (json === undefined) continue;
      expectRefusal(await world.ask({ method, path, json: { ...(json as object), colour: 1 } }), 400, "unknown_field");
    }
  }),
  scenario("2.2", "errors", "every refusal has one shape: error, message, retryable", async (world) => {
    expectRefusal(await world.get("/v1/nothing"), 404, "not_found");
    expectRefusal(await world.get("/v1/send"), 405, "method_not_allowed");
    expectRefusal(
      await world.ask({ method: "POST", path: "/v1/send", raw: "{}", headers: { "content-type": "text/plain" } }),
      415,
      "unsupported_media_type",
    );
    for (const raw of ["", "{", "[]", "null", "{}", '{"to":"@self"}', '{"message":"x"}', '{"to":1,"message":"x"}']) {
      expectRefusal(await world.ask({ method: "POST", path: "/v1/send", raw }), 400);
    }
  }),
  scenario("2.2", "limits", "limit is 1–1000 and cursors are those of earlier pages", async (world) => {
    for (const path of ["/v1/inbox", "/v1/outbox"]) {
      for (const limit of ["1", "1000"]) expectAnswer(await world.get(`${path}?limit=${limit}`), 200);
      for (const limit of ["0", "1001", "-1", "x", ""]) expectRefusal(await world.get(`${path}?limit=${limit}`), 400);
      expectRefusal(await world.get(`${path}?cursor=guess`), 400);
    }
    expectRefusal(await world.get("/v1/outbox?status=lost"), 400);
  }),
];

export const guardScenarios: readonly Scenario<DaemonWorld>[] = [...strangers, ...bounds, ...shapes];
