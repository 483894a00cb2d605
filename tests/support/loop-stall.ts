// How long a broker is busy with something else before it answers: a thread of its own asks it one thing after the other, and
// looks how long the broker's main thread was on a processor meanwhile. So neither the test's own work counts, nor the time
// in which the machine was busy with other programs.
import { once } from "node:events";
import { Worker } from "node:worker_threads";

const asking = `
const { parentPort, workerData } = require("node:worker_threads");
const { readFileSync } = require("node:fs");
const http = require("node:http");
const { url, pid } = workerData;
const onProcessorMs = () => Number(readFileSync("/proc/" + pid + "/task/" + pid + "/schedstat", "utf8").split(" ")[0]) / 1e6;
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
let longest = 0;
let wanted = false;
const ask = () => new Promise((resolve, reject) => {
  http.get(url + "/healthz", { agent }, (answer) => answer.resume().on("end", resolve)).on("error", reject);
});
// On a message, reports when the question on its way is answered: what holds up that answer is part of the work before.
parentPort.on("message", () => { wanted = true; });
(async () => {
  for (;;) {
    try {
      const began = onProcessorMs();
      await ask();
      longest = Math.max(longest, onProcessorMs() - began);
      if (wanted) parentPort.postMessage(longest);
      if (wanted) longest = 0;
      wanted = false;
    } catch {
      // The broker has ended, and with it the measuring.
      return;
    }
  }
})();
`;

export class StallMeter {
  readonly #thread: Worker;

  private constructor(url: string, pid: number) {
    this.#thread = new Worker(asking, { eval: true, workerData: { url, pid } });
  }

  static async start(url: string, pid: number): Promise<StallMeter> {
    const meter = new StallMeter(url, pid);
    await once(meter.#thread, "online");
    return meter;
  }

  /** The longest time in ms that the broker worked on before an answer, since the last call. */
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
