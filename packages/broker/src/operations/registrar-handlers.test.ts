// The registrar over the network with SQLite; and what a broker does whose registrar's tables are not fit.
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import {
  createTestMesh,
  joinTestMesh,
  makeTemporaryFolder,
  startTestBroker,
} from "../../../../tests/support/broker-harness.ts";
import { grant, register, signedApproval } from "../../../../tests/support/registrar-member.ts";
import { describeRegistrarOverNetwork } from "./suites/registrar/conformance.ts";

describe("the registrar over the network, on SQLite", () => {
  describeRegistrarOverNetwork((flags = {}, env = {}) => startTestBroker({ flags, env }));
});

describe("a broker whose registrar's tables are not fit (RP-10, REG-8)", () => {
  test("refuses every call of it with what is missing, and serves all the rest", async () => {
    const folder = makeTemporaryFolder();
    const broker = await startTestBroker({ folder });
    const owner = await createTestMesh(broker);
    const member = await joinTestMesh(owner, "ci");
    await register(member, await grant(owner));
    await broker.stop();
    const db = new DatabaseSync(join(folder, "broker.db"));
    db.exec("DROP TRIGGER registrar_consume_replace");
    db.close();
    const again = await startTestBroker({ folder });
    owner.url = again.url;
    member.url = again.url;
    const calls = [
      owner.call("POST", "/registrar/approvals", signedApproval(owner)),
      owner.call("GET", "/registrar/approvals"),
      register(member, { approval_id: "a", authorization_nonce: "n" }),
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
          missing: ["guard registrar_consume against replace"],
          criteria: [{ criterion: "e" }, { criterion: "h" }],
        },
      });
    }
    expect((await owner.send("m1", member)).status).toBe(201);
    const metrics = await (await fetch(`${again.url}/metrics`)).text();
    expect(metrics).toContain("cm_broker_registrar_open 0");
  });

  test("does not start with a verifier that cannot be run", async () => {
    const flags = { "registrar-verifier": "exec:/nowhere/verifier" };
    await expect(startTestBroker({ flags })).rejects.toThrow(/--registrar-verifier names \/nowhere\/verifier/);
  });
});
