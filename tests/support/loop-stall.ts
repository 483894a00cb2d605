// How long a broker process answers nothing: a thread of its own asks it one thing after the other, so that what the test
// itself is doing does not count.
import { once } from "node:events";
import { Worker } from "node:worker_threads";

const asking = `
const { parentPort, workerData } = require("node:worker_threads");
const http = require("node:http");
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
let longest = 0;
const ask = () => new Promise((resolve, reject) => {
  http.get(workerData + "/healthz", { agent }, (answer) => answer.resume().on("end", resolve)).on("error", reject);
});
parentPort.on("message", () => { parentPort.postMessage(longest); longest = 0; });
(async () => {
  for (;;) {
    const began = performance.now();
    try {
      await ask();
    } catch {
      // The broker has ended, and with it the measuring.
      return;
    }
    longest = Math.max(longest, performance.now() - began);
  }
})();
`;

export class StallMeter {
  readonly #thread: Worker;

  private constructor(url: string) {
    this.#thread = new Worker(asking, { eval: true, workerData: url });
  }

  static async start(url: string): Promise<StallMeter> {
    const meter = new StallMeter(url);
    await once(meter.#thread, "online");
    return meter;
  }

  /** The longest time in ms that an answer took since the last call. */
  async longestMs(): Promise<number> {
    const answer = once(this.#thread, "message");
    this.#thread.postMessage("");
    const [longest] = (await answer) as [number];
    return longest;
  }

  async stop(): Promise<void> {
    await this.#thread.terminate();
  }
}
