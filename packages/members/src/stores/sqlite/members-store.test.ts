// SQLite through the members suite, and what its file may hold: hashes, never secrets.
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GroupCommit } from "@claudemesh/storage/group-commit";
import { openSqlite } from "@claudemesh/storage/sqlite";
import { migrateSqlite } from "@claudemesh/storage/sqlite-migrations";
import { afterAll, describe, expect, test } from "vitest";
import { hashSecret } from "../../core/credentials.ts";
import { createInvite } from "../../services/join-mesh.ts";
import { createToken } from "../../services/member-tokens.ts";
import { describeMembersSuite, type OpenMembers } from "../suites/members.suite.ts";
import { createSqliteBrokersStore } from "./brokers-store.ts";
import { createSqliteMembersStore, membersMigrations } from "./members-store.ts";

const folder = mkdtempSync(join(tmpdir(), "claudemesh-members-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let databases = 0;

async function openMembers(): Promise<OpenMembers & { readonly path: string }> {
  databases += 1;
  const path = join(folder, `${databases}.db`);
  const db = openSqlite({ path });
  await migrateSqlite(db, membersMigrations());
  const commit = new GroupCommit(db);
  return {
    path,
    store: createSqliteMembersStore(db, commit),
    brokers: createSqliteBrokersStore(db, commit),
    async revokeMember(meshId, pubkey) {
      const revoke = db.sql("UPDATE member SET revoked_at = 1 WHERE mesh_id = ? AND pubkey = ?");
      expect(revoke.run(meshId, pubkey).changes).toBe(1);
    },
    async close() {
      commit.close();
      db.close();
    },
  };
}

describe("members on SQLite", () => describeMembersSuite(openMembers));

describe("an invite from before invites had ids", () => {
  test("gets one of its own, and is what it was", async () => {
    const db = openSqlite({ path: join(folder, "earlier.db") });
    const migrations = membersMigrations();
    await migrateSqlite(db, migrations.slice(0, 1));
    db.exec(`INSERT INTO mesh VALUES ('m1', 'acme', 1);
      INSERT INTO member VALUES ('m1', 'a', 'alice', 'owner', 1, NULL);
      INSERT INTO invite VALUES ('m1', x'01', 'a', 2, 100, NULL, NULL), ('m1', x'02', 'a', 3, 100, 'b', 4)`);
    await migrateSqlite(db, migrations);
    const commit = new GroupCommit(db);
    const store = createSqliteMembersStore(db, commit);
    const { items } = await store.listInvites("m1", "", 10);
    const from = { createdBy: "a", expiresAt: 100, revokedAt: undefined, madeByOwner: true };
    expect(items.map(({ id: _, ...rest }) => rest).toSorted((a, b) => a.createdAt - b.createdAt)).toEqual([
      { ...from, createdAt: 2, usedBy: undefined, usedAt: undefined },
      { ...from, createdAt: 3, usedBy: "b", usedAt: 4 },
    ]);
    for (const { id } of items) expect(id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(new Set(items.map(({ id }) => id)).size).toBe(2);
    const unused = items.find(({ usedBy }) => usedBy === undefined)?.id ?? "";
    expect(await store.revokeInvite("m1", "a", unused, 5)).toEqual({ type: "revoked" });
    expect(await store.join("m1", Buffer.from([1]), { pubkey: "c", name: "carol" }, 6)).toEqual({ type: "refused" });
    commit.close();
    db.close();
  });
});

describe("the database file", () => {
  test("holds the hashes of invites and tokens, and nowhere their secrets", async () => {
    const members = await openMembers();
    const outcome = await members.store.createMesh(
      { id: "m1", name: "acme" },
      { pubkey: "a".repeat(64), name: "alice" },
      1,
    );
    if (outcome.type !== "created") throw new Error("the database was not empty");
    let ids = 0;
    const ports = { store: members.store, nowMs: () => 2, nextId: () => `token-${++ids}` };
    const { secret } = await createInvite(ports, outcome.owner);
    const { token } = await createToken(ports, outcome.owner, "ci");
    const written = () =>
      ["", "-wal"]
        .map((suffix) => members.path + suffix)
        .filter((path) => existsSync(path))
        .map((path) => readFileSync(path));
    const holds = (needle: string | Buffer) => written().some((bytes) => bytes.includes(needle));
    const checkFiles = () => {
      for (const text of [secret, token]) {
        expect(holds(Buffer.from(hashSecret(text)))).toBe(true);
        expect(holds(text)).toBe(false);
        // Neither the random part alone, as text or as bytes.
        expect(holds(text.slice(4))).toBe(false);
        expect(holds(Buffer.from(text.slice(4), "base64url"))).toBe(false);
      }
    };
    checkFiles();
    await members.close();
    checkFiles();
  });
});
