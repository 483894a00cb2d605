// Sends of a plan: new ones, exact retries, and the same id with other content, here or on another host.
import { type Address, type DaemonOperation, queueNames, topicNames } from "../core/plan.ts";
import type { Answers } from "../oracles/answers.ts";
import type { CallEnd } from "../world/daemon.ts";
import type { World } from "../world/world.ts";

type Request = { readonly to: string; readonly message: string; readonly client_message_id?: string };
type Sent = { readonly address: Address; readonly request: Request };
type Of<Kind extends DaemonOperation["kind"]> = Extract<DaemonOperation, { kind: Kind }>;

/** Retries are mostly of something recent. */
const recent = 40;

export class Sender {
  readonly #world: World;
  readonly #answers: Answers;
  /** What each daemon was asked to send under an id of the caller. */
  readonly #sent: Sent[][];

  constructor(world: World, answers: Answers) {
    this.#world = world;
    this.#answers = answers;
    this.#sent = world.daemons.map(() => []);
  }

  send({ daemon, number, to, named, bytes }: Of<"send">): Promise<CallEnd> {
    const message = `message ${number} ${"x".repeat(bytes)}`;
    const content = { to: this.#addressOf(to), message };
    const request: Request = named ? { ...content, client_message_id: `send-${number}` } : content;
    return this.#ask(daemon, { address: to, request });
  }

  async retry({ daemon, pick }: Of<"retry">): Promise<CallEnd | "nothing"> {
    const before = this.#pick(daemon, pick);
    return before === undefined ? "nothing" : this.#ask(daemon, before);
  }

  async clash({ daemon, pick, abroad, number }: Of<"clash">): Promise<CallEnd | "nothing"> {
    const before = this.#pick(daemon, pick);
    if (before === undefined) return "nothing";
    const { client_message_id: id = "" } = before.request;
    this.#answers.contested.add(id);
    const elsewhere = (daemon + 1) % this.#world.daemons.length;
    return this.#ask(abroad ? elsewhere : daemon, {
      address: before.address,
      request: { ...before.request, message: `another message ${number}` },
    });
  }

  #pick(daemon: number, pick: number): Sent | undefined {
    const sent = (this.#sent[daemon] ?? []).slice(-recent);
    return sent[pick % Math.max(sent.length, 1)];
  }

  async #ask(daemon: number, sent: Sent): Promise<CallEnd> {
    const { request } = sent;
    const id = request.client_message_id;
    if (id !== undefined) {
      this.#answers.expectBody(id, request.message);
      this.#sent[daemon]?.push(sent);
    }
    const end = await this.#world.daemonAt(daemon).call("POST", "/v1/send", { body: request });
    if (typeof end === "string") return end;
    if (id === undefined && typeof end.body.client_message_id === "string") {
      this.#answers.expectBody(end.body.client_message_id, request.message);
    }
    this.#answers.noteSend(daemon, end);
    return end;
  }

  #addressOf(to: Address): string {
    switch (to.kind) {
      case "topic":
        return `#${topicNames[to.topic] ?? ""}`;
      case "dm":
        return `dm:${this.#world.daemonAt(to.daemon).pubkey}`;
      case "queue":
        return `queue:${queueNames[to.queue] ?? ""}`;
      case "nowhere":
        return "#nowhere";
    }
  }
}
