// A mesh under load on brokers side by side: members that send through whichever broker answers, and receivers that
// stay connected to whichever lives. Both write down the answers that they got, for the audit.
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import type { TestMember } from "./broker-harness.ts";
import type { BrokerProcess } from "./broker-process.ts";
import type { Random } from "./seed.ts";

type Answered = { readonly brokerMessageId: string; readonly historyId: number };

export type LoadSend = {
  readonly id: string;
  readonly sender: TestMember;
  readonly destination: { readonly kind: string; readonly ref: string };
  readonly body: string;
  /** What every 2xx for this id said. Undefined where no broker answered and the caller has given up. */
  answered: Answered | undefined;
};

const retryMs = 20;
const requestTimeoutMs = 15_000;

/** Asks with the same id, at one broker after another, until it is answered or gives up after an unanswered try. */
export async function sendThroughAny(
  send: LoadSend,
  options: { readonly brokers: readonly BrokerProcess[]; readonly random: Random; readonly giveUp: () => boolean },
): Promise<void> {
  const { id, sender, destination, body } = send;
  const token = await sender.token();
  for (;;) {
    const { url } = options.random.pick(options.brokers);
    const request = { client_message_id: id, destination, body };
    const answer = await post(`${url}/v1/meshes/${sender.meshId}/messages`, token, request);
    if (answer?.status === 200 || answer?.status === 201) {
      send.answered = {
        brokerMessageId: String(answer.body.broker_message_id),
        historyId: Number(answer.body.history_id),
      };
      return;
    }
    if (answer !== undefined && answer.body.retryable !== true) {
      throw new Error(`${id} was refused with ${answer.status}: ${JSON.stringify(answer.body)}`);
    }
    if (answer === undefined && options.giveUp()) return;
    await sleep(retryMs);
  }
}

/** Undefined: no answer came, and what became of the request is not known. */
async function post(
  url: string,
  token: string,
  body: object,
): Promise<{ status: number; body: Record<string, unknown> } | undefined> {
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(requestTimeoutMs),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  } catch {
    // The broker died with the request, or before it; the caller knows no more than that.
    return undefined;
  }
}

type Pushed = { readonly history_id: number; readonly client_message_id: string; readonly body?: string };

/** Keeps one daemon connection of a member alive, acks what it is pushed, and remembers it. */
export class LoadReceiver {
  /** By history id, with how often each was pushed. */
  readonly received = new Map<number, { readonly clientMessageId: string; readonly body: string; times: number }>();
  /** Pushes that came out of order: below one of the same connection, or new below one that was seen before. */
  readonly misordered: string[] = [];
  connections = 0;
  /** Where it is connected now. */
  connectedTo: BrokerProcess | undefined;
  readonly #member: TestMember;
  readonly #brokers: readonly BrokerProcess[];
  readonly #random: Random;
  #highest = 0;
  #stopped = false;
  #socket: WebSocket | undefined;

  constructor(member: TestMember, brokers: readonly BrokerProcess[], random: Random) {
    this.#member = member;
    this.#brokers = brokers;
    this.#random = random;
  }

  /** Resolves after stop. */
  async run(): Promise<void> {
    while (!this.#stopped) {
      await this.#connectOnce();
      if (!this.#stopped) await sleep(retryMs);
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#socket?.terminate();
  }

  /** Resolves when the connection has ended, however that was. */
  #connectOnce(): Promise<void> {
    const broker = this.#random.pick(this.#brokers);
    const socket = new WebSocket(`${broker.url.replace(/^http/, "ws")}/v1/connect`, { perMessageDeflate: false });
    this.#socket = socket;
    let lastPushed = 0;
    let requests = 1;
    const nonce = randomBytes(32).toString("hex");
    const ask = (frame: object) => socket.send(JSON.stringify({ ...frame, id: requests++ }));
    socket.on("message", (data: Buffer) => {
      const frame = JSON.parse(data.toString()) as { type: string; nonce?: string; broker_key?: string };
      if (frame.type === "proof") ask(this.#helloTo(nonce, String(frame.nonce), String(frame.broker_key)));
      if (frame.type !== "message") return;
      const pushed = frame as unknown as Pushed;
      this.#take(pushed, lastPushed);
      lastPushed = pushed.history_id;
      ask({ type: "ack", history_ids: [pushed.history_id] });
    });
    return new Promise((resolve) => {
      // A close follows every error.
      socket.on("error", () => undefined);
      socket.on("close", () => {
        this.connectedTo = undefined;
        resolve();
      });
      socket.on("open", () => {
        const { meshId: mesh_id } = this.#member;
        socket.send(JSON.stringify({ type: "connect", protocol: 2, mesh_id, nonce }));
        this.connections += 1;
        this.connectedTo = broker;
      });
    });
  }

  #helloTo(clientNonce: string, brokerNonce: string, brokerKey: string): object {
    const { meshId, keys } = this.#member;
    const session = [clientNonce, brokerNonce, meshId, brokerKey];
    const signed = ["claudemesh-hello-2", ...session, keys.pubkey, "daemon"].join("\0");
    return {
      type: "hello",
      mesh_id: meshId,
      pubkey: keys.pubkey,
      kind: "daemon",
      signature: keys.sign(Buffer.from(signed)),
    };
  }

  #take(pushed: Pushed, lastOfConnection: number): void {
    const { history_id: historyId, client_message_id: clientMessageId, body = "" } = pushed;
    const known = this.received.get(historyId);
    if (historyId <= lastOfConnection || (known === undefined && historyId < this.#highest)) {
      this.misordered.push(`${clientMessageId} at ${historyId}`);
    }
    this.#highest = Math.max(this.#highest, historyId);
    if (known === undefined) this.received.set(historyId, { clientMessageId, body, times: 1 });
    else known.times += 1;
  }
}
