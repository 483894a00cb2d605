// The rules between rows: nothing is found where the registrar and `once` alone have written, and every rule that a
// statement breaks, past the guards of the tables, is named.
import { createUuidV7Generator } from "@claudemesh/protocol/ids";
import { expect, test } from "vitest";
import type { registrarRules } from "../row-rules.ts";
import type { RegistrarWorld } from "./world.ts";

const otherMesh = createUuidV7Generator({ nowMs: () => 1, randomBytes: (length) => new Uint8Array(length) })();

function insertEpoch(world: RegistrarWorld, epoch: number, settledHow: string, meshId: string = world.meshId): string {
  const result = settledHow === "recorded" ? "'1'" : "NULL";
  const [holder, time] = [world.member.pubkey, world.sqlTime];
  return `INSERT INTO ${world.table("once_claim")} (mesh_id, key, epoch, claim_id, holder_pubkey, inputs_fingerprint,
      lease_seconds, claimed_at, lease_until, settled_how, settled_by, settled_at, result)
    VALUES ('${meshId}', 'deploy', ${epoch}, 'claim-${epoch}', '${holder}', '${"0".repeat(64)}', 60, ${time}, ${time},
      '${settledHow}', '${holder}', ${time}, ${result})`;
}

/** Every table has a row, and every rule something to look at. */
async function fillWorld(world: RegistrarWorld): Promise<void> {
  const first = await world.request();
  await world.ask(first);
  await world.ask({ ...first, attempt_id: "again" });
  await world.broker.retries.flush();
  world.broker.verifier = { name: "strict", verify: async () => ({ type: "failed", reason: "no" }) };
  const second = { run_id: "run-2", logical_request_key: "key-2" };
  await world.ask(second);
  world.broker.verifier = undefined;
  const granted = await world.grant({ ...second, purpose: "compensate" });
  expect(await world.broker.compensate("key-2", granted)).toMatchObject({ status: 201 });
  expect(await world.ask({ ...first, target: "other" })).toMatchObject({ status: 409 });
  await world.harness.query(insertEpoch(world, 1, "resolved_not_done"));
  await world.harness.query(insertEpoch(world, 2, "recorded"));
}

/** Pages of two, so that every table has several. */
async function check(world: RegistrarWorld): Promise<{ found: Map<string, string[]>; rows: Map<string, number> }> {
  const { rules, checkPage } = world.harness.rules;
  const found = new Map<string, string[]>();
  const rows = new Map<string, number>();
  for (const name of Object.keys(rules)) {
    let after: Awaited<ReturnType<typeof checkPage>>["next"];
    do {
      const page = await checkPage(name, world.meshId, after, { nowMs: world.nowMs, limit: 2 });
      rows.set(name, (rows.get(name) ?? 0) + page.rows);
      if (page.found.length > 0) found.set(name, [...(found.get(name) ?? []), ...page.found]);
      after = page.next;
    } while (after !== undefined);
  }
  return { found, rows };
}

/** A statement that breaks a rule, by the name of that rule. */
const breaks: Record<
  keyof typeof registrarRules,
  (update: (table: string, set: string, where?: string) => string) => string
> = {
  consume_without_registration: (update) =>
    update("registrar_registration", "target = 'other'", "logical_request_key = 'key-1'"),
  consume_not_approved: (update) => update("registrar_approval", "run_id = 'other'", "purpose = 'register'"),
  consume_with_other_digests: (update) =>
    ["registrar_consume", "registrar_registration", "registrar_approval"]
      .map((table) => update(table, "target = 'elsewhere'"))
      .join("; "),
  consume_without_member: (update) => update("registrar_consume", "member_pubkey = 'x'"),
  registration_without_consume: (update) =>
    update("registrar_consume", "logical_request_key = 'other'", "logical_request_key = 'key-1'"),
  verification_without_registration: (update) =>
    update("registrar_registration", "logical_request_key = 'other'", "logical_request_key = 'key-1'"),
  compensation_of_nothing_failed: (update) => update("registrar_verification", "state = 'registered_closed'"),
  compensation_not_approved: (update) => update("registrar_compensation", "approval_id = 'other'"),
  compensation_without_member: (update) => update("registrar_compensation", "compensated_by = 'x'"),
  approval_without_member: (update) => update("registrar_approval", "owner_pubkey = 'x'"),
  attempt_without_consume: (update) => update("registrar_attempt", "logical_request_key = 'other'"),
  audit_without_member: (update) => update("registrar_audit", "member_pubkey = 'x'"),
  audit_window_without_member: (update) => update("registrar_audit_window", "member_pubkey = 'x'"),
  once_epoch_over_open_one: (update) =>
    update("once_claim", "settled_how = NULL, settled_by = NULL, settled_at = NULL", "epoch = 1"),
  once_recorded_by_another: (update) => update("once_claim", "settled_by = 'OWNER'", "epoch = 2"),
  once_without_member: (update) => update("once_claim", "holder_pubkey = 'x'", "epoch = 1"),
};

export function describeRules(world: () => RegistrarWorld): void {
  test("hold in what the registrar and once have written, and every rule has looked at rows", async () => {
    await fillWorld(world());
    const { found, rows } = await check(world());
    expect([...found]).toEqual([]);
    expect([...rows].filter(([, count]) => count === 0)).toEqual([]);
    expect(rows.get("consume_without_registration")).toBe(2);
    expect([...rows.keys()]).toEqual(Object.keys(breaks));
  });

  test.for(Object.entries(breaks))("name %s where a statement has broken it", async ([name, breakRule]) => {
    await fillWorld(world());
    const update = (table: string, set: string, where = "1 = 1") =>
      `UPDATE ${world().table(table)} SET ${set} WHERE mesh_id = '${world().meshId}' AND ${where}`;
    await world().harness.queryUnguarded(breakRule(update).replaceAll("OWNER", world().owner.pubkey));
    const { found } = await check(world());
    expect([...found.keys()]).toContain(name);
  });

  test("name rows of a mesh that does not exist", async () => {
    expect(await world().harness.rules.strayMeshes()).toEqual([]);
    await world().harness.queryUnguarded(insertEpoch(world(), 1, "recorded", otherMesh));
    expect(await world().harness.rules.strayMeshes()).toEqual([`once_claim/${otherMesh}`]);
    await world().harness.queryUnguarded(`DELETE FROM ${world().table("once_claim")} WHERE mesh_id = '${otherMesh}'`);
  });
}
