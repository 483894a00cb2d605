// One request to a real receiver: where it may go, what of the answer counts, and that it always ends.
import { createServer as createTcpServer } from "node:net";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { WebhookReceiver } from "../../../../tests/support/webhook-receiver.ts";
import { type PostWebhookOptions, postWebhook } from "./post-webhook.ts";

let receiver: WebhookReceiver;
beforeEach(async () => {
  receiver = await WebhookReceiver.start();
});
afterEach(() => receiver.stop());

const body = Buffer.from('{"message":{}}');
const request = { headers: { "content-type": "application/json", "content-length": String(body.length) }, body };
const post = (url: string, options: Partial<PostWebhookOptions> = {}) =>
  postWebhook(url, request, {
    allowPrivate: false,
    timeoutMs: 5_000,
    signal: new AbortController().signal,
    ...options,
  });
const toThisHost = { address: "127.0.0.1", family: 4 };

describe("where a webhook may go", () => {
  test("a private address is refused, and nothing reaches it", async () => {
    expect(await post(receiver.url)).toMatchObject({ type: "failed", reason: expect.stringContaining("private") });
    expect(await post(`http://localhost:${receiver.port}/`)).toMatchObject({ type: "failed" });
    expect(receiver.received).toEqual([]);
  });

  test("a name that leads to a private address is refused, and nothing reaches it", async () => {
    const resolve = vi.fn(async () => [toThisHost, { address: "fd00::1", family: 6 }]);
    const tried = await post(`http://receiver.example:${receiver.port}/`, { resolve });
    expect(tried).toMatchObject({ type: "failed", reason: expect.stringContaining("private address") });
    expect(resolve).toHaveBeenCalledTimes(1);
    expect(receiver.received).toEqual([]);
  });

  test("of the addresses of a name only public ones are tried", async () => {
    // A public address where no host answers, and one of this host where a server would.
    const resolve = async () => [toThisHost, { address: "2001:4860:4860::8888", family: 6 }];
    const tried = await post(`http://receiver.example:${receiver.port}/`, { resolve, timeoutMs: 300 });
    expect(tried).toMatchObject({ type: "failed" });
    expect(receiver.received).toEqual([]);
  });

  test("the connection goes to the address that was checked: a name is looked up once for each request", async () => {
    const resolve = vi.fn(async () => [toThisHost]);
    const options = { resolve, allowPrivate: true };
    expect(await post(`http://receiver.example:${receiver.port}/x?y=1`, options)).toMatchObject({ status: 204 });
    expect(resolve.mock.calls).toEqual([["receiver.example"]]);
    expect(receiver.received).toMatchObject([
      { path: "/x?y=1", headers: { host: `receiver.example:${receiver.port}` } },
    ]);
  });

  test("a redirect is an answer and is not followed", async () => {
    receiver.answerWith(() => (_request, response) => {
      response.writeHead(307, { location: "/elsewhere" }).end();
    });
    expect(await post(receiver.url, { allowPrivate: true })).toMatchObject({ type: "answered", status: 307 });
    expect(receiver.received.map(({ path }) => path)).toEqual(["/hook"]);
  });

  test("an unknown name is a failure with its reason", async () => {
    const resolve = async () => Promise.reject(new Error("getaddrinfo ENOTFOUND receiver.example"));
    expect(await post("http://receiver.example/", { resolve })).toEqual({
      type: "failed",
      reason: "getaddrinfo ENOTFOUND receiver.example",
    });
  });
});

describe("what a receiver does", () => {
  const local = { allowPrivate: true };

  test("its status and how long it wants to be left alone are heard", async () => {
    receiver.answerWith(() => (_request, response) => {
      response.writeHead(503, { "retry-after": "7" }).end();
    });
    expect(await post(receiver.url, local)).toEqual({ type: "answered", status: 503, retryAfterMs: 7_000 });
    expect(receiver.received[0]?.body).toBe(body.toString());
  });

  test("an answer without end is cut off, and its status counts", async () => {
    let closed = false;
    receiver.answerWith(() => (_request, response) => {
      response.writeHead(200);
      response.on("close", () => {
        closed = true;
      });
      const more = () => {
        while (!closed && response.write("x".repeat(65_536)));
        if (!closed) response.once("drain", more);
      };
      more();
    });
    expect(await post(receiver.url, local)).toMatchObject({ type: "answered", status: 200 });
    await vi.waitFor(() => expect(closed).toBe(true));
  });

  test("one that says nothing is given up after the time-out", async () => {
    receiver.answerWith(() => () => undefined);
    expect(await post(receiver.url, { ...local, timeoutMs: 100 })).toEqual({
      type: "failed",
      reason: "no answer within 100 ms",
    });
  });

  test("one that begins its answer and never ends it has answered", async () => {
    receiver.answerWith(() => (_request, response) => {
      response.writeHead(200).write("a");
    });
    expect(await post(receiver.url, { ...local, timeoutMs: 100 })).toMatchObject({ type: "answered", status: 200 });
  });

  test("one that hangs up, or speaks no HTTP, is a failure", async () => {
    receiver.answerWith(() => (_request, response) => {
      response.destroy();
    });
    expect(await post(receiver.url, local)).toMatchObject({ type: "failed" });
    const tcp = createTcpServer((socket) => socket.on("error", () => undefined).end("SMTP?\r\n"));
    await new Promise<void>((resolve) => tcp.listen(0, "127.0.0.1", resolve));
    const { port } = tcp.address() as { port: number };
    expect(await post(`http://127.0.0.1:${port}/`, local)).toMatchObject({ type: "failed" });
    tcp.close();
  });

  test("a stop of the broker breaks the request off, and it is no failure of the receiver", async () => {
    receiver.answerWith(() => () => undefined);
    const stop = new AbortController();
    const tried = post(receiver.url, { ...local, signal: stop.signal });
    await vi.waitFor(() => expect(receiver.received).toHaveLength(1));
    stop.abort();
    expect(await tried).toEqual({ type: "interrupted" });
  });
});
