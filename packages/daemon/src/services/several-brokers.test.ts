// What a daemon keeps of the brokers that brokers tell of, and what it says of where it is.
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { settle, testFeatures } from "../testing/scripted-link.ts";
import { startTestDaemon, temporaryHome } from "../testing/test-daemon.ts";

const [one, two] = ["https://one.example.org", "https://two.example.org"];

it("keeps the brokers that are announced to it for its next start, and forgets those that are gone", async () => {
  const at = temporaryHome();
  const first = await startTestDaemon({ at });
  expect(first.link.options?.brokers).toEqual([]);
  const hello = {
    mesh: "acme",
    mesh_id: "mesh",
    member: { pubkey: "00".repeat(32), name: "me", role: "owner" as const },
  };
  first.link.become({ state: "online", hello: { ...hello, brokers: [one, two] }, features: testFeatures } as never);
  await settle();
  expect(JSON.parse(readFileSync(at.paths.brokers, "utf8"))).toEqual([one, two]);
  first.link.options?.onPush({ type: "brokers_changed", brokers: [two] });
  await first.daemon.stop();
  const second = await startTestDaemon({ at });
  expect(second.link.options?.brokers).toEqual([two]);
});

it("says where it is and where else it could be, and tries again when it is asked to", async () => {
  const { call, link } = await startTestDaemon();
  let nudges = 0;
  Object.assign(link, {
    route: () => ({ current: one, others: [two], nextTryAtMs: 17 }),
    reconnect: () => void nudges++,
  });
  link.goOffline();
  const broker = { state: "offline", url: one, others: [two], next_try_at: 17 };
  expect((await call("GET", "/v1/health")).body.broker).toMatchObject(broker);
  const answer = await call("POST", "/v1/reconnect", { json: {} });
  expect([answer.status, answer.body.broker, nudges]).toEqual([200, expect.objectContaining(broker), 1]);
});
