// 4.4: the table of answers, by the names of its acceptance tests. RP-07 and compensation need a target that the
// verifier refuses; RP-10 is in surface.ts.
import { setTimeout as sleep } from "node:timers/promises";
import { needed } from "../../frame/endings.ts";
import { expectAnswer, expectEqual, expectRefusal, expectSameJson, expectThat } from "../../frame/expect.ts";
import { aText, aTime } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import type { BrokerWorld } from "../broker/world.ts";
import {
  approve,
  expectRefused,
  expectUnknown,
  freshEffect,
  hourMs,
  keyPath,
  register,
  registered,
  requestFor,
} from "./requests.ts";

const replays: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "4.4",
    "rp-01",
    "RP-01: the same key with another attempt is the prior result, never another registration",
    async (world) => {
      const { request, registration } = await registered(world);
      for (let n = 0; n < 3; n++) {
        const again = await register(world.bob, { ...request, attempt_id: world.fresh("attempt") });
        expectAnswer(again, 200, { duplicate: true, registration });
      }
    },
  ),
  scenario(
    "4.4",
    "rp-02",
    "RP-02: a fresh nonce and a new key do not register the same effect again",
    async (world) => {
      const { effect, registration } = await registered(world);
      const fresh = requestFor(world, await approve(world, effect));
      const answer = await register(world.alice, fresh);
      expectRefused(answer, 409, "REPLAY_DUPLICATE", { conflict: "effect_exists", registration });
      await expectUnknown(world, fresh.logical_request_key);
    },
  ),
  scenario("4.4", "rp-03", "RP-03: a nonce that was spent buys nothing else", async (world) => {
    const { request } = await registered(world);
    const other = { ...request, logical_request_key: world.fresh("key") };
    expectRefused(await register(world.alice, other), 409, "REPLAY_NONCE_CONSUMED");
    await expectUnknown(world, other.logical_request_key);
  }),
  scenario(
    "4.4",
    "rp-04",
    "RP-04: a nonce is bound to its approval, operation, target, artifact, run, purpose and window",
    async (world) => {
      const approved = await approve(world, freshEffect(world));
      const other = await approve(world, freshEffect(world));
      const request = requestFor(world, approved);
      const unbound: readonly object[] = [
        { authorization_nonce: other.authorization_nonce },
        { approval_id: other.approval_id },
        { operation: "other" },
        { target: "other" },
        { artifact_hash: "1".repeat(64) },
        { run_id: "other" },
        { authorization_nonce: "guess" },
      ];
      for (const change of unbound) {
        expectRefused(await register(world.alice, { ...request, ...change }), 403, "NONCE_UNBOUND");
      }
      const effect = freshEffect(world);
      const logical_request_key = world.fresh("key");
      const compensation = await approve(world, effect, { purpose: "compensate", logical_request_key });
      const misused = requestFor(world, compensation, { logical_request_key });
      expectRefused(await register(world.alice, misused), 403, "NONCE_UNBOUND");
      await expectUnknown(world, request.logical_request_key);
      expectAnswer(await register(world.alice, request), 201);
    },
  ),
  scenario(
    "4.4",
    "rp-05",
    "RP-05: exactly the same again, any time later, is the same registration and spends no nonce",
    async (world) => {
      const { effect, request, first, registration } = await registered(world);
      for (const member of [world.alice, world.bob]) {
        const again = expectAnswer(await register(member, request), 200, { duplicate: true, registration });
        expectSameJson({ ...again.body, duplicate: false }, first.body, "all of the first answer", again.request);
      }
      const fresh = await approve(world, effect);
      const { approval_id, authorization_nonce } = fresh;
      expectAnswer(await register(world.alice, { ...request, approval_id, authorization_nonce }), 200, {
        registration,
      });
      // The nonce is not spent, so it is still valid for the effect, which exists.
      const other = requestFor(world, fresh);
      expectRefused(await register(world.alice, other), 409, "REPLAY_DUPLICATE", { conflict: "effect_exists" });
    },
  ),
  scenario("4.4", "rp-06", "RP-06: who lost the answer asks the resolver, and registers once", async (world) => {
    const request = requestFor(world, await approve(world, freshEffect(world)));
    await expectUnknown(world, request.logical_request_key);
    const lost = expectAnswer(await world.alice.lose("POST", "/registrar/requests", request), 201, {
      duplicate: false,
    });
    const resolved = expectAnswer(await world.alice.call("GET", keyPath(request.logical_request_key)), 200);
    expectSameJson(resolved.body.registration, lost.body.registration, "what was registered", resolved.request);
    const again = expectAnswer(await register(world.alice, request), 200, { duplicate: true });
    expectSameJson(again.body.registration, lost.body.registration, "what was registered", again.request);
  }),
  scenario("4.4", "rp-08", "RP-08: staleness makes a consumed key no freer", async (world) => {
    const { request, registration } = await registered(world);
    const stale = { ...request, expires_at: Date.now() - hourMs };
    expectRefused(await register(world.alice, stale), 410, "REQUEST_STALE", { prior: { registration } });
    expectAnswer(await register(world.alice, request), 200, { duplicate: true, registration });
    expectAnswer(await register(world.alice, { ...request, expires_at: Date.now() + hourMs }), 200, { registration });
  }),
  scenario(
    "4.4",
    "rp-09",
    "RP-09: of several at once one is 201, and the others carry the same registration",
    async (world) => {
      const request = requestFor(world, await approve(world, freshEffect(world)));
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, n) =>
          register(n % 2 === 0 ? world.alice : world.bob, { ...request, attempt_id: world.fresh("attempt") }),
        ),
      );
      const winners = answers.filter(({ status }) => status === 201);
      expectEqual(winners.length, 1, "how many were 201", "eight registrations of one key at once");
      const registration = winners[0]?.body.registration;
      for (const answer of answers) {
        if (answer.status === 409) expectRefused(answer, 409, "ATTEMPT_COLLISION");
        else expectAnswer(answer, [200, 201]);
        expectSameJson(answer.body.registration, registration, "the same registration", answer.request);
      }
    },
  ),
  scenario("4.4", "rp-09-effects", "RP-09: of several keys at once for one effect one is 201", async (world) => {
    const effect = freshEffect(world);
    const requests = [];
    for (let n = 0; n < 6; n++) requests.push(requestFor(world, await approve(world, effect)));
    const answers = await Promise.all(requests.map((request) => register(world.alice, request)));
    const winners = answers.filter(({ status }) => status === 201);
    expectEqual(winners.length, 1, "how many were 201", "six keys for one effect at once");
    for (const answer of answers) {
      if (answer.status === 201) continue;
      expectThat(answer.status === 409, "status 409", answer.body, answer.request);
      expectSameJson(answer.body.registration, winners[0]?.body.registration, "what exists", answer.request);
    }
  }),
  scenario(
    "4.4",
    "expired-approval",
    "an exact retry is answered though its approval has expired since",
    async (world) => {
      const { request, registration, endsAtMs } = await registerJustInTime(world);
      while ((await serverNowMs(world)) < endsAtMs) await sleep(100);
      const again = expectAnswer(await register(world.alice, request), 200, { duplicate: true });
      expectSameJson(again.body.registration, registration, "the registration", again.request);
      expectRefused(
        await register(world.alice, { ...request, logical_request_key: world.fresh("key") }),
        409,
        "REPLAY_NONCE_CONSUMED",
      );
    },
  ),
];

/** A registration under an approval that soon ends; a slow server gets a longer one. */
async function registerJustInTime(world: BrokerWorld) {
  for (let windowMs = 1_000; ; windowMs *= 4) {
    const nowMs = await serverNowMs(world);
    const endsAtMs = nowMs + windowMs;
    const approved = await approve(world, freshEffect(world), { not_before: nowMs - hourMs, not_after: endsAtMs });
    const request = requestFor(world, approved);
    const answer = await register(world.alice, request);
    if (answer.status === 201) return { request, registration: answer.body.registration, endsAtMs };
    if (windowMs > 60_000) expectAnswer(answer, 201);
    expectRefused(answer, 403, "NONCE_UNBOUND");
  }
}

/** The time of the server's clock: the end of a lease that begins now. */
async function serverNowMs(world: BrokerWorld): Promise<number> {
  const claim = { claim_id: "clock", inputs_fingerprint: "0".repeat(64), lease_s: 60 };
  const answer = expectAnswer(await world.alice.call("POST", `/once/${world.fresh("clock")}/claim`, claim), 201);
  return Number(answer.body.lease_until) - 60_000;
}

/** A registration whose verification failed. */
async function failed(world: BrokerWorld) {
  const target = needed(world.refusedTarget, "--refused-target, a target that the broker's verifier refuses");
  const effect = freshEffect(world, { target });
  const request = requestFor(world, await approve(world, effect));
  const first = expectAnswer(await register(world.alice, request), 201, { state: "verify_failed" });
  return { effect, request, first };
}

const compensations: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "4.4",
    "rp-07",
    "RP-07: after a failed verification no nonce registers it again, and the effect stays taken",
    async (world) => {
      const { effect, request, first } = await failed(world);
      const fresh = await approve(world, effect);
      const { approval_id, authorization_nonce } = fresh;
      const again = await register(world.alice, { ...request, approval_id, authorization_nonce });
      expectAnswer(again, 200, { state: "verify_failed", duplicate: true });
      expectSameJson(again.body.registration, first.body.registration, "the failed registration", again.request);
      expectRefused(await register(world.alice, requestFor(world, fresh)), 409, "REPLAY_DUPLICATE", {
        conflict: "effect_exists",
      });
    },
  ),
  scenario(
    "4.4",
    "compensate",
    "a failed registration is compensated once, under an approval for exactly that",
    async (world) => {
      const { signingOwner } = world;
      const { effect, request, first } = await failed(world);
      const { logical_request_key } = request;
      const path = keyPath(logical_request_key, "/compensate");
      const compensation = ({ approval_id, authorization_nonce }: Awaited<ReturnType<typeof approve>>) => ({
        approval_id,
        authorization_nonce,
        attempt_id: world.fresh("attempt"),
      });
      const toRegister = compensation(await approve(world, effect));
      expectRefused(await signingOwner.call("POST", path, toRegister), 403, "NONCE_UNBOUND");
      const forOther = await approve(world, effect, { purpose: "compensate", logical_request_key: "other" });
      expectRefused(await signingOwner.call("POST", path, compensation(forOther)), 403, "NONCE_UNBOUND");
      const approved = await approve(world, effect, { purpose: "compensate", logical_request_key });
      const json = compensation(approved);
      const shape = { approval_id: approved.approval_id, attempt_id: json.attempt_id, compensated_at: aTime };
      const done = await signingOwner.lose("POST", path, json);
      expectAnswer(done, 201, { state: "compensated", duplicate: false, compensation: shape });
      const again = await signingOwner.call("POST", path, json);
      expectAnswer(again, 200, { state: "compensated", duplicate: true, compensation: shape });
      const second = compensation(await approve(world, effect, { purpose: "compensate", logical_request_key }));
      const conflict = { conflict: "already_compensated" };
      expectRefused(await signingOwner.call("POST", path, second), 409, "REPLAY_DUPLICATE", conflict);
      const after = expectAnswer(await register(world.alice, request), 200, {
        state: "compensated",
        compensation: shape,
      });
      expectSameJson(after.body.registration, first.body.registration, "the registration stays", after.request);
    },
  ),
  scenario("4.4", "not-compensable", "what was verified, or never registered, is not compensated", async (world) => {
    const { signingOwner } = world;
    const { effect, request } = await registered(world);
    const { logical_request_key } = request;
    const approved = await approve(world, effect, { purpose: "compensate", logical_request_key });
    const { approval_id, authorization_nonce } = approved;
    const json = { approval_id, authorization_nonce, attempt_id: "x" };
    const path = keyPath(logical_request_key, "/compensate");
    expectRefused(await signingOwner.call("POST", path, json), 409, "NOT_COMPENSABLE");
    const none = await signingOwner.call("POST", keyPath(world.fresh("none"), "/compensate"), json);
    expectRefusal(none, 404, undefined, { message: aText });
  }),
];

export const replayScenarios: readonly Scenario<BrokerWorld>[] = [...replays, ...compensations];
