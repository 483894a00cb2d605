// 4.5: those criteria of the replay surface that can be seen from outside. The operator has to prove the tables
// themselves.
import { expectAnswer, expectEqual, expectSameJson } from "../../frame/expect.ts";
import { aList } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import type { BrokerWorld } from "../broker/world.ts";
import { readPages } from "../pages.ts";
import { expectRefused, keyPath, register, registered } from "./requests.ts";

export const surfaceScenarios: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "4.5",
    "open-or-says-why",
    "the registrar serves, or all of it is 503 with the list of what is missing",
    async (world) => {
      const answer = await world.alice.call("GET", "/registrar/registrations");
      if (answer.status !== 503) {
        expectAnswer(answer, 200, { items: aList });
        return;
      }
      expectRefused(answer, 503, "REPLAY_SURFACE_NOT_FIT", { criteria: aList, missing: aList });
      const resolver = await world.alice.call("GET", keyPath(world.fresh("key")));
      expectRefused(resolver, 503, "REPLAY_SURFACE_NOT_FIT", { criteria: aList, missing: aList });
    },
  ),
  scenario(
    "4.5",
    "records-stay",
    "RP-10: a registration reads the same in every answer, whatever is tried after it",
    async (world) => {
      const { request, first } = await registered(world);
      const { logical_request_key } = request;
      const { registration } = first.body;
      const listedBefore = await listedOf(world, logical_request_key);
      const tries = [
        {},
        { target: "elsewhere" },
        { authorization_nonce: "wrong" },
        { expires_at: 1 },
        { logical_request_key: world.fresh("key") },
      ];
      for (const change of tries)
        await register(world.bob, { ...request, attempt_id: world.fresh("attempt"), ...change });
      const resolved = expectAnswer(await world.alice.call("GET", keyPath(logical_request_key)), 200);
      expectSameJson(resolved.body.registration, registration, "what the resolver shows", resolved.request);
      expectSameJson(
        await listedOf(world, logical_request_key),
        listedBefore,
        "what the list shows",
        "GET registrations",
      );
    },
  ),
  scenario("4.5", "audit-stays", "RP-10: the audit only grows, and its entries do not change", async (world) => {
    const { signingOwner } = world;
    const { request } = await registered(world);
    const audit = async () =>
      (await readPages(signingOwner, "/registrar/audit", 1000)).filter(({ kind }) => kind === "refusal");
    const erin = await world.join("erin");
    await register(erin, { ...request, target: "elsewhere" });
    const before = await audit();
    await register(erin, { ...request, target: "elsewhere" });
    await register(erin, request);
    const after = await audit();
    expectSameJson(after.slice(0, before.length), before, "what was in the audit", "GET audit");
    expectEqual(after.length, before.length + 1, "entries of one refusal more", "GET audit");
  }),
];

async function listedOf(world: BrokerWorld, key: string): Promise<unknown> {
  const items = await readPages(world.alice, "/registrar/registrations", 1000);
  return items.find(
    ({ registration }) => (registration as { logical_request_key?: string }).logical_request_key === key,
  );
}
