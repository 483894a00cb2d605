// 4.3: phase 1: the checks in their order. The first one that fails gives the answer, and nothing is written.
// Why: docs/decisions/0063.
import { expectAnswer, expectEqual, expectRefusal, expectThat } from "../../frame/expect.ts";
import { aList, aTime, oneOf } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import type { BrokerWorld } from "../broker/world.ts";
import { readPages } from "../pages.ts";
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

const past = () => Date.now() - hourMs;

const order: readonly Scenario<BrokerWorld>[] = [
  scenario("4.3", "malformed-first", "what is malformed is 400 before anything else is looked at", async (world) => {
    const { request } = await registered(world);
    const malformed = { ...request, artifact_hash: "x", expires_at: past(), authorization_nonce: "wrong" };
    expectRefusal(await register(world.alice, malformed), 400);
  }),
  scenario(
    "4.3",
    "stale-second",
    "past expires_at is 410 before key and nonce, with what was before",
    async (world) => {
      const { request, registration } = await registered(world);
      for (const change of [{}, { target: "other" }, { authorization_nonce: "wrong" }, { approval_id: "none" }]) {
        const answer = await register(world.alice, { ...request, ...change, expires_at: past() });
        expectRefused(answer, 410, "REQUEST_STALE", { prior: { registration } });
      }
      const fresh = requestFor(world, await approve(world, freshEffect(world)), { expires_at: past() });
      const answer = expectRefused(await register(world.alice, fresh), 410, "REQUEST_STALE");
      expectEqual(answer.body.prior, undefined, "prior of an unused key", answer.request);
      await expectUnknown(world, fresh.logical_request_key);
      const later = { ...fresh, expires_at: Date.now() + hourMs };
      expectAnswer(await register(world.alice, later), 201);
    },
  ),
  scenario(
    "4.3",
    "key-third",
    "a consumed key answers before the nonce: the prior result, or request_mismatch",
    async (world) => {
      const { request, registration } = await registered(world);
      for (const change of [{ authorization_nonce: "wrong" }, { authorization_nonce: "other", attempt_id: "a" }]) {
        expectAnswer(await register(world.alice, { ...request, ...change }), 200, { duplicate: true, registration });
      }
      const fresh = await approve(world, freshEffect(world));
      const conflict = { conflict: "request_mismatch" };
      for (const change of [
        { target: "elsewhere" },
        { operation: "other" },
        { run_id: "other" },
        { artifact_hash: "0".repeat(64) },
        { approval_id: world.fresh("none") },
        requestFor(world, fresh, { logical_request_key: request.logical_request_key }),
      ]) {
        expectRefused(await register(world.alice, { ...request, ...change }), 409, "REPLAY_DUPLICATE", conflict);
      }
      expectAnswer(await register(world.alice, requestFor(world, fresh)), 201, { duplicate: false });
    },
  ),
  scenario("4.3", "nonce-fourth", "the nonce is looked at before the effect", async (world) => {
    const { effect, request } = await registered(world);
    const other = { ...request, logical_request_key: world.fresh("key") };
    expectRefused(await register(world.alice, { ...other, authorization_nonce: "wrong" }), 403, "NONCE_UNBOUND");
    expectRefused(await register(world.alice, { ...other, approval_id: world.fresh("none") }), 403, "NONCE_UNBOUND");
    expectRefused(await register(world.alice, other), 409, "REPLAY_NONCE_CONSUMED");
    const again = await approve(world, effect);
    const revoked = `/registrar/approvals/${again.approval_id}/revoke`;
    const effectExists = { conflict: "effect_exists" };
    expectRefused(await register(world.alice, requestFor(world, again)), 409, "REPLAY_DUPLICATE", effectExists);
    expectAnswer(await world.signingOwner.call("POST", revoked), 200);
    expectRefused(await register(world.alice, requestFor(world, again)), 403, "NONCE_UNBOUND");
  }),
];

const wholeness: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "4.3",
    "all-or-nothing",
    "what is refused consumes nothing: key and nonce are as free as before",
    async (world) => {
      const approved = await approve(world, freshEffect(world));
      const request = requestFor(world, approved);
      const refused: readonly object[] = [
        { authorization_nonce: "wrong" },
        { target: "elsewhere" },
        { run_id: "other" },
        { expires_at: past() },
        { approval_id: world.fresh("none") },
      ];
      for (const change of refused) {
        const { status } = await register(world.alice, { ...request, ...change });
        expectThat(status === 403 || status === 410, "status 403 or 410", status, JSON.stringify(change));
        await expectUnknown(world, request.logical_request_key);
      }
      expectAnswer(await register(world.alice, request), 201, { duplicate: false });
    },
  ),
  scenario(
    "4.3",
    "verified",
    "the 201 carries the state after verification, and the resolver the same",
    async (world) => {
      const { request, first } = await registered(world);
      const settled = oneOf("registered_closed", "verify_failed", "inert");
      expectAnswer(first, 201, { state: settled });
      if (first.body.state !== "inert") {
        expectAnswer(first, 201, {
          verification: { state: String(first.body.state), reasons: aList, verified_at: aTime },
        });
      }
      expectEqual(first.body.state, "registered_closed", "the state of a sound registration", first.request);
      expectAnswer(await world.alice.call("GET", keyPath(request.logical_request_key)), 200, {
        state: "registered_closed",
      });
    },
  ),
  scenario(
    "4.3",
    "audit",
    "every refusal is in the owner's audit, though it changed nothing, and holds no nonce",
    async (world) => {
      const { signingOwner } = world;
      const dora = await world.join("dora");
      const { request } = await registered(world);
      const secret = `wrong-${world.fresh("nonce")}`;
      const attempt_id = world.fresh("attempt");
      const tries = [
        { ...request, attempt_id, target: "elsewhere", authorization_nonce: secret },
        { ...request, attempt_id, logical_request_key: world.fresh("key") },
        { ...request, attempt_id, logical_request_key: world.fresh("key"), authorization_nonce: secret },
        { ...request, attempt_id, expires_at: past() },
      ];
      for (const each of tries)
        expectThat((await register(dora, each)).status > 400, "a refusal", each, "POST requests");
      const audit = await readPages(signingOwner, "/registrar/audit", 1000, ({ text, request: asked }) => {
        expectThat(!text.includes(secret), "no nonce in the audit", "it is there", asked);
      });
      const entries = audit.filter((entry) => entry.attempt_id === attempt_id);
      const codes = entries.map(({ code }) => code);
      const expected = ["REPLAY_DUPLICATE", "REPLAY_NONCE_CONSUMED", "NONCE_UNBOUND", "REQUEST_STALE"];
      expectEqual(codes, expected, "the refusals in the audit, in their order", "GET audit");
      for (const [n, entry] of entries.entries()) {
        const { logical_request_key, approval_id } = tries[n] ?? request;
        const shown = { kind: "refusal", member_pubkey: dora.pubkey, logical_request_key, approval_id, at: aTime };
        expectAnswer({ status: 200, body: entry, request: "GET audit" }, 200, shown);
      }
    },
  ),
];

export const checkScenarios: readonly Scenario<BrokerWorld>[] = [...order, ...wholeness];
