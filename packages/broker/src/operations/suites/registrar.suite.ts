// The registrar over the network, against a real broker on either store: RP-01 to RP-09 as a caller meets them, routes,
// statuses and bodies on HTTP and WebSocket. RP-10 has a suite of its own. What the rules are is tested on the stores.
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { BrokerFlags } from "@claudemesh/broker/config";
import type { RunningBroker } from "@claudemesh/broker/start";
import { describe, expect, test } from "vitest";
import {
  createTestMesh,
  joinTestMesh,
  makeTemporaryFolder,
  type TestMember,
} from "../../../../../tests/support/broker-harness.ts";
import { effect, grant, register, requestWith, signedApproval } from "../../../../../tests/support/registrar-member.ts";

export type StartBroker = (flags?: BrokerFlags, env?: Record<string, string>) => Promise<RunningBroker>;

let meshes = 0;

export function describeRegistrarOverNetwork(startBroker: StartBroker): void {
  async function start(flags?: BrokerFlags, env?: Record<string, string>) {
    const broker = await startBroker(flags, env);
    const owner = await createTestMesh(broker, `registrar-${process.pid}-${++meshes}`);
    return { broker, owner, member: await joinTestMesh(owner, "ci") };
  }
  const status = (member: TestMember, key = "key-1") => member.call("GET", `/registrar/requests/${key}`);
  const verifier = (exitCode: number) => {
    const path = join(makeTemporaryFolder(), "verifier.sh");
    writeFileSync(path, `#!/bin/sh\ncat >/dev/null\necho "checked: $?" >&2\nexit ${exitCode}\n`);
    chmodSync(path, 0o700);
    return { "registrar-verifier": `exec:${path}` };
  };

  test("the mesh's budget is spent by a new approval alone: its repetition, its registration and retries cost nothing", async () => {
    // Two tokens and an invite before it.
    const { owner, member } = await start({ "rate-limit": "4/86400s" });
    await member.token();
    const terms = signedApproval(owner);
    const approved = await owner.call("POST", "/registrar/approvals", terms);
    expect(approved.status).toBe(201);
    expect(await owner.call("POST", "/registrar/approvals", terms)).toMatchObject({ status: 200 });
    expect(await owner.call("POST", "/registrar/approvals", signedApproval(owner))).toMatchObject({
      status: 429,
      body: { error: "rate_limited", retryable: true, retry_after_s: expect.any(Number) },
    });
    const { approval_id, authorization_nonce } = approved.body;
    for (const expected of [201, 200, 200]) {
      expect((await register(member, { approval_id, authorization_nonce })).status).toBe(expected);
    }
  });

  test("RP-05, RP-01: first 201, then 200 with the same registration for any attempt, any nonce, on both transports", async () => {
    const { owner, member } = await start();
    const granted = await grant(owner);
    const first = await register(member, granted);
    expect(first).toMatchObject({
      status: 201,
      body: {
        state: "registered_closed",
        duplicate: false,
        registration: {
          registration_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
          logical_request_key: "key-1",
          ...effect,
          binding: owner.pubkey,
          registered_by: member.pubkey,
        },
      },
    });
    const again = await register(owner, { ...granted, authorization_nonce: "another" });
    expect([again.status, again.body]).toEqual([200, { ...first.body, duplicate: true }]);
    const peer = await member.connect("client");
    const onSocket = await peer.request("registrar.register", requestWith(granted));
    expect(onSocket).toMatchObject({ status: 200, body: { ...first.body, duplicate: true } });
    expect((await status(member)).body).toMatchObject({
      state: "registered_closed",
      registration: first.body.registration,
      attempts: { recorded: 3, retries: 2 },
    });
    const { items } = (await member.call("GET", "/registrar/requests/key-1/attempts")).body;
    expect(items).toMatchObject([{ won: true }, { won: false, tries: 1 }, { won: false, tries: 1 }]);
  });

  test("RP-02, RP-03, RP-04: a fresh nonce buys no second effect, a spent one nothing, a foreign one nothing", async () => {
    const { owner, member } = await start();
    const granted = await grant(owner);
    const first = await register(member, granted);
    expect(await register(member, { ...(await grant(owner)), logical_request_key: "key-2" })).toMatchObject({
      status: 409,
      body: {
        error: "replay_duplicate",
        code: "REPLAY_DUPLICATE",
        conflict: "effect_exists",
        registration: first.body.registration,
        retryable: false,
      },
    });
    expect(await register(member, { ...granted, logical_request_key: "key-2" })).toMatchObject({
      status: 409,
      body: { error: "replay_nonce_consumed", code: "REPLAY_NONCE_CONSUMED" },
    });
    const other = await grant(owner, { target: "staging" });
    expect(await register(member, { ...other, logical_request_key: "key-2", run_id: "run-2" })).toMatchObject({
      status: 403,
      body: { error: "nonce_unbound", code: "NONCE_UNBOUND" },
    });
    expect(await register(member, { ...granted, target: "staging" })).toMatchObject({
      status: 409,
      body: { code: "REPLAY_DUPLICATE", conflict: "request_mismatch" },
    });
    const list = await member.call("GET", "/registrar/registrations");
    expect(list.body.items).toMatchObject([{ registration: first.body.registration, state: "registered_closed" }]);
    const audit = await owner.call("GET", "/registrar/audit");
    const codes = (audit.body.items as { code: string }[]).map(({ code }) => code);
    expect(codes).toEqual(["REPLAY_DUPLICATE", "REPLAY_NONCE_CONSUMED", "NONCE_UNBOUND", "REPLAY_DUPLICATE"]);
    expect(await member.call("GET", "/registrar/audit")).toMatchObject({ status: 403 });
  });

  test("RP-06: a caller that does not know asks; unknown is 200, and the key may hold any text", async () => {
    const { owner, member } = await start(undefined, { CLAUDEMESH_FAILPOINTS: "registrar.before_commit@1=error" });
    const granted = await grant(owner);
    const key = "release/1.0 für alle";
    expect((await register(member, { ...granted, logical_request_key: key })).status).toBe(503);
    expect(await status(member, encodeURIComponent(key))).toMatchObject({
      status: 200,
      body: { state: "unknown", attempts: { recorded: 0, retries: 0 } },
    });
    expect((await register(member, { ...granted, logical_request_key: key })).status).toBe(201);
    expect(await status(member, encodeURIComponent(key))).toMatchObject({ body: { state: "registered_closed" } });
  });

  test("RP-07: what a verifier fails stays consumed, and is compensated once", async () => {
    const { owner, member } = await start(verifier(1));
    const failed = await register(member, await grant(owner));
    expect(failed).toMatchObject({
      status: 201,
      body: { state: "verify_failed", verification: { reasons: ["checked: 0"] } },
    });
    expect(await register(member, { ...(await grant(owner)) })).toMatchObject({
      status: 200,
      body: { state: "verify_failed", registration: failed.body.registration },
    });
    expect(await register(member, { ...(await grant(owner)), logical_request_key: "key-2" })).toMatchObject({
      status: 409,
      body: { conflict: "effect_exists" },
    });
    const compensate = (by: TestMember, nonce: object) =>
      by.call("POST", "/registrar/requests/key-1/compensate", { ...nonce, attempt_id: "c" });
    const granted = await grant(owner, { purpose: "compensate", logical_request_key: "key-1" });
    expect(await compensate(member, granted)).toMatchObject({ status: 403, body: { error: "forbidden" } });
    const done = await compensate(owner, granted);
    expect(done).toMatchObject({ status: 201, body: { state: "compensated", compensation: { attempt_id: "c" } } });
    expect(await compensate(owner, granted)).toMatchObject({ status: 200, body: { duplicate: true } });
    expect((await status(member)).body).toMatchObject({
      state: "compensated",
      compensation: { approval_id: granted.approval_id },
    });
  });

  test("a verifier of the operator's that passes closes the registration in its name", async () => {
    const flags = verifier(0);
    const { owner, member } = await start(flags);
    expect(await register(member, await grant(owner))).toMatchObject({
      body: { state: "registered_closed", verification: { verifier: flags["registrar-verifier"] } },
    });
  });

  test("RP-08: a stale request is 410, with the prior once there is one", async () => {
    const { owner, member } = await start();
    const granted = await grant(owner);
    const stale = { ...granted, expires_at: Date.now() - 1_000 };
    const before = await register(member, stale);
    expect(before).toMatchObject({ status: 410, body: { error: "request_stale", code: "REQUEST_STALE" } });
    expect(before.body).not.toHaveProperty("prior");
    const first = await register(member, granted);
    expect(await register(member, stale)).toMatchObject({
      status: 410,
      body: { prior: { registration: first.body.registration, state: "registered_closed" } },
    });
  });

  test("RP-09: of requests at once one is 201, and all carry the same registration", async () => {
    const { owner, member } = await start();
    const granted = await grant(owner);
    const answers = await Promise.all(Array.from({ length: 12 }, () => register(member, granted)));
    const winners = answers.filter((answer) => answer.status === 201);
    expect(winners).toHaveLength(1);
    for (const answer of answers) {
      expect(answer.body.registration).toEqual(winners[0]?.body.registration);
      expect([201, 200, 409]).toContain(answer.status);
      if (answer.status === 409) expect(answer.body.code).toBe("ATTEMPT_COLLISION");
    }
  });

  describe("approvals", () => {
    test("are an owner's: made, shown once, listed, revoked", async () => {
      const { owner, member } = await start();
      const approval = signedApproval(owner, { approval_id: "a" });
      const made = await owner.call("POST", "/registrar/approvals", approval);
      expect(made.status).toBe(201);
      expect(Object.keys(made.body).sort()).toEqual(["approval_id", "authorization_nonce", "not_after"]);
      const again = await owner.call("POST", "/registrar/approvals", approval);
      expect(again).toMatchObject({
        status: 200,
        body: { approval_id: "a", state: "open", approved_by: owner.pubkey },
      });
      expect(again.body).not.toHaveProperty("authorization_nonce");
      const other = signedApproval(owner, { approval_id: "a", run_id: "other" });
      expect(await owner.call("POST", "/registrar/approvals", other)).toMatchObject({ status: 409 });
      const notMine = signedApproval(member, { approval_id: "b" });
      expect(await member.call("POST", "/registrar/approvals", notMine)).toMatchObject({ status: 403 });
      expect(await owner.call("POST", "/registrar/approvals", notMine)).toMatchObject({ status: 403 });
      expect(await member.call("GET", "/registrar/approvals")).toMatchObject({ status: 403 });
      expect(await owner.call("POST", "/registrar/approvals/a/revoke")).toMatchObject({
        status: 200,
        body: { state: "revoked" },
      });
      expect((await owner.call("GET", "/registrar/approvals?limit=1")).body).toMatchObject({
        items: [{ approval_id: "a", state: "revoked" }],
        next_cursor: "a",
      });
      expect(await owner.call("POST", "/registrar/approvals/nobody/revoke")).toMatchObject({ status: 404 });
    });
  });

  test("requests that cannot be understood are 400 and consume nothing", async () => {
    const { owner, member } = await start();
    const granted = await grant(owner);
    const wrong: [Record<string, unknown>, string][] = [
      [{ protocol_version: "2" }, "protocol_version"],
      [{ artifact_hash: "A".repeat(64) }, "artifact_hash"],
      [{ logical_request_key: "" }, "logical_request_key"],
      [{ logical_request_key: "x".repeat(257) }, "logical_request_key"],
      [{ attempt_id: undefined }, "attempt_id"],
      [{ target: "e\u0301" }, "target"],
      [{ operation: "a\u0000b" }, "operation"],
      [{ expires_at: "soon" }, "expires_at"],
      [{ authorization_nonce: "two words" }, "authorization_nonce"],
      [{ more: 1 }, "more"],
    ];
    for (const [fields, field] of wrong) {
      expect(await register(member, { ...granted, ...fields }), field).toMatchObject({ status: 400, body: { field } });
    }
    expect(await member.call("GET", "/registrar/registrations?after=x")).toMatchObject({ status: 400 });
    expect(await register(member, granted)).toMatchObject({ status: 201 });
  });

  test("is counted for Prometheus", async () => {
    const { broker, owner, member } = await start();
    const granted = await grant(owner);
    await register(member, granted);
    await register(member, granted);
    await register(member, { ...granted, logical_request_key: "key-2" });
    const metrics = await (await fetch(`${broker.url}/metrics`)).text();
    for (const line of [
      "cm_broker_registrar_open 1",
      'cm_broker_registrar_requests_total{call="register",outcome="new"} 1',
      'cm_broker_registrar_requests_total{call="register",outcome="same"} 1',
      'cm_broker_registrar_requests_total{call="register",outcome="replay_nonce_consumed"} 1',
      'cm_broker_registrar_verifications_total{result="registered_closed"} 1',
    ]) {
      expect(metrics).toContain(line);
    }
  });
}
