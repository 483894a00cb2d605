// A broker as a user starts it, on a store that has its meshes already. It ends by being killed, and is then held to
// every 201 that it gave.
import { LongRunning } from "../../tests/support/process.ts";
import type { Closing } from "../processes/closing.ts";
import { raisedLimit, type StoreLocation, storeFlags } from "./store-location.ts";
import { countAccepted } from "./store-pair.ts";

type Ready = { readonly url: string };

export class BenchBroker {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  readonly location: StoreLocation;
  readonly kill: () => Promise<void>;
  #accepted = 0;

  private constructor(process: LongRunning<Ready>, url: string, location: StoreLocation, kill: () => Promise<void>) {
    this.url = url;
    this.port = Number(new URL(url).port);
    this.pid = process.pid;
    this.location = location;
    this.kill = kill;
  }

  static async start(location: StoreLocation, folder: string, closing: Closing): Promise<BenchBroker> {
    const flags = Object.entries(storeFlags(location)).flatMap(([flag, value]) => [`--${flag}`, value]);
    const rest = ["--rate-limit", raisedLimit, "--connection-policy", "allow_concurrent", "--log-level", "error"];
    const args = ["broker", "serve", "--listen", "127.0.0.1:0", ...flags, ...rest];
    const process = new LongRunning<Ready>(args, { home: folder });
    const kill = closing.add(() => process.kill());
    const { url } = await process.ready;
    return new BenchBroker(process, url, location, kill);
  }

  /** Takes down what it has promised to keep. */
  promised(accepted: number): void {
    this.#accepted += accepted;
  }

  async killAndVerify(): Promise<void> {
    await this.kill();
    const stored = await countAccepted(this.location);
    if (stored !== this.#accepted) throw new Error(`${stored} sends are stored after ${this.#accepted} answers of 201`);
  }
}
