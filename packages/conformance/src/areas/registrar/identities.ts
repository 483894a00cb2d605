// 4.1: the request's key, the nonce and the attempt; the two digests; texts that are compared byte for byte.
import { effectKey, replayKey } from "@claudemesh/protocol/registrar/digests";
import { expectAnswer, expectEqual, expectRefusal } from "../../frame/expect.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import { readVectors, sha256 } from "../../vectors.ts";
import type { BrokerWorld } from "../broker/world.ts";
import {
  approve,
  expectRefused,
  freshEffect,
  register,
  registered,
  requestFor,
  signTerms,
  termsFor,
} from "./requests.ts";

type DigestVector = {
  readonly name: string;
  readonly logical_request_key: string;
  readonly operation: string;
  readonly target: string;
  readonly artifact_hash: string;
  readonly run_id: string;
  readonly effect_key: string;
};
type RegistrarVectors = {
  readonly digests: readonly DigestVector[];
  readonly refused_texts: readonly { readonly name: string; readonly text_escaped: string }[];
};

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

export const identityScenarios: readonly Scenario<BrokerWorld>[] = [
  scenario("4.1", "digests", "replay_key and effect_key are those of the published vectors", async (world) => {
    const seen = new Set<string>();
    for (const vector of readVectors<RegistrarVectors>("registrar").digests) {
      const { operation, target, artifact_hash, run_id, effect_key } = vector;
      if (seen.has(effect_key)) continue;
      const isFree = !seen.has(vector.logical_request_key);
      const logical_request_key = isFree ? vector.logical_request_key : world.fresh("key");
      seen.add(effect_key).add(logical_request_key);
      const approved = await approve(world, { operation, target, artifact_hash, run_id });
      const answer = await register(world.alice, requestFor(world, approved, { logical_request_key }));
      const effect = { operation, target, artifactHash: artifact_hash, runId: run_id };
      const binding = world.signingOwner.pubkey;
      const identity = { ...effect, protocolVersion: "1", logicalRequestKey: logical_request_key, binding };
      expectEqual(hex(effectKey(sha256, effect)), effect_key, "the kit's own effect_key", vector.name);
      const replay_key = hex(replayKey(sha256, identity));
      expectAnswer(answer, 201, { registration: { effect_key, replay_key } });
    }
  }),
  scenario("4.1", "texts", "0x00 and text that is not NFC are refused in every field", async (world) => {
    const approved = await approve(world, freshEffect(world));
    const sound = requestFor(world, approved);
    const { signingOwner } = world;
    for (const { text_escaped: escaped } of readVectors<RegistrarVectors>("registrar").refused_texts) {
      const text = JSON.parse(`"${escaped}"`) as string;
      for (const field of ["logical_request_key", "attempt_id", "approval_id", "operation", "target", "run_id"]) {
        expectRefusal(await register(world.alice, { ...sound, [field]: text }), 400);
      }
      for (const field of ["approval_id", "operation", "target", "run_id"]) {
        const terms = { ...termsFor(world, freshEffect(world)), [field]: text };
        const answer = await signingOwner.call("POST", "/registrar/approvals", signTerms(signingOwner, terms));
        expectRefusal(answer, 400);
      }
    }
    expectAnswer(await register(world.alice, sound), 201);
  }),
  scenario(
    "4.1",
    "byte-for-byte",
    "texts that look alike are others: case, spaces and other letters count",
    async (world) => {
      const effect = freshEffect(world, { target: "Prod", operation: "release" });
      await registered(world, effect);
      for (const more of [{ target: "prod" }, { target: "Prod " }, { operation: "Release" }, { target: "Pro\u0501" }]) {
        await registered(world, { ...effect, ...more });
      }
      const { request } = await registered(world);
      const other = { ...request, logical_request_key: request.logical_request_key.toUpperCase() };
      expectRefused(await register(world.alice, other), 409, "REPLAY_NONCE_CONSUMED");
    },
  ),
  scenario("4.1", "attempt-is-no-identity", "another attempt_id is the same request, whatever it is", async (world) => {
    const { request, first, registration } = await registered(world);
    for (const attempt_id of [world.fresh("attempt"), request.attempt_id, "x"]) {
      const again = await register(world.bob, { ...request, attempt_id });
      expectAnswer(again, 200, { duplicate: true, registration, state: String(first.body.state) });
    }
  }),
  scenario("4.1", "binding", "who approved counts: the binding is the approving owner's key", async (world) => {
    const { request, first } = await registered(world);
    const { binding } = first.body.registration as { binding: string };
    expectEqual(binding, world.signingOwner.pubkey, "the binding", first.request);
    for (const change of [{ protocol_version: "2" }, { protocol_version: 1 }, { artifact_hash: "A".repeat(64) }]) {
      expectRefusal(await register(world.alice, { ...request, ...change }), 400);
    }
  }),
  scenario("4.1", "per-mesh", "keys, effects and approvals are those of one mesh", async (world) => {
    const { request } = await registered(world);
    const other = await world.createMesh(world.fresh("mesh"), "otto");
    expectRefused(await register(other, request), 403, "NONCE_UNBOUND");
    const { operation, target, artifact_hash, run_id } = request;
    const terms = termsFor(world, { operation, target, artifact_hash, run_id }, { approval_id: request.approval_id });
    const approval = await other.call("POST", "/registrar/approvals", signTerms(other, terms));
    expectAnswer(approval, 201);
    const { authorization_nonce } = approval.body;
    expectAnswer(await register(other, { ...request, authorization_nonce }), 201, { duplicate: false });
  }),
];
