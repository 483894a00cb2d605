// "Claim the task and tell the others" while the broker is killed around its commits: a suite for brokers on either store.
import { expect, test } from "vitest";
import { callBroker, joinTestMesh, type TestMember } from "./broker-harness.ts";
import type { BrokerProcess } from "./broker-process.ts";

export type CrashWorld = {
  readonly broker: BrokerProcess;
  readonly adminToken: () => string;
  readonly createMesh: () => Promise<TestMember>;
};

const claims = 6;
const crashAt = 4;

export function describeSpaceCrashes(make: () => Promise<CrashWorld>): void {
  test.for(["commit.before_commit", "commit.after_commit"])(
    "killed at %s: a claim and its message happen together, once, and the retry gets the stored verdict",
    async (point) => {
      const { broker, adminToken, createMesh } = await make();
      const alice = await createMesh();
      const bob = await joinTestMesh(alice, "bob");
      await Promise.all([alice.token(), bob.token()]);
      await alice.call("POST", "/spaces", { name: "plan" });
      const { sessionId, sessionToken } = (await alice.call("POST", "/spaces/plan/sessions", { openId: "o" })).body;
      await broker.kill();
      await broker.start({ CLAUDEMESH_FAILPOINTS: `${point}@${crashAt}=crash` });

      const verdicts: unknown[] = [];
      for (let n = 1; n <= claims; n += 1) {
        const commit = {
          localSeq: n,
          reads: { confirmed: [{ id: `task:${n}`, path: ["value"], seq: 0 }], pending: [] },
          operations: [{ op: "set", id: `task:${n}`, value: { value: { owner: "alice" } } }],
          sends: [
            {
              client_message_id: `claim-${n}`,
              destination: { kind: "dm", ref: bob.pubkey },
              envelope_version: "2",
              body: `task ${n}`,
            },
          ],
        };
        const send = () => alice.call("POST", "/spaces/plan/commits", { sessionId, sessionToken, commit });
        let answer = await send().catch(() => undefined);
        if (answer === undefined) {
          expect((await broker.process.exited).signal).toBe("SIGKILL");
          await broker.start();
          await expectTogether(alice, bob, point === "commit.before_commit" ? crashAt - 1 : crashAt);
          answer = await send();
        }
        expect(answer.status, JSON.stringify(answer.body)).toBe(200);
        verdicts.push([answer.body.seq, answer.body.replayed]);
      }
      const replayed = (n: number) => n === crashAt && point === "commit.after_commit";
      expect(verdicts).toEqual(Array.from({ length: claims }, (_, n) => [n + 1, replayed(n + 1)]));
      await expectTogether(alice, bob, claims);
      const check = await callBroker(broker.url, "POST", "/v1/admin/check", { token: adminToken() });
      expect(check.body).toMatchObject({ ok: true, found: 0 });
    },
  );
}

/** So many claims in the log, and the messages of exactly these. */
async function expectTogether(alice: TestMember, bob: TestMember, count: number): Promise<void> {
  const log = (await alice.call("GET", "/spaces/plan/log")).body.items as { localSeq: number }[];
  const history = (await bob.call("GET", "/history")).body.items as { client_message_id: string }[];
  expect(log.map(({ localSeq }) => localSeq)).toEqual(Array.from({ length: count }, (_, n) => n + 1));
  expect(history.map((item) => item.client_message_id)).toEqual(log.map(({ localSeq }) => `claim-${localSeq}`));
}
