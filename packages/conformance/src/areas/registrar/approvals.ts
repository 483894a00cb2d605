// 4.2: approvals: what an owner signs, the nonce that is shown once, revoking, and which callers may do that.
import { expectAnswer, expectEqual, expectRefusal, expectThat, itemsOf } from "../../frame/expect.ts";
import { absent, aText } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import type { BrokerWorld, MeshMember } from "../broker/world.ts";
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
  signTerms,
  termsFor,
} from "./requests.ts";

const post = (member: MeshMember, terms: object) => member.call("POST", "/registrar/approvals", terms);

export const approvalScenarios: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "4.2",
    "approve",
    "an approval's nonce is shown once; the same again is the record without it",
    async (world) => {
      const { signingOwner } = world;
      const terms = termsFor(world, freshEffect(world));
      const signed = signTerms(signingOwner, terms);
      const { approval_id, not_after } = terms;
      const first = expectAnswer(await post(signingOwner, signed), 201, {
        approval_id,
        authorization_nonce: aText,
        not_after,
      });
      for (let tries = 0; tries < 2; tries++) {
        expectAnswer(await post(signingOwner, signed), 200, { approval_id, authorization_nonce: absent });
      }
      const nonce = String(first.body.authorization_nonce);
      const listed = expectAnswer(await signingOwner.call("GET", "/registrar/approvals?limit=1000"), 200);
      const shown = itemsOf(listed).filter((item) => item.approval_id === approval_id);
      expectEqual(shown.length, 1, "approvals with this id", listed.request);
      expectThat(!listed.text.includes(nonce), "no nonce in the list", "it is there", listed.request);
      const other = signTerms(signingOwner, { ...terms, target: "elsewhere" });
      expectRefusal(await post(signingOwner, other), 409, "exists_with_other_content");
    },
  ),
  scenario(
    "4.2",
    "approve-signature",
    "an approval is good with the calling owner's signature over exactly its terms",
    async (world) => {
      const { signingOwner } = world;
      const terms = termsFor(world, freshEffect(world));
      const { signature } = signTerms(signingOwner, terms);
      for (const change of [
        { target: "elsewhere" },
        { operation: "other" },
        { artifact_hash: "0".repeat(64) },
        { run_id: "other" },
        { not_after: terms.not_after + 1 },
        { not_before: terms.not_before - 1 },
        { approval_id: world.fresh("approval") },
      ]) {
        expectRefusal(await post(signingOwner, { ...terms, ...change, signature }), 403, "forbidden");
      }
      const foreign = signTerms(world.alice, terms);
      expectRefusal(await post(signingOwner, foreign), 403, "forbidden");
      expectAnswer(await post(signingOwner, { ...terms, signature }), 201);
    },
  ),
  scenario("4.2", "approve-malformed", "terms that cannot be are 400", async (world) => {
    const { signingOwner } = world;
    const terms = termsFor(world, freshEffect(world));
    const wrong: readonly object[] = [
      { not_after: terms.not_before },
      { not_before: -1 },
      { not_after: "later" },
      { purpose: "other" },
      { purpose: "compensate" },
      { logical_request_key: "k" },
      { artifact_hash: "A".repeat(64) },
      { artifact_hash: "0".repeat(63) },
      { operation: "" },
      { operation: "x".repeat(257) },
      { target: "x".repeat(1025) },
      { run_id: "x".repeat(257) },
      { approval_id: "x".repeat(129) },
      { target: undefined },
    ];
    for (const change of wrong) {
      const each = { ...terms, ...change } as typeof terms;
      expectRefusal(await post(signingOwner, signTerms(signingOwner, each)), 400);
    }
    for (const signature of ["", "0".repeat(127), "Z".repeat(128), 1, undefined]) {
      expectRefusal(await post(signingOwner, { ...terms, signature }), 400);
    }
  }),
  scenario(
    "4.2",
    "roles",
    "approving, revoking, compensating, approvals and audit are for owners; the rest is any member's",
    async (world) => {
      const { approved, request, registration } = await registered(world);
      const { alice, bob } = world;
      const compensation = { approval_id: "x", authorization_nonce: "x", attempt_id: "x" };
      const owners: readonly (readonly [string, string, object | undefined])[] = [
        ["POST", "/registrar/approvals", signTerms(alice, termsFor(world, freshEffect(world)))],
        ["GET", "/registrar/approvals", undefined],
        ["POST", `/registrar/approvals/${approved.approval_id}/revoke`, undefined],
        ["POST", keyPath(request.logical_request_key, "/compensate"), compensation],
        ["GET", "/registrar/audit", undefined],
      ];
      for (const [method, path, json] of owners) expectRefusal(await alice.call(method, path, json), 403, "forbidden");
      expectAnswer(await register(bob, request), 200, { registration });
      expectAnswer(await bob.call("GET", keyPath(request.logical_request_key)), 200, { registration });
      expectAnswer(await bob.call("GET", keyPath(request.logical_request_key, "/attempts")), 200);
      expectAnswer(await bob.call("GET", "/registrar/registrations"), 200);
    },
  ),
  scenario(
    "4.2",
    "revoke",
    "a revoked approval registers nothing; revoking again is 200, and what was registered stays",
    async (world) => {
      const { signingOwner } = world;
      const approved = await approve(world, freshEffect(world));
      const path = `/registrar/approvals/${approved.approval_id}/revoke`;
      for (let tries = 0; tries < 2; tries++) {
        expectAnswer(await signingOwner.call("POST", path), 200, { approval_id: approved.approval_id });
      }
      const request = requestFor(world, approved);
      expectRefused(await register(world.alice, request), 403, "NONCE_UNBOUND");
      await expectUnknown(world, request.logical_request_key);
      expectRefusal(await signingOwner.call("POST", `/registrar/approvals/${world.fresh("none")}/revoke`), 404);
      const done = await registered(world);
      expectAnswer(await signingOwner.call("POST", `/registrar/approvals/${done.approved.approval_id}/revoke`), 200);
      expectAnswer(await register(world.alice, done.request), 200, { registration: done.registration });
    },
  ),
  scenario("4.2", "window", "an approval is good in its window alone", async (world) => {
    const nowMs = Date.now();
    for (const window of [
      { not_before: nowMs + hourMs, not_after: nowMs + 2 * hourMs },
      { not_before: nowMs - 2 * hourMs, not_after: nowMs - hourMs },
    ]) {
      const request = requestFor(world, await approve(world, freshEffect(world), window));
      expectRefused(await register(world.alice, request), 403, "NONCE_UNBOUND");
      await expectUnknown(world, request.logical_request_key);
    }
  }),
];
