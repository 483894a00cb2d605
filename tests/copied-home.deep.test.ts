// One home on two folders of one machine, where no fingerprint can tell them apart: the broker lets one of the two
// daemons stay, and the other ends with a reason instead of fighting for its place.
import { cpSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { LongRunning } from "./support/process.ts";
import { until, World } from "./support/world.ts";

describe("two daemons with one key", () => {
  let world: World | undefined;
  let copy: LongRunning<object> | undefined;
  afterEach(async () => {
    await copy?.kill();
    await world?.end();
  });

  test.for([
    { policy: "prefer_newest", ends: "original", reason: "replaced_by_newer" },
    { policy: "prefer_oldest", ends: "copy", reason: "older_connection_kept" },
  ] as const)("$policy: the $ends ends with exit code 4 and says $reason", async ({ policy, ends, reason }) => {
    world = new World(["--connection-policy", policy]);
    await world.startBroker();
    const alice = await world.addPeer("alice");
    const home = join(world.folder, "copy");
    cpSync(alice.home, home, { recursive: true });
    await alice.start();
    await until("the original is connected", async () => {
      const { body } = await alice.client.health();
      return (body as { status?: string }).status === "ok" || undefined;
    });
    copy = new LongRunning(["daemon", "up", "--mesh", world.mesh, "--foreground"], { home });
    await copy.ready;
    const [ending, staying] = ends === "original" ? [alice.process, copy] : [copy, alice.process];
    expect(await ending.exited).toEqual({ code: 4, signal: null });
    expect(ending.stderr).toContain(reason);
    await staying.kill("SIGTERM");
    expect((await staying.exited).code).toBe(0);
  });
});
