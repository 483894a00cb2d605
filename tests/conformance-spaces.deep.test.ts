// Our own spaces and registrar on SQLite, held against the contract by the kit that others use.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tryArea, trySpaces } from "./support/conformance-runs.ts";
import { type BrokerTarget, createMeshWithOwner, startBrokerTarget } from "./support/conformance-targets.ts";

const refusedTarget = "refused";
/** More than the kit sends elsewhere, and soon spent. */
const budget = 200;
const folder = mkdtempSync(join(tmpdir(), "cm-verifier-"));
let broker: BrokerTarget;

beforeAll(async () => {
  const verifier = join(folder, "verifier.sh");
  writeFileSync(verifier, `#!/bin/sh\n! grep -q '"target":"${refusedTarget}"'\n`);
  chmodSync(verifier, 0o700);
  broker = await startBrokerTarget({ "registrar-verifier": `exec:${verifier}`, "rate-limit": `${budget}/60s` });
});

afterAll(async () => {
  await broker.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe("the conformance kit", () => {
  it("finds our spaces in keeping with the contract", async () => {
    const { passed, ...rest } = await trySpaces(broker, budget);
    expect(rest).toEqual({ missed: [], skipped: [] });
    expect(passed).toBeGreaterThan(90);
  });

  it("finds our registrar in keeping with the contract, failed verifications among it", async () => {
    const { missed, skipped, passed } = await tryArea("registrar", {
      url: [broker.url],
      "admin-token": [broker.adminToken],
      "refused-target": [refusedTarget],
    });
    expect(missed).toEqual([]);
    expect(skipped).toEqual([]);
    expect(passed).toBeGreaterThan(55);
  });

  it("needs no owner to try spaces, and says what it could not try of the registrar", async () => {
    const { mesh, invites } = await createMeshWithOwner(broker, 6);
    const by = (invite: readonly string[]) => ({ url: [broker.url], mesh: [mesh], invite });
    expect(await tryArea("spaces", by(invites.slice(0, 3)), ["3.7", "0-commit"])).toMatchObject({
      missed: [],
      skipped: ["3.7-required"],
      passed: 4,
    });
    const registrar = await tryArea("registrar", by(invites.slice(3)), ["0"]);
    expect(registrar).toMatchObject({ missed: [], skipped: ["0-approval", "0-registration"], passed: 3 });
  });
});
