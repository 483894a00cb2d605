// `once` on brokers side by side: many callers on many keys through any broker while brokers are killed, and a broker
// that dies around the commit of a claim or a record. Every effect runs once, and every caller has its result (REG-9).
import type { BrokerCall } from "@claudemesh/client/broker";
import { createHttpCall } from "@claudemesh/client/broker-http";
import { createOnce } from "@claudemesh/client/once";
import { MeshError } from "@claudemesh/protocol/errors";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { joinTestMesh, type TestMember } from "./support/broker-harness.ts";
import type { BrokerProcess } from "./support/broker-process.ts";
import { Brokers, createMeshOn, findServers } from "./support/brokers.ts";
import { createRandom, type Random, seedOfTheDay } from "./support/seed.ts";

const servers = await findServers("once_brokers");
afterAll(() => servers.stop());

/** As a client behind a load balancer: each request goes to any of the brokers, and on to the next where none is there. */
function callThroughAny(
  all: readonly BrokerProcess[],
  mesh: string,
  token: string,
  pick: () => BrokerProcess,
): BrokerCall {
  const calls = all.map(({ url }) => createHttpCall({ broker: url, mesh, token, requestTimeoutMs: 5_000 }));
  return async (operation, input) => {
    const first = all.indexOf(pick());
    const [call, ...others] = [...calls.slice(first), ...calls.slice(0, first)];
    if (call === undefined) throw new Error("there is no broker");
    let answer = call(operation, input);
    for (const other of others) answer = answer.catch((error) => passOn(error, () => other(operation, input)));
    return answer;
  };
}

function passOn(error: unknown, next: () => Promise<unknown>): Promise<unknown> {
  const isAbsent = error instanceof MeshError && error.code === "broker_unreachable" && error.details.sent === false;
  return isAbsent ? next() : Promise.reject(error);
}

describe.skipIf(!servers.found)("once on brokers side by side", () => {
  const brokers = new Brokers(servers.urls);
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

  test("runs each effect once through kills of brokers, and gives every caller the same result", async () => {
    const members = await makeMembers("acme");
    const tokens = await Promise.all(members.map((member) => member.token()));
    const ran = new Map<string, number>();
    const load = { on: true };
    let kills = 0;
    const killing = (async () => {
      for (; load.on; kills++) {
        const victim = random.pick(all);
        await victim.kill();
        await victim.start();
      }
    })();
    onTestFinished(() => {
      load.on = false;
      return killing;
    });
    const answers = await Promise.all(
      [...tokens, ...tokens].map(async (token, caller) => {
        const call = callThroughAny(all, "acme", token, () => random.pick(all));
        const { once } = createOnce({ call });
        const results: unknown[] = [];
        for (let n = 0; n < 40 || kills < 4; n++) {
          const key = `key-${n}`;
          const effect = () => {
            ran.set(key, (ran.get(key) ?? 0) + 1);
            return { key, caller };
          };
          results.push(await once(key, { key }, effect, { claimForMs: 120_000 }));
        }
        return results;
      }),
    );
    // Some got further than others.
    const shared = Math.min(...answers.map((results) => results.length));
    for (const results of answers) expect(results.slice(0, shared)).toEqual(answers[0]?.slice(0, shared));
    expect([...ran.values()].every((times) => times === 1)).toBe(true);
    expect(ran.size).toBeGreaterThanOrEqual(shared);
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
