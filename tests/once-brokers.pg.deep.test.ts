// `once` on brokers side by side: many callers on many keys through any broker while brokers are killed, and a broker
// that dies around the commit of a claim or a record. Every effect runs once, and everybody has its result (REG-9).
import type { BrokerCall } from "@claudemesh/client/broker";
import { createHttpCall } from "@claudemesh/client/broker-http";
import { createOnce } from "@claudemesh/client/once";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { joinTestMesh, type TestMember } from "./support/broker-harness.ts";
import type { BrokerProcess } from "./support/broker-process.ts";
import { Brokers, createMeshOn } from "./support/brokers.ts";
import { createRandom, type Random, seedOfTheDay } from "./support/seed.ts";
import { createTestDatabase, findRedis } from "./support/services.ts";

const database = await createTestDatabase("once_brokers");
const redis = database === undefined ? undefined : await findRedis();
afterAll(async () => {
  await database?.drop();
  await redis?.stop();
});

/** As a client behind a load balancer: each request goes to any of the brokers. */
function callThroughAny(
  all: readonly BrokerProcess[],
  mesh: string,
  token: string,
  pick: () => BrokerProcess,
): BrokerCall {
  const calls = new Map(
    all.map((broker) => [broker, createHttpCall({ broker: broker.url, mesh, token, requestTimeoutMs: 5_000 })]),
  );
  return (operation, input) => {
    const call = calls.get(pick());
    if (call === undefined) throw new Error("there is no such broker");
    return call(operation, input);
  };
}

describe.skipIf(redis === undefined)("once on brokers side by side", () => {
  const brokers = new Brokers({ databaseUrl: database?.url ?? "", redisUrl: redis?.url ?? "" });
  let all: BrokerProcess[] = [];
  let random: Random;

  beforeAll(async () => {
    random = createRandom(seedOfTheDay());
    const first = await brokers.add();
    all = [first, await brokers.add(), await brokers.add()];
  });
  afterAll(() => brokers.end());

  async function makeMembers(mesh: string): Promise<[TestMember, TestMember, TestMember]> {
    const [first] = all;
    if (first === undefined) throw new Error("the brokers have not started");
    const owner = await createMeshOn(brokers, first, mesh);
    return [owner, await joinTestMesh(owner, "bob"), await joinTestMesh(owner, "carol")];
  }

  test("runs each effect once through kills of brokers, and gives everybody the same result", async () => {
    const members = await makeMembers("acme");
    const tokens = await Promise.all(members.map((member) => member.token()));
    const keys = Array.from({ length: 40 }, (_, n) => `key-${n}`);
    const ran = new Map<string, number>();
    const load = { on: true };
    const killing = (async () => {
      let kills = 0;
      for (; load.on; kills++) {
        const victim = random.pick(all);
        await victim.kill();
        await victim.start();
      }
      return kills;
    })();
    const answers = await Promise.all(
      [...tokens, ...tokens].map(async (token, caller) => {
        const call = callThroughAny(all, "acme", token, () => random.pick(all));
        const { once } = createOnce({ call });
        const results: unknown[] = [];
        for (const key of keys) {
          const effect = () => {
            ran.set(key, (ran.get(key) ?? 0) + 1);
            return { key, caller };
          };
          results.push(await once(key, { key }, effect, { claimForMs: 120_000 }));
        }
        return results;
      }),
    );
    load.on = false;
    expect(await killing).toBeGreaterThan(2);
    for (const results of answers) expect(results).toEqual(answers[0]);
    expect(keys.map((key) => ran.get(key))).toEqual(keys.map(() => 1));
  });

  test.for(["once.before_commit@1", "once.after_commit@1", "once.before_commit@2", "once.after_commit@2"])(
    "goes on at another broker when the first dies at %s",
    async (point) => {
      const dying = brokers.prepare();
      await dying.start({ CLAUDEMESH_FAILPOINTS: `${point}=crash` });
      const [other] = all;
      if (other === undefined) throw new Error("the brokers have not started");
      const mesh = point.replaceAll(/[^a-z0-9]/g, "-");
      const [member] = await makeMembers(mesh);
      let isDead = false;
      const pick = () => (isDead ? other : dying);
      const died = dying.process.exited.then(() => {
        isDead = true;
      });
      let ran = 0;
      const { run } = createOnce({ call: callThroughAny([dying, other], mesh, await member.token(), pick) });
      const ended = await run(point, [], () => ++ran, { claimForMs: 60_000 });
      expect(ended).toEqual({ result: 1, epoch: 1, ran: true });
      await died;
      const shown = await member.call("GET", `/once/${encodeURIComponent(point)}`);
      expect(shown.body).toMatchObject({ state: "done", epoch: 1, result: 1 });
    },
  );
});
