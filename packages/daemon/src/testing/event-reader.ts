// A raw reader of GET /v1/events that a test can stop reading with, cut off and let resume.
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { onTestFinished } from "vitest";
import type { TestDaemon } from "./test-daemon.ts";

export type SeenEvent = {
  readonly kind: string;
  readonly id: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into events field by field
  readonly data: any;
};

export type EventReaderOptions = {
  readonly lastEventId?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Over TCP instead of the socket. */
  readonly port?: number;
};

export class EventReader {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  /** Everything so far, in its order. */
  readonly events: SeenEvent[] = [];
  /** Resolves when the stream has ended, by either side. */
  readonly ended: Promise<void>;
  comments = 0;
  readonly #response: IncomingMessage;
  #rest = "";
  #wake: () => void = () => undefined;
  #isEnded = false;

  static open(daemon: Pick<TestDaemon, "paths">, options: EventReaderOptions = {}): Promise<EventReader> {
    const { lastEventId, path = "/v1/events", headers = {}, port } = options;
    const target = port === undefined ? { socketPath: daemon.paths.sock } : { host: "127.0.0.1", port };
    const resume = lastEventId === undefined ? {} : { "last-event-id": lastEventId };
    return new Promise((resolve, reject) => {
      const agent = new Agent({ keepAlive: false });
      const request = httpRequest({ ...target, agent, path, headers: { ...headers, ...resume } });
      request.on("error", reject);
      request.on("response", (response) => resolve(new EventReader(response)));
      request.end();
    });
  }

  private constructor(response: IncomingMessage) {
    this.#response = response;
    this.status = response.statusCode ?? 0;
    this.headers = response.headers;
    response.setEncoding("utf8");
    response.on("data", (text: string) => this.#read(text));
    // A stream that is cut ends with an error; its end is what counts.
    response.on("error", () => undefined);
    this.ended = new Promise((resolve) => {
      response.on("close", () => {
        this.#isEnded = true;
        this.#wake();
        resolve();
      });
    });
    onTestFinished(() => this.cut());
  }

  get lastEventId(): string | undefined {
    return this.events.at(-1)?.id;
  }

  of(kind: string): SeenEvent[] {
    return this.events.filter((event) => event.kind === kind);
  }

  /** Resolves once the events that were read satisfy the test. */
  async until(isSatisfied: (events: readonly SeenEvent[]) => boolean): Promise<void> {
    while (!isSatisfied(this.events)) {
      if (this.#isEnded) throw new Error(`the stream ended after ${JSON.stringify(this.events).slice(-1_000)}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  untilCount(kind: string, count: number): Promise<void> {
    return this.until(() => this.of(kind).length >= count);
  }

  async untilComment(): Promise<void> {
    await this.until(() => this.comments > 0);
  }

  pause(): void {
    this.#response.pause();
  }

  resume(): void {
    this.#response.resume();
  }

  cut(): void {
    this.#response.destroy();
  }

  #read(text: string): void {
    const blocks = (this.#rest + text).split("\n\n");
    this.#rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const fields = new Map(block.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line]));
      const field = (name: string) => fields.get(name)?.slice(name.length + 2) ?? "";
      if (fields.has("")) this.comments++;
      if (fields.has("data")) {
        this.events.push({ kind: field("event"), id: field("id"), data: JSON.parse(field("data")) });
      }
    }
    this.#wake();
  }
}
