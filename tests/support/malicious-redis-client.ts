// A plain client of the Redis that brokers use: it hears everything on their channel, says what it likes there, cuts them off,
// and writes the keys of the limiter.
import { createClient } from "redis";
import { onTestFinished } from "vitest";

type Client = ReturnType<typeof open>;

const channel = "claudemesh:signals";
const open = (url: string) => createClient({ url });
/** In each message, before the text. */
const signatureCharacters = 64;

export class MaliciousRedisClient {
  /** What was said on the channel, as it was said. */
  readonly said: string[] = [];
  readonly #client: Client;

  private constructor(client: Client) {
    this.#client = client;
  }

  static async connect(url: string): Promise<MaliciousRedisClient> {
    const [speaking, listening] = [open(url), open(url)];
    for (const client of [speaking, listening]) {
      client.on("error", () => undefined);
      await client.connect();
      onTestFinished(() => client.destroy());
    }
    const actor = new MaliciousRedisClient(speaking);
    await listening.subscribe(channel, (text) => actor.said.push(text));
    return actor;
  }

  /** The signals of a type that were heard so far. */
  heard(type: string): readonly unknown[] {
    return this.said
      .map((text) => JSON.parse(text.slice(signatureCharacters + 1)) as { signals: readonly { type: string }[] })
      .flatMap(({ signals }) => signals.filter((signal) => signal.type === type));
  }

  async say(text: string): Promise<void> {
    await this.#client.publish(channel, text);
  }

  /** Brokers' connections for signals are cut, and again whenever they come back, until the returned function is called. */
  async cutOffForEver(): Promise<() => Promise<void>> {
    let goesOn = true;
    const cutOnce = async () => {
      for (const name of ["claudemesh-signals", "claudemesh-listener"]) await this.#cut(name);
    };
    await cutOnce();
    const goOn = async () => {
      while (goesOn) await cutOnce();
    };
    const cutting = goOn();
    const stop = async () => {
      goesOn = false;
      await cutting;
    };
    onTestFinished(stop);
    return stop;
  }

  async #cut(name: string): Promise<void> {
    const clients = (await this.#client.clientList()).filter((client) => client.name === name);
    for (const { id } of clients) await this.#client.clientKill({ filter: "ID", id });
  }

  async #budgetsOf(meshId: string): Promise<readonly string[]> {
    return this.#client.keys(`rls:{${meshId}}:*`);
  }

  /** Fills every budget that the mesh has spent of. */
  async spend(meshId: string): Promise<void> {
    const ids = Array.from({ length: 100 }, (_, at) => `spent-${at}`);
    for (const key of await this.#budgetsOf(meshId)) await this.#client.sAdd(key, ids);
  }

  async refund(meshId: string): Promise<void> {
    for (const key of await this.#budgetsOf(meshId)) await this.#client.del(key);
  }

  async spoil(meshId: string): Promise<void> {
    for (const key of await this.#budgetsOf(meshId)) await this.#client.set(key, "no budget");
  }
}
