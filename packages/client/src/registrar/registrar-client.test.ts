// The registrar's client against a scripted broker: what it asks, in which order, when answers get lost.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MeshError } from "@claudemesh/protocol/errors";
import { describe, expect, onTestFinished, test } from "vitest";
import { generateMemberKeys, signerOf } from "../keys/member-keys.ts";
import { hashArtifact } from "./hash-artifact.ts";
import { createRegistrarClient, type RegisterRequest } from "./registrar-client.ts";

type Step = { readonly answer: unknown } | { readonly fail: Error };

/** Answers call by call, and keeps what was asked. */
function scripted(...steps: Step[]) {
  const asked: { operation: string; input: Record<string, unknown> }[] = [];
  const slept: number[] = [];
  const client = createRegistrarClient({
    call: async (operation, input) => {
      asked.push({ operation, input: input as Record<string, unknown> });
      const step = steps.shift();
      if (step === undefined) throw new Error(`unexpected call of ${operation}`);
      if ("fail" in step) throw step.fail;
      return step.answer;
    },
    sign: signerOf(generateMemberKeys()),
    meshId: "0198c0de-0000-7000-8000-000000000001",
    lostAnswersMax: 3,
    sleep: async (ms) => slept.push(ms),
  });
  return { client, asked, slept, operations: () => asked.map(({ operation }) => operation) };
}

const lost = (sent = true) => ({ fail: new MeshError("broker_unreachable", undefined, { sent }) });
const effect = { operation: "release", target: "prod", artifact_hash: "a".repeat(64), run_id: "run-1" };
const request: RegisterRequest = {
  ...effect,
  logical_request_key: "key-1",
  approval_id: "a",
  authorization_nonce: "n",
};
const registration = { registration_id: "r", logical_request_key: "key-1", ...effect };
const answer = { registration, state: "registered_closed", duplicate: false };
const unknown = { state: "unknown", attempts: { recorded: 0, retries: 0 } };
const found = { state: "registered_closed", registration, attempts: { recorded: 1, retries: 0 } };

describe("registering", () => {
  test("is one call where the answer comes", async () => {
    const { client, asked } = scripted({ answer });
    expect(await client.register(request)).toEqual(answer);
    expect(asked).toMatchObject([{ operation: "registrar.register", input: { ...request, protocol_version: "1" } }]);
  });

  test("whose answer is lost asks what became of it, before anything is asked again (RP-06)", async () => {
    const { client, operations } = scripted(lost(), { answer: found });
    expect(await client.register(request)).toMatchObject({ registration, state: "registered_closed", duplicate: true });
    expect(operations()).toEqual(["registrar.register", "registrar.resolve"]);
  });

  test("is asked again, as another attempt at the same request, once it is known not to be committed", async () => {
    const { client, asked, operations, slept } = scripted(lost(), lost(false), { answer: unknown }, { answer });
    expect(await client.register(request)).toEqual(answer);
    expect(operations()).toEqual([
      "registrar.register",
      "registrar.resolve",
      "registrar.resolve",
      "registrar.register",
    ]);
    const [first, , , second] = asked.map(({ input }) => input);
    expect({ ...second, attempt_id: "" }).toEqual({ ...first, attempt_id: "" });
    expect(second?.attempt_id).not.toBe(first?.attempt_id);
    expect(slept).toHaveLength(2);
  });

  test("takes a collision for what it is: another execution of the same request has won", async () => {
    const collision = new MeshError("attempt_collision", undefined, { registration, state: "inert" });
    const { client } = scripted({ fail: collision });
    expect(await client.register(request)).toEqual({ registration, state: "inert", duplicate: true });
  });

  test("is refused where the key turns out to hold something else", async () => {
    const other = { ...found, registration: { ...registration, target: "staging" } };
    const { client } = scripted(lost(), { answer: other });
    await expect(client.register(request)).rejects.toMatchObject({
      code: "replay_duplicate",
      details: { conflict: "request_mismatch" },
    });
  });

  test("passes refusals on at once, and gives up on a broker that stays away", async () => {
    const refused = scripted({ fail: new MeshError("nonce_unbound") });
    await expect(refused.client.register(request)).rejects.toMatchObject({ code: "nonce_unbound" });
    expect(refused.operations()).toHaveLength(1);
    const away = scripted(lost(), lost(), lost(), lost(), lost());
    await expect(away.client.register(request)).rejects.toMatchObject({ code: "broker_unreachable" });
    expect(new Set(away.operations().slice(1))).toEqual(new Set(["registrar.resolve"]));
  });
});

describe("approving", () => {
  const terms = { ...effect, not_before: 1, not_after: 2 };

  test("signs the terms and shows the nonce", async () => {
    const made = { approval_id: "x", authorization_nonce: "n", not_after: 2 };
    const { client, asked } = scripted({ answer: made });
    expect(await client.approve({ ...terms, approval_id: "x" })).toEqual(made);
    expect(asked[0]?.input).toMatchObject({
      ...terms,
      purpose: "register",
      signature: expect.stringMatching(/^[0-9a-f]{128}$/),
    });
  });

  test("whose answer was lost with its nonce withdraws that approval and makes another", async () => {
    const made = { approval_id: "y", authorization_nonce: "n", not_after: 2 };
    const stored = { approval_id: "x", not_after: 2, state: "open" };
    const { client, asked, operations } = scripted(lost(), { answer: stored }, { answer: {} }, { answer: made });
    expect(await client.approve(terms)).toEqual(made);
    expect(operations().map((name) => name.slice("registrar.".length))).toEqual([
      "approve",
      "approve",
      "revoke",
      "approve",
    ]);
    const ids = asked.map(({ input }) => input.approval_id);
    expect(ids[1]).toBe(ids[0]);
    expect(ids[2]).toBe(ids[0]);
    expect(ids[3]).not.toBe(ids[0]);
  });

  test("takes keys", async () => {
    const client = createRegistrarClient({ call: async () => ({}) });
    await expect(client.approve(terms)).rejects.toMatchObject({ code: "forbidden" });
  });
});

test("an artifact is hashed in pieces, to what its bytes hash to at once", async () => {
  const folder = mkdtempSync(join(tmpdir(), "cm-artifact-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "artifact");
  writeFileSync(path, "abc");
  expect(await hashArtifact(path)).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  writeFileSync(path, Buffer.alloc(300_000));
  expect(await hashArtifact(path)).toMatch(/^[0-9a-f]{64}$/);
  await expect(hashArtifact(join(folder, "nothing"))).rejects.toMatchObject({ code: "ENOENT" });
});
