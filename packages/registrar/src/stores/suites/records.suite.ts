// Approvals, lists, and records that no statement can change: what the database itself refuses, asked for past the
// registrar.
import { hashSecret } from "@claudemesh/members/credentials";
import { approvalBytes, storedApprovalBytes } from "@claudemesh/protocol/registrar/approval";
import { describe, expect, test } from "vitest";
import { stateOf } from "../../core/stored-state.ts";
import { appendOnlyTables } from "../../core/surface.ts";
import type { Verifier } from "../../services/verify-registration.ts";
import type { RegistrarWorld } from "./world.ts";

const failing: Verifier = { name: "failing", verify: async () => ({ type: "failed", reason: "no" }) };

export function describeRecords(world: () => RegistrarWorld): void {
  describe("an approval", () => {
    test("shows its nonce once; the same again is the record, and other terms or another owner conflict", async () => {
      const input = world().signed(world().terms({ approval_id: "a" }));
      const first = await world().broker.approve(input, world().owner);
      expect(first).toMatchObject({ status: 201, body: { authorization_nonce: expect.stringMatching(/^cmn_/) } });
      const again = await world().broker.approve(input, world().owner);
      expect(again.status).toBe(200);
      expect(JSON.stringify(again.body)).not.toContain("cmn_");
      const other = world().signed(world().terms({ approval_id: "a", target: "staging" }));
      expect(await world().broker.approve(other, world().owner)).toMatchObject({
        status: 409,
        body: { error: "exists_with_other_content" },
      });
      const second = await world().addPerson("owner");
      const theirs = world().signed(world().terms({ approval_id: "a" }), second);
      expect(await world().broker.approve(theirs, second)).toMatchObject({ status: 409 });
      const stored = JSON.stringify(
        await world().harness.query(`SELECT * FROM ${world().table("registrar_approval")}`),
      );
      expect(stored).not.toContain(String(first.body.authorization_nonce));
    });

    test("is an owner's, signed with the owner's key over exactly these terms", async () => {
      const terms = world().terms();
      expect(await world().broker.approve(world().signed(terms, world().member), world().member)).toMatchObject({
        status: 403,
      });
      const stretched = { ...world().signed(terms), not_after: terms.not_after + 1 };
      expect(await world().broker.approve(stretched, world().owner)).toMatchObject({ status: 403 });
      const borrowed = world().signed(terms, world().member);
      expect(await world().broker.approve(borrowed, world().owner)).toMatchObject({ status: 403 });
      expect(await world().count("registrar_approval")).toBe(0);
    });

    test("is good in the mesh that it was signed for, and signed under its label", async () => {
      const terms = world().terms();
      const { owner } = world();
      const elsewhere = owner.sign(approvalBytes("0198c0de-0000-7000-8000-000000000001", terms));
      const unlabelled = owner.sign(storedApprovalBytes(1, world().meshId, terms));
      for (const signature of [elsewhere, unlabelled]) {
        expect(await world().broker.approve({ ...terms, signature }, owner)).toMatchObject({
          status: 403,
          body: { error: "forbidden", field: "signature" },
        });
      }
      expect(await world().count("registrar_approval")).toBe(0);
    });

    test("from before is verified by what it was signed over, and what that is never changes", async () => {
      const terms = world().terms();
      const { owner, meshId } = world();
      const approval = {
        terms,
        ownerPubkey: owner.pubkey,
        nonceHash: hashSecret("cmn_old"),
        approvedAtMs: world().nowMs,
      };
      const signature = owner.sign(storedApprovalBytes(1, meshId, terms));
      const { approvals } = world().broker.store;
      await approvals.add(meshId, { ...approval, signature, signatureVersion: 1, revokedAtMs: undefined });
      const authority = { approval_id: terms.approval_id, authorization_nonce: "cmn_old" };
      expect(await world().ask(authority)).toMatchObject({ status: 201, body: { state: "registered_closed" } });
      const table = world().table("registrar_approval");
      await expect(world().harness.query(`UPDATE ${table} SET signature_version = 2`)).rejects.toThrow(
        "only be revoked",
      );
    });

    test.for([
      [{ not_after: 1 }, "not_after"],
      [{ logical_request_key: "key-1" }, "logical_request_key"],
      [{ purpose: "compensate" }, "logical_request_key"],
      [{ target: "e\u0301" }, "target"],
    ] as const)("with terms that make no sense is 400: %j", async ([terms, field]) => {
      const input = world().signed(world().terms(terms));
      expect(await world().broker.approve(input, world().owner)).toMatchObject({ status: 400, body: { field } });
    });

    test("is revoked once, and the time of the first revocation stays", async () => {
      const { approval_id } = await world().grant();
      await world().broker.revoke(approval_id);
      const first = await world().broker.store.approvals.find(world().meshId, approval_id);
      world().nowMs += 5;
      await world().broker.revoke(approval_id);
      expect(await world().broker.store.approvals.find(world().meshId, approval_id)).toEqual(first);
      await expect(world().broker.revoke("unknown")).rejects.toMatchObject({ code: "not_found" });
    });
  });

  test("texts that have two spellings are refused before anything is looked at", async () => {
    const granted = await world().grant();
    for (const field of ["logical_request_key", "attempt_id", "operation", "target", "run_id"]) {
      const refused = await world().ask({ ...granted, [field]: "e\u0301" });
      expect(refused).toMatchObject({ status: 400, body: { field } });
    }
    expect(await world().effects()).toMatchObject({ consumed: 0 });
  });

  test("registrations are listed in their order, page by page, and other meshes see none of them", async () => {
    for (const run_id of ["r1", "r2", "r3"]) await world().ask({ run_id, logical_request_key: `key ${run_id}` });
    const { requests } = world().broker.store;
    const page = await requests.list(world().meshId, "", 2);
    const rest = await requests.list(world().meshId, page.at(-1)?.registration.registrationId ?? "", 2);
    expect([...page, ...rest].map(({ registration }) => registration.runId)).toEqual(["r1", "r2", "r3"]);
    expect(await requests.list("00000000-0000-7000-8000-000000000000", "", 2)).toEqual([]);
  });

  test("the verifier looks at rows, not at words: rows that do not hold together fail", async () => {
    const request = await world().request();
    world().broker.crash.afterCommit = () => {
      throw new Error("power is gone");
    };
    await expect(world().ask(request)).rejects.toThrow();
    world().broker.crash.afterCommit = undefined;
    const { approvals } = world().broker.store;
    const forged = { ...world().broker.store, approvals: { ...approvals, find: async () => undefined } };
    const { verifyRegistration } = await import("../../services/verify-registration.ts");
    const ports = {
      store: forged,
      nowMs: () => world().nowMs,
      verifier: undefined,
      onVerified: () => undefined,
      isSignedBy: async () => true,
    };
    const verified = await verifyRegistration(ports, world().meshId, "key-1");
    expect(verified?.verification).toMatchObject({
      state: "verify_failed",
      verifier: "built-in",
      reasons: ["the approval is not there"],
    });
    // The first verdict stands.
    await world().broker.finish();
    expect(await world().broker.state("key-1")).toBe("verify_failed");
  });

  test("what a retry is answered with is what stands in every table, in every state (REG-1, REG-4)", async () => {
    const asked = { logical_request_key: "key \u201c1\u201d\\", target: 'a "target"\nof \u00fc' };
    const { requests } = world().broker.store;
    const sameRead = async (state: string) => {
      const stored = await requests.find(world().meshId, asked.logical_request_key);
      expect(await requests.findConsumed(world().meshId, asked.logical_request_key)).toEqual(stored);
      expect(stateOf(stored)).toBe(state);
    };
    await sameRead("unknown");
    world().nowMs += 7;
    world().broker.verifier = { name: "silent", verify: async () => ({ type: "inconclusive", reason: "busy" }) };
    expect(await world().ask(asked)).toMatchObject({ status: 201 });
    await sameRead("inert");
    world().nowMs += 11;
    world().broker.verifier = failing;
    await world().broker.finish();
    await sameRead("verify_failed");
    world().nowMs += 13;
    const granted = await world().grant({ ...asked, purpose: "compensate" });
    expect(await world().broker.compensate(asked.logical_request_key, granted)).toMatchObject({ status: 201 });
    await sameRead("compensated");
  });

  test("the verifier reads the registration itself, not what the consumed key repeats of it (REG-4)", async () => {
    world().broker.verifier = { name: "silent", verify: async () => ({ type: "inconclusive", reason: "busy" }) };
    await world().ask();
    await world().harness.queryUnguarded(
      `UPDATE ${world().table("registrar_registration")} SET target = 'elsewhere' WHERE logical_request_key = 'key-1'`,
    );
    world().broker.verifier = undefined;
    await world().broker.finish();
    const stored = await world().broker.store.requests.find(world().meshId, "key-1");
    expect(stored?.verification).toMatchObject({
      state: "verify_failed",
      reasons: expect.arrayContaining(["the replay key is not the registration's"]),
    });
  });

  test("a verifier that says nothing leaves the registration inert, and it is verified later", async () => {
    world().broker.verifier = { name: "slow", verify: async () => ({ type: "inconclusive", reason: "too slow" }) };
    expect(await world().ask()).toMatchObject({ status: 201, body: { state: "inert" } });
    await world().broker.finish();
    expect(await world().broker.state("key-1")).toBe("inert");
    world().broker.verifier = undefined;
    await world().broker.finish();
    expect(await world().broker.state("key-1")).toBe("registered_closed");
  });

  test("however many are unverified all are looked at, also behind those of which nothing can be said (REG-4)", async () => {
    world().broker.verifier = { name: "silent", verify: async () => ({ type: "inconclusive", reason: "busy" }) };
    for (let n = 0; n < 70; n++) await world().ask({ run_id: `run ${n}`, logical_request_key: `key ${n}` });
    let asked = 0;
    world().broker.verifier = {
      name: "slow to start",
      verify: async () => (++asked <= 66 ? { type: "inconclusive", reason: "busy" } : { type: "passed" }),
    };
    expect(await world().broker.finish()).toBe(4);
    expect(asked).toBe(70);
    world().broker.verifier = undefined;
    expect(await world().broker.finish()).toBe(66);
    expect(await world().effects()).toMatchObject({ registered: 70, verified: 70 });
  });

  test("many attempts are kept by name up to a bound, and counted beyond it", async () => {
    const request = await world().request();
    await world().ask(request);
    for (let n = 0; n < 130; n++) await world().ask({ ...request, attempt_id: `attempt ${n}` });
    await world().ask({ ...request, attempt_id: "attempt 3" });
    const { attempts } = (await world().broker.resolve("key-1")) as { attempts: object };
    expect(attempts).toEqual({ recorded: 101, retries: 131 });
    const rows = await world().broker.store.attempts.list(world().meshId, "key-1");
    expect(rows).toHaveLength(101);
    expect(rows[3]).toMatchObject({ attemptId: "attempt 3", tries: 2 });
    expect(rows.at(-1)).toMatchObject({ attemptId: undefined, tries: 30 });
  });

  describe("no statement changes a record (REG-8)", () => {
    const fill = async () => {
      world().broker.verifier = failing;
      await world().ask();
      const granted = await world().grant({ purpose: "compensate", logical_request_key: "key-1" });
      await world().broker.compensate("key-1", granted);
      await world().ask({ approval_id: "unknown", logical_request_key: "refused" });
    };
    const read = async (table: string) =>
      JSON.stringify(await world().harness.query(`SELECT * FROM ${world().table(table)} ORDER BY 1, 2`));

    test.for([...appendOnlyTables, "registrar_approval"])("of %s", async (name) => {
      await fill();
      const table = world().table(name);
      const before = await read(name);
      expect(before).not.toBe("[]");
      const statements = [
        `UPDATE ${table} SET mesh_id = mesh_id`,
        `DELETE FROM ${table}`,
        `DELETE FROM ${table} WHERE mesh_id = '${world().meshId}'`,
        ...(world().harness.kind === "sqlite"
          ? [
              `INSERT OR REPLACE INTO ${table} SELECT * FROM ${table}`,
              `UPDATE OR REPLACE ${table} SET mesh_id = 'other'`,
            ]
          : [`TRUNCATE ${table}`, `TRUNCATE ${table} CASCADE`]),
      ];
      for (const statement of statements) {
        await expect(world().harness.query(statement), statement).rejects.toThrow();
        expect(await read(name)).toBe(before);
      }
    });

    test("of an approval but its revocation, and that only once", async () => {
      const { approval_id } = await world().grant();
      const set = (what: string) =>
        world().harness.query(
          `UPDATE ${world().table("registrar_approval")} SET ${what}
           WHERE mesh_id = '${world().meshId}' AND approval_id = '${approval_id}'`,
        );
      for (const what of [
        "target = 'staging'",
        "not_after = not_after + 1",
        `revoked_at = ${world().sqlTime}, target = 'x'`,
      ]) {
        await expect(set(what), what).rejects.toThrow();
      }
      await set(`revoked_at = ${world().sqlTime}`);
      for (const what of ["revoked_at = NULL", `revoked_at = ${world().sqlTime}`]) {
        await expect(set(what), what).rejects.toThrow();
      }
    });
  });
}
