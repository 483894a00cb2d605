// RP-01 to RP-10, each with the condition under which a weaker registrar would let it pass, tried on the store itself.
import { describe, expect, test } from "vitest";
import { auditRowsPerWindow, auditWindowMs } from "../../core/audit-window.ts";
import { proveSurface } from "../../core/surface.ts";
import type { Verifier } from "../../services/verify-registration.ts";
import { artifact, type RegistrarWorld } from "./world.ts";

const failing: Verifier = {
  name: "failing",
  verify: async () => ({ type: "failed", reason: "it is not what it says" }),
};
const one = { consumed: 1, registered: 1, verified: 1, compensated: 0 };

export function describeReplay(shared: () => RegistrarWorld): void {
  const world = () => shared();

  test("RP-01 (REG-1): the same key under a new attempt gets the prior result, and no attempt buys a second effect", async () => {
    const first = await world().ask();
    expect(first).toMatchObject({ status: 201, body: { duplicate: false, state: "registered_closed" } });
    const request = await world().request({ approval_id: "unused" });
    for (let attempt = 0; attempt < 5; attempt++) {
      const again = await world().ask({ ...request, approval_id: approvalOf(first), attempt_id: `other-${attempt}` });
      expect(again).toEqual({ status: 200, body: { ...first.body, duplicate: true } });
    }
    const resolved = await world().broker.resolve("key-1");
    expect(resolved).toMatchObject({ attempts: { recorded: 6, retries: 5 }, state: "registered_closed" });
    expect(await world().effects()).toEqual(one);
  });

  test("RP-02 (REG-2): a fresh nonce and a new key do not register the same effect again", async () => {
    const first = await world().ask();
    const fresh = await world().grant();
    const again = await world().ask({ logical_request_key: "key-2", ...fresh });
    expect(again).toMatchObject({
      status: 409,
      body: {
        error: "replay_duplicate",
        code: "REPLAY_DUPLICATE",
        conflict: "effect_exists",
        registration: first.body.registration,
      },
    });
    expect(await world().effects()).toEqual(one);
    // The nonce was not spent on the refusal: it is good for nothing else, but it is not used up.
    const [approval] = await world().broker.store.approvals.list(world().meshId, "approval-2", 10);
    expect((await world().broker.store.approvals.find(world().meshId, fresh.approval_id))?.spent).toBe(false);
    expect(approval?.spent ?? false).toBe(false);
  });

  test("RP-03 (REG-3): a nonce that was spent is refused for everything else", async () => {
    const granted = await world().grant();
    expect(await world().ask(granted)).toMatchObject({ status: 201 });
    // Under another key the envelope is the same, so that only the nonce can be what refuses it.
    expect(await world().ask({ ...granted, logical_request_key: "key-2" })).toMatchObject({
      status: 409,
      body: { error: "replay_nonce_consumed", code: "REPLAY_NONCE_CONSUMED" },
    });
    world().nowMs += 7_200_000;
    expect(await world().ask({ ...granted, logical_request_key: "key-3" })).toMatchObject({ status: 409 });
    expect(await world().effects()).toEqual(one);
  });

  describe("RP-04 (REG-3): a nonce that is not bound to exactly this, now, is refused", () => {
    const unbound = (reason: string) => ({
      status: 403,
      body: { error: "nonce_unbound", code: "NONCE_UNBOUND", reason },
    });

    test.for([
      ["operation", { operation: "deploy" }],
      ["target", { target: "staging" }],
      ["artifact", { artifact_hash: artifact("v2") }],
      ["run", { run_id: "run-2" }],
    ] as const)("of another %s", async ([, other]) => {
      const granted = await world().grant();
      expect(await world().ask({ ...granted, ...other })).toMatchObject(unbound("other_envelope"));
      expect(await world().effects()).toMatchObject({ consumed: 0 });
    });

    test("of no approval, of another approval, and a guess", async () => {
      const [mine, other] = [await world().grant(), await world().grant()];
      const wrong = [
        { ...mine, approval_id: "unknown" },
        { ...mine, authorization_nonce: other.authorization_nonce },
        { ...mine, authorization_nonce: "guess" },
      ];
      for (const offered of wrong) expect(await world().ask(offered)).toMatchObject(unbound("unknown"));
      expect(await world().ask(mine)).toMatchObject({ status: 201 });
    });

    test("before its window, after it, and once it is revoked", async () => {
      const later = await world().grant({ not_before: world().nowMs + 1, not_after: world().nowMs + 2 });
      expect(await world().ask(later)).toMatchObject(unbound("not_yet"));
      world().nowMs += 2;
      expect(await world().ask(later)).toMatchObject(unbound("expired"));
      const revoked = await world().grant();
      await world().broker.revoke(revoked.approval_id);
      expect(await world().ask(revoked)).toMatchObject(unbound("revoked"));
      expect(await world().effects()).toMatchObject({ consumed: 0 });
    });

    test("for another purpose, and of an owner who is one no more", async () => {
      const compensating = await world().grant({ purpose: "compensate", logical_request_key: "key-1" });
      expect(await world().ask(compensating)).toMatchObject(unbound("other_purpose"));
      const former = await world().addPerson("owner");
      const granted = await world().grant({}, former);
      await world().revokeMember(former);
      expect(await world().ask(granted)).toMatchObject(unbound("owner_gone"));
    });
  });

  describe("RP-05 (REG-1): an exact retry gets the durable prior result", () => {
    test("with any nonce, after its approval has expired or was revoked, on any broker", async () => {
      const granted = await world().grant();
      const first = await world().ask(granted);
      const second = await world().addBroker();
      await world().broker.revoke(granted.approval_id);
      world().nowMs += 10 * 86_400_000;
      const retries = [
        { ...granted, on: second },
        { ...granted, authorization_nonce: "any" },
        { ...granted, by: world().owner },
      ];
      for (const retry of retries) {
        expect(await world().ask(retry)).toEqual({ status: 200, body: { ...first.body, duplicate: true } });
      }
      expect(await world().effects()).toEqual(one);
    });

    test("and spends nothing: a fresh nonce of the same owner stays unspent", async () => {
      await world().ask();
      const fresh = await world().grant();
      expect(await world().ask(fresh)).toMatchObject({ status: 200, body: { duplicate: true } });
      expect((await world().broker.store.approvals.find(world().meshId, fresh.approval_id))?.spent).toBe(false);
    });

    test("but the same key for anything else is a mismatch, also with an unknown approval", async () => {
      const first = await world().ask();
      const approval_id = approvalOf(first);
      const other = await world().grant({}, await world().addPerson("owner"));
      for (const asked of [{ approval_id, target: "staging" }, { approval_id: "unknown" }, other]) {
        expect(await world().ask(asked)).toMatchObject({
          status: 409,
          body: { code: "REPLAY_DUPLICATE", conflict: "request_mismatch", registration: first.body.registration },
        });
      }
      expect(await world().effects()).toEqual(one);
    });
  });

  describe("RP-06 (REG-4): a crash around the commit leaves both rows or none", () => {
    test("before it nothing stands: the key is unknown, the nonce unspent, and the same request registers", async () => {
      const granted = await world().grant();
      const request = await world().request(granted);
      world().broker.crash.beforeCommit = () => {
        throw new Error("power is gone");
      };
      await expect(world().ask(request)).rejects.toThrow("power is gone");
      world().broker.crash.beforeCommit = undefined;
      expect(await world().effects()).toEqual({ consumed: 0, registered: 0, verified: 0, compensated: 0 });
      expect(await world().broker.resolve("key-1")).toMatchObject({
        state: "unknown",
        attempts: { recorded: 0, retries: 0 },
      });
      expect(await world().ask(request)).toMatchObject({ status: 201 });
      expect(await world().effects()).toEqual(one);
    });

    test("after it both stand, inert; the start that follows verifies, and the retry is the same registration", async () => {
      const request = await world().request();
      world().broker.crash.afterCommit = () => {
        throw new Error("power is gone");
      };
      await expect(world().ask(request)).rejects.toThrow("power is gone");
      world().broker.crash.afterCommit = undefined;
      expect(await world().effects()).toEqual({ consumed: 1, registered: 1, verified: 0, compensated: 0 });
      expect(await world().broker.resolve("key-1")).toMatchObject({ state: "inert" });
      const [one_, other] = [await world().addBroker(), await world().addBroker()];
      await Promise.all([one_.finish(), other.finish()]);
      const resolved = await world().broker.resolve("key-1");
      expect(resolved).toMatchObject({ state: "registered_closed" });
      expect(await world().ask(request)).toMatchObject({
        status: 200,
        body: { duplicate: true, registration: resolved.registration },
      });
      expect(await world().effects()).toEqual(one);
    });
  });

  describe("RP-07 (REG-5): what failed its verification stays consumed", () => {
    const fail = async () => {
      world().broker.verifier = failing;
      const first = await world().ask();
      expect(first).toMatchObject({
        status: 201,
        body: { state: "verify_failed", verification: { reasons: ["it is not what it says"] } },
      });
      return first;
    };
    const forCompensation = { purpose: "compensate", logical_request_key: "key-1" } as const;

    test("no nonce and no key registers its effect again; a new run does", async () => {
      const first = await fail();
      world().broker.verifier = undefined;
      const fresh = await world().grant();
      expect(await world().ask(fresh)).toEqual({ status: 200, body: { ...first.body, duplicate: true } });
      expect(await world().ask({ ...fresh, logical_request_key: "key-2" })).toMatchObject({
        status: 409,
        body: { conflict: "effect_exists", state: "verify_failed" },
      });
      expect(await world().ask({ logical_request_key: "key-3", run_id: "run-2" })).toMatchObject({ status: 201 });
    });

    test("it is compensated once, under an approval for exactly that, and stays consumed", async () => {
      await fail();
      const granted = await world().grant(forCompensation);
      const done = await world().broker.compensate("key-1", granted);
      expect(done).toMatchObject({
        status: 201,
        body: { state: "compensated", duplicate: false, compensation: { approval_id: granted.approval_id } },
      });
      expect(await world().broker.compensate("key-1", granted)).toEqual({
        status: 200,
        body: { ...done.body, duplicate: true },
      });
      expect(await world().broker.compensate("key-1", await world().grant(forCompensation))).toMatchObject({
        status: 409,
        body: {
          code: "REPLAY_DUPLICATE",
          conflict: "already_compensated",
          message: expect.stringContaining("made good before"),
        },
      });
      expect(await world().ask({ logical_request_key: "key-2" })).toMatchObject({
        status: 409,
        body: { conflict: "effect_exists", state: "compensated" },
      });
      expect(await world().effects()).toEqual({ ...one, compensated: 1 });
    });

    test("not by a nonce for something else, not where verification passed, not before it is known", async () => {
      await fail();
      const wrong: [Parameters<RegistrarWorld["grant"]>[0], string][] = [
        [{}, "other_purpose"],
        [{ ...forCompensation, logical_request_key: "key-2" }, "other_envelope"],
        [{ ...forCompensation, target: "staging" }, "other_envelope"],
      ];
      for (const [terms, reason] of wrong) {
        const refused = await world().broker.compensate("key-1", await world().grant(terms));
        expect(refused).toMatchObject({ status: 403, body: { code: "NONCE_UNBOUND", reason } });
      }
      const granted = await world().grant(forCompensation);
      expect(await world().broker.compensate("key-1", granted, world().member)).toMatchObject({ status: 403 });
      expect(await world().broker.compensate("key-9", granted)).toMatchObject({ status: 404 });
      world().broker.verifier = undefined;
      await world().ask({ logical_request_key: "good", target: "other" });
      const forGood = await world().grant({ ...forCompensation, logical_request_key: "good", target: "other" });
      expect(await world().broker.compensate("good", forGood)).toMatchObject({
        status: 409,
        body: { code: "NOT_COMPENSABLE", state: "registered_closed" },
      });
      expect(await world().effects()).toMatchObject({ compensated: 0 });
    });

    test("a nonce compensates one request only, and owners at once compensate it once", async () => {
      await fail();
      const other = await world().addBroker();
      const [a, b] = [await world().grant(forCompensation), await world().grant(forCompensation)];
      const answers = await Promise.all([world().broker.compensate("key-1", a), other.compensate("key-1", b)]);
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 409]);
      expect(await world().effects()).toEqual({ ...one, compensated: 1 });
    });
  });

  test("RP-08 (REG-6): a stale request is inadmissible, and staleness frees nothing", async () => {
    const stale = { expires_at: world().nowMs - 1 };
    const granted = await world().grant();
    const nothing = await world().ask({ ...granted, ...stale });
    expect(nothing).toMatchObject({ status: 410, body: { error: "request_stale", code: "REQUEST_STALE" } });
    expect(nothing.body).not.toHaveProperty("prior");
    expect(await world().effects()).toMatchObject({ consumed: 0 });
    const first = await world().ask({ ...granted, expires_at: world().nowMs });
    expect(first.status).toBe(201);
    world().nowMs += 1;
    const late = await world().ask({ ...granted, ...stale });
    expect(late).toMatchObject({ status: 410, body: { prior: { registration: first.body.registration } } });
    // The consume row still blocks: neither the stale request nor a fresh one with a fresh nonce gets a second effect.
    expect(await world().ask({ logical_request_key: "key-2" })).toMatchObject({ body: { conflict: "effect_exists" } });
    expect(await world().ask(granted)).toMatchObject({ status: 200 });
    expect(await world().effects()).toEqual(one);
  });

  describe("RP-09 (REG-1): of attempts at once one wins", () => {
    test("the others get the same registration, as a duplicate or as ATTEMPT_COLLISION, on any broker", async () => {
      const brokers = [world().broker, await world().addBroker(), await world().addBroker()];
      const request = await world().request();
      const answers = await Promise.all(
        brokers.flatMap((on) => [1, 2, 3].map((n) => world().ask({ ...request, attempt_id: `attempt ${n}`, on }))),
      );
      const winners = answers.filter(({ status }) => status === 201);
      expect(winners).toHaveLength(1);
      for (const { status, body } of answers) {
        expect(body.registration).toEqual(winners[0]?.body.registration);
        if (status !== 201 && status !== 200) expect([status, body.code]).toEqual([409, "ATTEMPT_COLLISION"]);
      }
      expect(await world().effects()).toEqual(one);
    });

    test("a request that saw the key free and finds it taken learns of the collision, with the winner's registration", async () => {
      const request = await world().request();
      const other = await world().addBroker();
      let winner: unknown;
      const loser = await world().broker.registerWith(request, world().member, async () => {
        winner = (await world().ask({ ...request, attempt_id: "the winner", on: other })).body.registration;
      });
      expect(loser).toMatchObject({
        status: 409,
        body: {
          error: "attempt_collision",
          code: "ATTEMPT_COLLISION",
          registration: winner,
          state: "registered_closed",
        },
      });
      expect(await world().broker.resolve("key-1")).toMatchObject({ attempts: { recorded: 2, retries: 1 } });
      expect(await world().effects()).toEqual(one);
    });

    test("one nonce offered for two keys at once, and one effect under two keys, are registered once", async () => {
      const other = await world().addBroker();
      const granted = await world().grant();
      const spent = await Promise.all([
        world().ask(granted),
        world().ask({ ...granted, logical_request_key: "key-2", on: other }),
      ]);
      expect(spent.map(({ status }) => status).sort()).toEqual([201, 409]);
      const [a, b] = [await world().grant({ run_id: "r" }), await world().grant({ run_id: "r" })];
      const effects = await Promise.all([
        world().ask({ ...a, run_id: "r", logical_request_key: "key-3" }),
        world().ask({ ...b, run_id: "r", logical_request_key: "key-4", on: other }),
      ]);
      expect(effects.map(({ status }) => status).sort()).toEqual([201, 409]);
      expect(await world().effects()).toMatchObject({ consumed: 2, registered: 2 });
    });
  });

  test("RP-10 (REG-8): a surface keyed by attempts is not fit, whatever else it has", async () => {
    const { store, facts } = await world().broker.store.inspect();
    const asLedger = [...facts].map((fact) =>
      fact === "unique registrar_consume (mesh_id, logical_request_key)"
        ? "unique registrar_consume (mesh_id, logical_request_key, attempt_id)"
        : fact,
    );
    const proof = proveSurface({ store, facts: new Set(asLedger), notes: [] });
    expect(proof.fit).toBe(false);
    const [single] = proof.criteria;
    expect(single).toMatchObject({
      criterion: "a",
      holds: false,
      missing: ["unique registrar_consume (mesh_id, logical_request_key)"],
      forbidden: ["unique registrar_consume (mesh_id, logical_request_key, attempt_id)"],
    });
    expect(proveSurface({ store, facts, notes: [] })).toMatchObject({ fit: true });
  });

  test("every refusal is in the audit, or counted in the summary of its window (REG-7)", async () => {
    const refusals = auditRowsPerWindow + 7;
    const asked = { approval_id: "unknown", logical_request_key: "never" };
    for (let n = 0; n < refusals; n++) expect((await world().ask(asked)).status).toBe(403);
    await world().ask({ ...asked, by: world().owner });
    expect(await world().count("registrar_audit", "kind = 'refusal'")).toBe(auditRowsPerWindow + 1);
    expect(await world().count("registrar_audit", "kind = 'summary'")).toBe(0);
    world().nowMs += auditWindowMs;
    const nextId = () => crypto.randomUUID();
    expect(await world().broker.store.audit.summarise(world().nowMs, 100_000, nextId)).toBeGreaterThanOrEqual(1);
    const entries = await world().broker.store.audit.list(world().meshId, "", 1000);
    const summaries = entries.filter((entry) => entry.kind === "summary");
    expect(summaries).toMatchObject([{ memberPubkey: world().member.pubkey, suppressed: 7 }]);
    expect(entries.find((entry) => entry.kind === "refusal")).toMatchObject({
      code: "nonce_unbound",
      logicalRequestKey: "never",
      approvalId: "unknown",
    });
    await world().ask(asked);
    expect(await world().count("registrar_audit", "kind = 'refusal'")).toBe(auditRowsPerWindow + 2);
  });
}

function approvalOf(first: { readonly body: Readonly<Record<string, unknown>> }): string {
  return String((first.body.registration as Record<string, unknown>).approval_id);
}
