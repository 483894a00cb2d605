// The daemon under test as programs on its host reach it, and, where the kit has the options, the link to its broker
// and another member of its mesh. Ids are new for every use.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { CannotBegin, Miss, needed, Skipped } from "../../frame/endings.ts";
import { type Answer, eventually, expectAnswer, expectThat, fieldOf } from "../../frame/expect.ts";
import type { OptionValues } from "../../frame/options.ts";
import { findDifference, type Pattern } from "../../frame/pattern.ts";
import { loseAnswer } from "../../transport/cutting-proxy.ts";
import { EventStream } from "../../transport/event-stream.ts";
import {
  ask,
  exchange,
  type HttpAnswer,
  type HttpCall,
  type HttpTarget,
  NoAnswer,
  readHttpUrl,
} from "../../transport/http.ts";
import { LinkProxy } from "../../transport/link-proxy.ts";
import { brokerKeysFrom } from "../../transport/member-keys.ts";

/** One way to reach the daemon: its socket, or its port with a token. */
export type Door = { readonly target: HttpTarget; readonly token: string | undefined };

/**
 * How long a daemon that was cut off several times may wait before it tries again: a minute of backoff and a margin.
 */
export const reconnectBoundMs = 90_000;

export class DaemonWorld {
  readonly door: Door;
  readonly #socket: Door | undefined;
  readonly #tcp: Door | undefined;
  readonly #broker: string | undefined;
  readonly #peerToken: string | undefined;
  readonly #restart: string | undefined;
  readonly #brokerKey: string | undefined;
  readonly #streams = new Set<EventStream>();
  readonly #run = randomBytes(5).toString("hex");
  #link: LinkProxy | undefined;
  #count = 0;

  constructor(options: OptionValues) {
    const socket = options.one("socket");
    const url = options.one("url");
    const token = options.one("token");
    if (url !== undefined && token === undefined)
      throw new CannotBegin("--url needs --token or --token-file: the daemon's local token.");
    this.#socket = socket === undefined ? undefined : { target: { type: "unix", path: socket }, token: undefined };
    this.#tcp = url === undefined ? undefined : { target: readHttpUrl(url), token };
    const door = this.#socket ?? this.#tcp;
    if (door === undefined) throw new CannotBegin("Give --socket <path>, or --url <url> with --token-file, or both.");
    this.door = door;
    this.#broker = options.one("broker");
    this.#peerToken = options.one("peer-token");
    this.#restart = options.one("restart");
    this.#brokerKey = options.one("broker-key");
  }

  static async open(options: OptionValues): Promise<DaemonWorld> {
    const world = new DaemonWorld(options);
    for (const door of [world.#socket, world.#tcp]) {
      if (door === undefined) continue;
      try {
        await exchange(door.target, { method: "GET", path: "/v1/version", token: door.token });
      } catch (error) {
        if (error instanceof NoAnswer) throw new CannotBegin(`No daemon answers: ${error.message}`);
        throw error;
      }
    }
    await world.#standBetween(options.one("between"));
    return world;
  }

  get socket(): Door {
    return needed(this.#socket, "--socket");
  }

  get tcp(): Door {
    return needed(this.#tcp, "--url and --token-file: the guards of the loopback");
  }

  get link(): LinkProxy {
    return needed(this.#link, "--between and --broker: the kit on the wire to the broker");
  }

  fresh(what: string): string {
    this.#count++;
    return `${what}-${this.#run}-${this.#count}`;
  }

  ask(call: HttpCall, door: Door = this.door): Promise<HttpAnswer> {
    return ask(door.target, { token: door.token, ...call });
  }

  get(path: string): Promise<HttpAnswer> {
    return this.ask({ method: "GET", path });
  }

  post(path: string, json: unknown = {}): Promise<HttpAnswer> {
    return this.ask({ method: "POST", path, json });
  }

  send(json: object): Promise<HttpAnswer> {
    return this.post("/v1/send", json);
  }

  lose(path: string, json: unknown = {}): Promise<HttpAnswer> {
    return loseAnswer(this.door.target, { method: "POST", path, json, token: this.door.token });
  }

  async events(options: { readonly lastEventId?: string; readonly door?: Door } = {}): Promise<EventStream> {
    const { door = this.door, lastEventId } = options;
    const headers = lastEventId === undefined ? {} : { "last-event-id": lastEventId };
    const stream = await EventStream.open(door.target, {
      method: "GET",
      path: "/v1/events",
      token: door.token,
      headers,
    });
    this.#streams.add(stream);
    return stream;
  }

  /** Another member of the same mesh, over the broker's HTTP API. */
  async peer(method: string, path: string, json?: unknown): Promise<HttpAnswer> {
    const what = "--broker and --peer-token: another member of the daemon's mesh";
    const [broker, token] = [needed(this.#broker, what), needed(this.#peerToken, what)];
    const mesh = fieldOf(await this.get("/v1/version"), "mesh");
    return ask(readHttpUrl(broker), { method, path: `/v1/meshes/${mesh}${path}`, token, json });
  }

  /** The daemon's own key. */
  async ownKey(): Promise<string> {
    return fieldOf(expectAnswer(await this.get("/v1/version"), 200), "member_pubkey");
  }

  async untilOnline(boundMs = reconnectBoundMs): Promise<void> {
    await eventually(
      "a daemon that is connected to its broker",
      async () => {
        try {
          const health = await exchange(this.door.target, {
            method: "GET",
            path: "/v1/health",
            token: this.door.token,
          });
          const { state } = (health.body.broker ?? {}) as { state?: unknown };
          return state === "online" ? { found: true } : { got: health.body, request: health.request };
        } catch (error) {
          if (!(error instanceof NoAnswer)) throw error;
          return { got: error.message, request: "GET /v1/health" };
        }
      },
      boundMs,
    );
  }

  /** Skips a scenario that needs a broker where there is none. */
  async needBroker(): Promise<void> {
    try {
      await this.untilOnline(this.#link === undefined ? 5_000 : reconnectBoundMs);
    } catch (error) {
      if (error instanceof Miss && this.#link === undefined)
        throw new Skipped("the daemon is not connected to a broker");
      throw error;
    }
  }

  /** The columns of a row, once they match. */
  async untilRow(id: string, wanted: Pattern, boundMs?: number): Promise<Answer> {
    return eventually(
      `the row of ${id} ${JSON.stringify(wanted)}`,
      async () => {
        const answer = await this.get(`/v1/outbox/${encodeURIComponent(id)}`);
        try {
          expectAnswer(answer, 200, { row: wanted });
          return { found: { ...answer, body: answer.body.row as Answer["body"] } };
        } catch (error) {
          if (!(error instanceof Miss)) throw error;
          return { got: answer.body, request: answer.request };
        }
      },
      boundMs,
    );
  }

  /** A topic that exists, so that a send to it is not refused. */
  async topic(): Promise<string> {
    await this.needBroker();
    const name = this.fresh("topic");
    expectAnswer(await this.peer("POST", "/topics", { name }), 201);
    return name;
  }

  /** A message that the broker refuses for good, because its id belongs to another member: its row is dead. */
  async deadRow(fields: object = {}): Promise<{ readonly id: string; readonly to: string; readonly message: string }> {
    await this.needBroker();
    const send = { to: "@self", message: "x", client_message_id: this.fresh("dead"), ...fields };
    const { client_message_id } = send;
    const destination = { kind: "dm", ref: await this.ownKey() };
    // No key opens this body; brokers check the version alone.
    const competing = { client_message_id, destination, envelope_version: "3", body_base64: "AAAA" };
    expectAnswer(await this.peer("POST", "/messages", competing), 201);
    expectAnswer(await this.send(send), 202);
    await this.untilRow(send.client_message_id, { status: "dead" });
    return { ...send, id: send.client_message_id };
  }

  /** A message to the daemon's own member that the broker has accepted. */
  async doneRow(fields: object = {}): Promise<{ readonly id: string; readonly row: Answer["body"] }> {
    await this.needBroker();
    const send = { to: "@self", message: "x", client_message_id: this.fresh("done"), ...fields };
    expectAnswer(await this.send(send), 202);
    const { body } = await this.untilRow(send.client_message_id, { status: "done" });
    return { id: send.client_message_id, row: body };
  }

  /** Makes the broker announce something else while `use` runs; `limits` is what /v1/compat then has to show. */
  async whileAnnounced(
    feature: string,
    parameters: Readonly<Record<string, unknown>>,
    limits: { readonly [name: string]: Pattern },
    use: () => Promise<void>,
  ): Promise<void> {
    const { link } = this;
    await this.needBroker();
    link.needKey();
    link.rule({
      announce: (features) => ({ ...features, [feature]: { ...features[feature], ...parameters } }),
    });
    link.cut();
    try {
      await this.#untilCompat(limits);
      await use();
    } finally {
      link.rule({});
      link.cut();
      await this.untilOnline();
    }
  }

  async #untilCompat(limits: { readonly [name: string]: Pattern }): Promise<void> {
    await eventually(
      `limits ${JSON.stringify(limits)}`,
      async () => {
        const answer = await this.get("/v1/compat");
        const fits = findDifference({ current: true, limits }, answer.body) === undefined;
        return fits ? { found: true } : { got: answer.body, request: answer.request };
      },
      reconnectBoundMs,
    );
  }

  /** Starts the daemon again, where it has ended. */
  async comeBack(): Promise<void> {
    const restart = this.needRestart();
    const running = await exchange(this.door.target, {
      method: "GET",
      path: "/v1/version",
      token: this.door.token,
    }).then(
      () => true,
      () => false,
    );
    if (!running) {
      const child = spawn(restart, { shell: true, stdio: "ignore" });
      const code = await new Promise((resolve) => child.on("close", resolve));
      expectThat(code === 0, "--restart ends with 0", code, restart);
    }
    await this.untilOnline();
  }

  /** The command that restarts the daemon; throws Skipped where there is none. */
  needRestart(): string {
    return needed(this.#restart, "--restart <command>: the daemon may end over this");
  }

  async tidy(): Promise<void> {
    for (const stream of this.#streams) stream.close();
    this.#streams.clear();
    this.#link?.reset();
  }

  async close(): Promise<void> {
    await this.tidy();
    await this.#link?.stop();
  }

  async #standBetween(listen: string | undefined): Promise<void> {
    if (listen === undefined) return;
    if (this.#broker === undefined)
      throw new CannotBegin("--between needs --broker <url>: where the broker really is.");
    const match = /^(?:wss?:\/\/|https?:\/\/)?(.+):([0-9]{1,5})$/.exec(listen);
    if (match?.[1] === undefined)
      throw new CannotBegin("--between takes host:port, where the daemon looks for its broker.");
    try {
      const host = match[1].replace(/^\[(.*)\]$/, "$1");
      const keys = this.#brokerKey === undefined ? undefined : brokerKeysFrom(this.#brokerKey);
      this.#link = await LinkProxy.start(host, Number(match[2]), this.#broker, keys);
      await this.untilOnline();
    } catch (error) {
      await this.#link?.stop();
      const why = error instanceof Error ? error.message : String(error);
      throw new CannotBegin(
        `The daemon did not connect through --between ${listen}; is that its broker's address? ${why}`,
      );
    }
  }
}
