import { createDaemonClient } from "@claudemesh/client/daemon";
import { describe, expect, it, onTestFinished } from "vitest";
import { deliver, delivery } from "../testing/deliveries.ts";
import { EventReader } from "../testing/event-reader.ts";
import { settle } from "../testing/scripted-link.ts";
import { startTestDaemon, type TestDaemon } from "../testing/test-daemon.ts";

const messages = 400;
const first = "0".repeat(26);

/** Numbers in [0, below), the same for the same seed. */
function createDice(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

describe.each([1, 2, 3])("with schedule %i of disconnects and restarts", (seed) => {
  it("a reader that resumes behind its last event gets every message once, in its order", async () => {
    const dice = createDice(seed);
    const world: { daemon: TestDaemon; isUp: boolean } = { daemon: await startTestDaemon(), isUp: true };
    const all = Array.from({ length: messages }, (_, index) => index + 1);
    let cuts = 0;
    let restarts = 0;

    /** Reads a while, is cut off in the middle of anything, and comes back. */
    const readWithCuts = async (): Promise<number[]> => {
      const seen: number[] = [];
      let lastEventId = first;
      while (seen.length < messages) {
        if (!world.isUp) {
          await settle(1);
          continue;
        }
        const reader = await EventReader.open(world.daemon, { lastEventId }).catch(() => undefined);
        if (reader === undefined || reader.status !== 200) continue;
        const patience = 1 + dice(60);
        const isDone = () => seen.length + reader.of("message").length === messages;
        await reader.until((events) => events.length >= patience || isDone()).catch(() => undefined);
        reader.cut();
        cuts++;
        seen.push(...reader.of("message").map(({ data }) => data.history_id as number));
        lastEventId = reader.lastEventId ?? lastEventId;
      }
      return seen;
    };
    const readWithSdk = async (onConnected: () => void): Promise<number[]> => {
      const client = createDaemonClient({ socketPath: world.daemon.paths.sock, timeoutMs: 10_000 });
      const stop = new AbortController();
      onTestFinished(() => {
        stop.abort();
        client.close();
      });
      const seen: number[] = [];
      for await (const event of client.events({ lastEventId: first, signal: stop.signal })) {
        onConnected();
        if (event.kind === "message") seen.push(event.data.history_id);
        if (seen.length === messages) break;
      }
      return seen;
    };

    const readers = [readWithCuts(), readWithCuts()];
    await new Promise<void>((resolve) => readers.push(readWithSdk(resolve)));
    for (let next = 0; next < messages; ) {
      const batch = all.slice(next, next + 1 + dice(20));
      next += batch.length;
      // The broker delivers some of them twice.
      const twice = batch.filter(() => dice(4) === 0);
      deliver(world.daemon.link, ...[...batch, ...twice].map((id) => delivery(id)));
      await settle(1 + dice(4));
      if (dice(12) > 0) continue;
      world.isUp = false;
      restarts++;
      await world.daemon.daemon.stop();
      world.daemon = await startTestDaemon({ at: world.daemon });
      // What was not stored before the stop is delivered again.
      deliver(world.daemon.link, ...all.slice(0, next).map((id) => delivery(id)));
      world.isUp = true;
    }
    for (const seen of await Promise.all(readers)) expect(seen).toEqual(all);
    expect(cuts).toBeGreaterThan(10);
    expect(restarts).toBeGreaterThan(0);
  }, 60_000);
});
