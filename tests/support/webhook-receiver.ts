// A receiver of webhooks as a user would write it: a plain HTTP server that keeps what came and answers as a test asks.
// Verifies signatures with nothing but what docs/webhooks.md says.
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export type ReceivedHook = {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly content: { readonly message: Readonly<Record<string, unknown>> } & Readonly<Record<string, unknown>>;
};

/** What to answer to the nth request, from 1: a status, or whatever a listener does. */
export type HookAnswer = (n: number, hook: ReceivedHook) => number | RequestListener;

export class WebhookReceiver {
  readonly received: ReceivedHook[] = [];
  readonly #server: Server;
  #answer: HookAnswer;

  private constructor(answer: HookAnswer) {
    this.#answer = answer;
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("error", () => undefined);
      request.on("end", () => {
        const body = Buffer.concat(chunks).toString("utf8");
        const { url: path = "", headers } = request;
        const hook = { path, headers, body, content: body === "" ? {} : JSON.parse(body) } as ReceivedHook;
        this.received.push(hook);
        const answer = this.#answer(this.received.length, hook);
        if (typeof answer === "function") answer(request, response);
        else response.writeHead(answer).end("thanks");
      });
    });
  }

  static async start(answer: HookAnswer = () => 204): Promise<WebhookReceiver> {
    const receiver = new WebhookReceiver(answer);
    await new Promise<void>((resolve) => receiver.#server.listen(0, "127.0.0.1", resolve));
    return receiver;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/hook`;
  }

  /** Client ids of the messages that came, with repetitions. */
  get messages(): string[] {
    return this.received.map(({ content }) => String(content.message.client_message_id));
  }

  answerWith(answer: HookAnswer): void {
    this.#answer = answer;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** As a receiver verifies: the secret it was given, the raw body, and no request older than five minutes. */
export function isSigned(hook: ReceivedHook, secret: string, nowMs = Date.now()): boolean {
  const timestamp = String(hook.headers["x-claudemesh-timestamp"]);
  const expected = `sha256=${createHmac("sha256", secret).update(`${timestamp}.${hook.body}`).digest("hex")}`;
  const given = String(hook.headers["x-claudemesh-signature"]);
  if (given.length !== expected.length) return false;
  return timingSafeEqual(Buffer.from(given), Buffer.from(expected)) && Math.abs(nowMs - Number(timestamp)) < 300_000;
}
