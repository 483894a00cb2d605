import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Queue } from "../testing/fake-broker.ts";
import { TemporaryDir } from "../testing/temporary-dir.ts";
import type { DaemonEvent } from "./daemon-bodies.ts";
import { type EventsOptions, readEvents } from "./daemon-events.ts";
import { DaemonRefused, DaemonUnreachable } from "./daemon-failures.ts";
import { readTextEvents } from "./event-text-reader.ts";

type Visit = { readonly headers: IncomingMessage["headers"]; readonly response: ServerResponse };

let dir: TemporaryDir;
let server: Server;
let visits: Queue<Visit>;

async function startServer(): Promise<void> {
  server = createServer(({ headers }, response) => visits.push({ headers, response }));
  await new Promise<void>((resolve) => server.listen(dir.at("sock"), resolve));
}

async function stopServer(): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}

beforeEach(async () => {
  dir = new TemporaryDir();
  visits = new Queue();
  await startServer();
});

afterEach(async () => {
  await stopServer();
  dir.remove();
});

const event = (id: string, kind = "message") => `event: ${kind}\nid: ${id}\ndata: {"body":"${id}"}\n\n`;

function read(options: EventsOptions = {}) {
  const events = readEvents(dir.at("sock"), options);
  const next = async () => (await events.next()).value as DaemonEvent;
  return { events, next };
}

function begin({ response }: Visit, ...texts: string[]): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const text of texts) response.write(text);
}

function refuse({ response }: Visit, status: number, error: string, retryable: boolean): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ error, message: "no", retryable }));
}

describe("a line that comes in many pieces", () => {
  it("is put together once, and not looked through again with each piece", async () => {
    const pieces = ["data: ", ...Array.from({ length: 1_000 }, () => "x".repeat(100)), "\n\n"];
    const split = vi.spyOn(String.prototype, "split");
    const chunks = pieces.map((piece) => Buffer.from(piece));
    const read: unknown[] = [];
    for await (const event of readTextEvents(Readable.from(chunks))) read.push(event);
    const looked = split.mock.contexts.reduce<number>((sum, text) => sum + String(text).length, 0);
    split.mockRestore();
    expect(read).toEqual([{ kind: "message", id: "", data: "x".repeat(100_000) }]);
    expect(looked).toBeLessThan(2 * 100_000);
  });
});

describe("events of the daemon", () => {
  it("come one by one with their ids, and kinds that are newer than this client are passed over", async () => {
    const { next } = read();
    const first = next();
    const visit = await visits.next();
    expect(visit.headers).not.toHaveProperty("last-event-id");
    begin(visit, "retry: 1000\n\n", ": a comment\n\n", event("1"), event("x", "weather"), event("2.7", "outbox"));
    expect(await first).toEqual({ kind: "message", id: "1", data: { body: "1" } });
    expect(await next()).toMatchObject({ kind: "outbox", id: "2.7" });
  });

  it("go on behind the last one after the connection was cut, ended or refused for a while", async () => {
    const { next } = read({ lastEventId: "0" });
    let coming = next();
    const first = await visits.next();
    expect(first.headers["last-event-id"]).toBe("0");
    begin(first, event("1"), "event: message\nid: half");
    await coming;
    coming = next();
    first.response.destroy();
    const second = await visits.next();
    expect(second.headers["last-event-id"]).toBe("1");
    begin(second, event("2", "lagged"));
    second.response.end();
    expect(await coming).toMatchObject({ kind: "lagged" });
    coming = next();
    const third = await visits.next();
    expect(third.headers["last-event-id"]).toBe("2");
    refuse(third, 429, "too_many_streams", true);
    const fourth = await visits.next();
    await stopServer();
    expect(fourth.headers["last-event-id"]).toBe("2");
    await startServer();
    begin(await visits.next(), event("3"));
    expect(await coming).toMatchObject({ id: "3" });
  });

  it("throw where there is no daemon, or one that refuses, before the first event", async () => {
    const refused = read().next();
    refuse(await visits.next(), 429, "too_many_streams", true);
    await expect(refused).rejects.toThrow(DaemonRefused);
    await expect(refused).rejects.toMatchObject({ status: 429, body: { error: "too_many_streams" } });
    const cut = read().next();
    (await visits.next()).response.destroy();
    await expect(cut).rejects.toMatchObject({ name: "DaemonUnreachable", sent: true });
    await stopServer();
    const away = read().next();
    await expect(away).rejects.toThrow(DaemonUnreachable);
    await expect(away).rejects.toMatchObject({ sent: false });
    await startServer();
  });

  it("throw where going on is refused for good", async () => {
    const { next } = read();
    const first = next();
    const visit = await visits.next();
    begin(visit, event("1"));
    await first;
    const coming = next();
    visit.response.end();
    refuse(await visits.next(), 400, "invalid_request", false);
    await expect(coming).rejects.toMatchObject({ status: 400 });
  });

  it("end without an error when they are no longer wanted, and the connection with them", async () => {
    const stop = new AbortController();
    const { events, next } = read({ signal: stop.signal });
    const first = next();
    const visit = await visits.next();
    const closed = new Promise((resolve) => visit.response.on("close", resolve));
    begin(visit, event("1"));
    await first;
    const coming = events.next();
    stop.abort();
    expect(await coming).toEqual({ done: true, value: undefined });
    await closed;

    const other = read();
    const begun = other.next();
    const otherVisit = await visits.next();
    const otherClosed = new Promise((resolve) => otherVisit.response.on("close", resolve));
    begin(otherVisit, event("1"));
    await begun;
    await other.events.return(undefined);
    await otherClosed;
  });
});

describe("text/event-stream", () => {
  it("is read the same wherever its bytes are cut", async () => {
    const text =
      ': hi\n\nevent: a\nid: 1\ndata: "grüße 🎈"\n\ndata:x\r\ndata: y\r\nfoo: bar\r\n\r\nid: only\n\nevent: b\n';
    const bytes = new TextEncoder().encode(text);
    const expected = [
      { kind: "a", id: "1", data: '"grüße 🎈"' },
      { kind: "message", id: "", data: "x\ny" },
    ];
    for (let at = 0; at <= bytes.length; at++) {
      const chunks = async function* () {
        yield bytes.subarray(0, at);
        yield bytes.subarray(at);
      };
      const events: unknown[] = [];
      for await (const each of readTextEvents(chunks())) events.push(each);
      expect(events).toEqual(expected);
    }
  });
});
