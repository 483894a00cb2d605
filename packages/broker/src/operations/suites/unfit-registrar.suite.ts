// RP-10 over the network, against a real broker on either store: tables that prove nothing keep the registrar closed and
// nothing else, nothing is consumed meanwhile, and it opens again with tables that are whole. What makes tables fit is
// tested on the stores.
import type { RunningBroker } from "@claudemesh/broker/start";
import { expect, test } from "vitest";
import { createTestMesh, joinTestMesh } from "../../../../../tests/support/broker-harness.ts";
import { grant, register, signedApproval } from "../../../../../tests/support/registrar-member.ts";

/** One store under one broker after another. */
export type DamagedStore = {
  readonly start: () => Promise<RunningBroker>;
  /** As an operator would, past the product. */
  readonly change: (sql: string) => Promise<void>;
};

/** `missing`: what the refusal names, among other things. */
export type Damage = {
  readonly what: string;
  readonly sql: string;
  readonly undo: string;
  readonly missing: string;
};

let meshes = 0;

export function describeUnfitRegistrar(openStore: () => DamagedStore, damages: readonly Damage[]): void {
  test.for(damages)("refuses every call of it $what, and serves all the rest", async ({ sql, undo, missing }) => {
    const store = openStore();
    const whole = await store.start();
    const owner = await createTestMesh(whole, `unfit-${process.pid}-${++meshes}`);
    const member = await joinTestMesh(owner, "ci");
    const startAgain = async () => {
      const broker = await store.start();
      owner.url = broker.url;
      member.url = broker.url;
      return broker;
    };
    const first = await register(member, await grant(owner));
    const later = await grant(owner, { run_id: "run-2" });
    await whole.stop();

    await store.change(sql);
    const damaged = await startAgain();
    const calls = [
      owner.call("POST", "/registrar/approvals", signedApproval(owner)),
      owner.call("GET", "/registrar/approvals"),
      register(member, later),
      register(member, { ...later, run_id: "run-2", logical_request_key: "key-2" }),
      member.call("GET", "/registrar/requests/key-1"),
      member.call("GET", "/registrar/registrations"),
      owner.call("GET", "/registrar/audit"),
    ];
    for (const answer of await Promise.all(calls)) {
      expect(answer).toMatchObject({
        status: 503,
        body: {
          error: "replay_surface_not_fit",
          code: "REPLAY_SURFACE_NOT_FIT",
          missing: expect.arrayContaining([missing]),
        },
      });
    }
    expect((await owner.send("m1", member)).status).toBe(201);
    expect(await (await fetch(`${damaged.url}/metrics`)).text()).toContain("cm_broker_registrar_open 0");
    await damaged.stop();

    await store.change(undo);
    await startAgain();
    const { registration } = first.body;
    expect(await register(member, later)).toMatchObject({ status: 200, body: { registration, duplicate: true } });
    expect(await member.call("GET", "/registrar/requests/key-2")).toMatchObject({ body: { state: "unknown" } });
    const request = { ...later, run_id: "run-2", logical_request_key: "key-2" };
    expect((await register(member, request)).status).toBe(201);
  });
}
