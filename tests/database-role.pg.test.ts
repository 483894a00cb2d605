// The role that docs/operations.md and compose.yaml give a broker on PostgreSQL, which is no superuser, is enough to
// migrate and to serve, and the registrar's proof has nothing to remark on it.
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { proveStore } from "@claudemesh/broker/offline";
import pg from "pg";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { joinTestMesh } from "./support/broker-harness.ts";
import { Brokers, createMeshOn, findServers } from "./support/brokers.ts";

const servers = await findServers("role");
afterAll(() => servers.stop());

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");

/** The statements that make the role, as the page shows them. */
function readStatements(): string[] {
  const [, sql = ""] = /```sql\n(CREATE ROLE mesh[\s\S]*?)```/.exec(read("docs/operations.md")) ?? [];
  return sql.split("\n").filter((line) => line !== "");
}

async function asAdmin(run: (admin: pg.Client) => Promise<void>): Promise<void> {
  const admin = new pg.Client({ connectionString: servers.urls.databaseUrl });
  await admin.connect();
  await run(admin).finally(() => admin.end());
}

/** Runs the page's statements under a name of this test's own; the role and its database go away with the test. */
async function makeRole(): Promise<string> {
  const name = `claudemesh_test_role_${randomBytes(6).toString("hex")}`;
  const secret = randomBytes(12).toString("hex");
  onTestFinished(() =>
    asAdmin(async (admin) => {
      await admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      await admin.query(`DROP ROLE IF EXISTS ${name}`);
    }),
  );
  await asAdmin(async (admin) => {
    for (const statement of readStatements()) {
      await admin.query(statement.replace(/'[^']*'/, `'${secret}'`).replaceAll(/\bmesh\b/g, name));
    }
  });
  const url = new URL(servers.urls.databaseUrl);
  return Object.assign(url, { username: name, password: secret, pathname: `/${name}` }).href;
}

test("compose.yaml's script makes the same role as docs/operations.md", () => {
  const statements = readStatements().map((line) => line.replace(/'[^']*'/, ":'password'"));
  expect(statements).toHaveLength(3);
  expect(read("scripts/compose/create-role.sh")).toContain(`${statements.join("\n")}\n`);
  expect(read("compose.yaml")).toContain("./scripts/compose/create-role.sh:/docker-entrypoint-initdb.d/");
});

describe.skipIf(!servers.found)("a broker whose role is no superuser", () => {
  test("migrates, serves, and opens a registrar whose records its role cannot change", async () => {
    const databaseUrl = await makeRole();
    const brokers = new Brokers({ ...servers.urls, databaseUrl });
    onTestFinished(() => brokers.end());
    const broker = await brokers.add();
    const alice = await createMeshOn(brokers, broker, "acme");
    const bob = await joinTestMesh(alice, "bob");
    const link = await bob.connect("daemon");
    await alice.send("m1", bob);
    expect(await link.next((frame) => frame.type === "message")).toMatchObject({ client_message_id: "m1" });
    expect(await proveStore({ kind: "postgres", url: databaseUrl })).toMatchObject({ fit: true, notes: [] });

    const role = new pg.Client({ connectionString: databaseUrl });
    await role.connect();
    onTestFinished(() => role.end());
    await expect(role.query("SET session_replication_role = replica")).rejects.toThrow(/permission denied/);
  });
});
