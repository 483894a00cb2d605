// A reader of server-sent events: the daemon's GET /v1/events, one event after the other, each wait with a time limit.
import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { Miss } from "../frame/endings.ts";
import { show } from "../frame/pattern.ts";
import { addressOf, describeCall, type HttpCall, type HttpTarget } from "./http.ts";

export type ServerEvent = { readonly event: string; readonly id: string; readonly data: string };

const patienceMs = 15_000;

export class EventStream {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly request: string;
  readonly #outgoing: ClientRequest;
  readonly #events: ServerEvent[] = [];
  #onEvent: () => void = () => undefined;
  #rest = "";

  private constructor(outgoing: ClientRequest, incoming: IncomingMessage, request: string) {
    this.status = incoming.statusCode ?? 0;
    this.headers = incoming.headers;
    this.request = request;
    this.#outgoing = outgoing;
    incoming.setEncoding("utf8").on("data", (text: string) => this.#read(text));
    incoming.on("error", () => undefined);
  }

  static open(target: HttpTarget, call: HttpCall): Promise<EventStream> {
    const headers = { ...(call.token === undefined ? {} : { authorization: `Bearer ${call.token}` }), ...call.headers };
    const request = describeCall(call);
    return new Promise((resolve, reject) => {
      const fail = (error: Error) => reject(new Miss({ expected: "a stream of events", got: error.message, request }));
      const outgoing = httpRequest(
        { ...addressOf(target), method: call.method, path: call.path, headers, agent: false },
        (incoming) => {
          resolve(new EventStream(outgoing, incoming, request));
        },
      );
      outgoing.on("error", fail);
      outgoing.end();
    });
  }

  /** The next matching event; others before it are skipped. */
  async next(what: string, wants: (event: ServerEvent) => boolean, boundMs = patienceMs): Promise<ServerEvent> {
    const passed: ServerEvent[] = [];
    const deadlineMs = performance.now() + boundMs;
    for (;;) {
      for (let event = this.#events.shift(); event !== undefined; event = this.#events.shift()) {
        if (wants(event)) return event;
        passed.push(event);
      }
      const leftMs = deadlineMs - performance.now();
      if (leftMs <= 0) throw new Miss({ expected: what, got: show(passed), request: this.request });
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs);
        this.#onEvent = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  close(): void {
    this.#outgoing.destroy();
  }

  #read(text: string): void {
    const blocks = (this.#rest + text).replaceAll("\r\n", "\n").split("\n\n");
    this.#rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const fields: Record<string, string> = { event: "message", id: "", data: "" };
      for (const line of block.split("\n")) {
        const [name = "", ...value] = line.split(":");
        if (name !== "") fields[name] = value.join(":").replace(/^ /, "");
      }
      // A comment that keeps the connection alive has no data, and is not an event.
      if (fields.data === "") continue;
      this.#events.push({ event: String(fields.event), id: String(fields.id), data: String(fields.data) });
    }
    this.#onEvent();
  }
}
