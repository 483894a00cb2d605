// 0: the mutating calls of registrar and `once`. The answer of each is lost between commit and caller; the retry gets
// the same answer. A compensation is in replays.ts, where one is made.
import { expectAnswer, expectRefusal, expectSameJson } from "../../frame/expect.ts";
import { absent } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import type { BrokerWorld } from "../broker/world.ts";
import { OnceKey } from "./once.ts";
import { approve, freshEffect, register, requestFor, signTerms, termsFor } from "./requests.ts";

export const registrarLostAnswerScenarios: readonly Scenario<BrokerWorld>[] = [
  scenario("0", "approval", "approval: the stored record; a nonce that got lost is not shown again", async (world) => {
    const { signingOwner } = world;
    const terms = termsFor(world, freshEffect(world));
    const signed = signTerms(signingOwner, terms);
    const { approval_id } = terms;
    expectAnswer(await signingOwner.lose("POST", "/registrar/approvals", signed), 201);
    const again = await signingOwner.call("POST", "/registrar/approvals", signed);
    expectAnswer(again, 200, { approval_id, authorization_nonce: absent });
    const path = `/registrar/approvals/${approval_id}/revoke`;
    expectAnswer(await signingOwner.lose("POST", path), 200, { approval_id });
    expectAnswer(await signingOwner.call("POST", path), 200, { approval_id });
  }),
  scenario("0", "registration", "registration: the prior result", async (world) => {
    const request = requestFor(world, await approve(world, freshEffect(world)));
    const lost = expectAnswer(await world.alice.lose("POST", "/registrar/requests", request), 201, {
      duplicate: false,
    });
    for (let tries = 0; tries < 2; tries++) {
      const again = expectAnswer(await register(world.alice, request), 200, { duplicate: true });
      expectSameJson({ ...again.body, duplicate: false }, lost.body, "all of the lost answer", again.request);
    }
  }),
  scenario(
    "0",
    "once-claim",
    "once claim: the same epoch, so that a lost answer does not lock its own caller out",
    async (world) => {
      const once = new OnceKey(world);
      const json = { claim_id: "c-1", inputs_fingerprint: "0".repeat(64), lease_s: 60 };
      const lost = expectAnswer(await world.alice.lose("POST", once.path("/claim"), json), 201, { epoch: 1 });
      for (let tries = 0; tries < 2; tries++) {
        const again = expectAnswer(await world.alice.call("POST", once.path("/claim"), json), 201);
        expectSameJson(again.body, lost.body, "the lost answer", again.request);
      }
      expectRefusal(await world.alice.call("POST", once.path("/claim"), { ...json, claim_id: "c-2" }), 409, "running");
    },
  ),
  scenario("0", "once-record", "once record: the same answer, and the first result stands", async (world) => {
    const once = new OnceKey(world);
    expectAnswer(await once.claim(world.alice, "c-1"), 201, { epoch: 1 });
    const json = { epoch: 1, result: { version: 7 } };
    const lost = expectAnswer(await world.alice.lose("POST", once.path("/record"), json), 200);
    const again = expectAnswer(await once.post(world.alice, "record", json), 200);
    expectSameJson(again.body, lost.body, "the lost answer", again.request);
    expectAnswer(await once.claim(world.bob, "c-2"), 200, { epoch: 1, result: { version: 7 } });
  }),
  scenario("0", "once-resolve", "once resolve: the same answer, and the key is released once", async (world) => {
    const once = new OnceKey(world);
    await once.letExpire(world.alice, "c-1");
    const json = { epoch: 1, outcome: "not_done" };
    const lost = expectAnswer(await world.bob.lose("POST", once.path("/resolve"), json), 200);
    const again = expectAnswer(await once.post(world.bob, "resolve", json), 200);
    expectSameJson(again.body, lost.body, "the lost answer", again.request);
    expectAnswer(await once.claim(world.bob, "c-2"), 201, { epoch: 2 });
    expectAnswer(await once.post(world.bob, "resolve", json), 200);
    expectAnswer(await once.get(), 200, { state: "running", epoch: 2 });
  }),
];
