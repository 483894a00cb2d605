// One broker as a user starts it, on whatever store its flags name. Comes back on the port that it had.
import { LongRunning } from "./process.ts";

type BrokerReady = { readonly url: string; readonly admin_token_file: string; readonly store: string };

export class BrokerProcess {
  readonly #folder: string;
  readonly #flags: readonly string[];
  #listen = "127.0.0.1:0";
  #process: LongRunning<BrokerReady> | undefined;

  constructor(folder: string, flags: readonly string[]) {
    this.#folder = folder;
    this.#flags = flags;
  }

  get url(): string {
    return `http://${this.#listen}`;
  }

  get process(): LongRunning<BrokerReady> {
    if (this.#process === undefined) throw new Error("the broker has not been started");
    return this.#process;
  }

  async start(env: Readonly<Record<string, string>> = {}): Promise<BrokerReady> {
    const args = ["broker", "serve", "--listen", this.#listen, "--log-level", "warn", ...this.#flags];
    this.#process = new LongRunning(args, { home: this.#folder, env });
    const ready = await this.#process.ready;
    this.#listen = new URL(ready.url).host;
    return ready;
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    await this.#process?.kill(signal);
  }
}
