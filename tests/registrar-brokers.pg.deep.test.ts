// The registrar on brokers side by side, real processes on one PostgreSQL: one dies by SIGKILL around the commit, another
// answers; and attempts at once on all of them are registered once (REG-1, REG-4).
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TestMember } from "./support/broker-harness.ts";
import { Brokers, createMeshOn, findServers } from "./support/brokers.ts";
import { grant, register } from "./support/registrar-member.ts";

const servers = await findServers("registrar_brokers");
afterAll(() => servers.stop());

describe.skipIf(!servers.found)("the registrar on brokers side by side", () => {
  let brokers: Brokers;
  let meshes = 0;
  beforeEach(() => {
    brokers = new Brokers(servers.urls);
  });
  afterEach(() => brokers.end());

  const at = async <T>(member: TestMember, url: string, work: () => Promise<T>): Promise<T> => {
    member.url = url;
    return work();
  };
  const status = (member: TestMember) => member.call("GET", "/registrar/requests/key-1");

  test.for([
    ["registrar.before_commit", "unknown", 201],
    ["registrar.after_commit", "registered_closed", 200],
  ] as const)("one dies at %s, and the next one to start knows what became of it", async ([point, state, retried]) => {
    const dying = await brokers.add({ CLAUDEMESH_FAILPOINTS: `${point}@1=crash` });
    const owner = await createMeshOn(brokers, dying, `crash-${++meshes}`);
    const granted = await grant(owner);
    await expect(register(owner, granted)).rejects.toThrow();
    expect((await dying.process.exited).signal, `${point} was never reached`).toBe("SIGKILL");
    const next = await brokers.add();
    await at(owner, next.url, async () => {
      expect((await status(owner)).body).toMatchObject({ state });
      expect(await register(owner, granted)).toMatchObject({ status: retried, body: { state: "registered_closed" } });
    });
  });

  test("attempts at once on three brokers are one registration", async () => {
    const all = [await brokers.add(), await brokers.add(), await brokers.add()];
    const [first] = all;
    if (first === undefined) throw new Error("no broker was started");
    const owner = await createMeshOn(brokers, first, `race-${++meshes}`);
    for (let run = 0; run < 20; run++) {
      const key = { logical_request_key: `key ${run}`, run_id: `run ${run}` };
      const granted = await at(owner, first.url, () => grant(owner, { run_id: key.run_id }));
      const racing = all.flatMap(({ url }) =>
        [1, 2].map(() => at(owner, url, () => register(owner, { ...granted, ...key }))),
      );
      const answers = await Promise.all(racing);
      const winners = answers.filter((answer) => answer.status === 201);
      expect(winners).toHaveLength(1);
      for (const { status: code, body } of answers) {
        expect(body.registration).toEqual(winners[0]?.body.registration);
        if (code === 409) expect(body.code).toBe("ATTEMPT_COLLISION");
      }
    }
  });
});
