// PostgreSQL through the members suite, and what is particular to it: text that it can not store, and members who come
// by two doors at once.

import { randomBytes } from "node:crypto";
import { hashSecret, hashToken } from "@claudemesh/members/credentials";
import { createUuidV7Generator } from "@claudemesh/protocol/ids";
import { openPostgres, type Postgres } from "@claudemesh/storage/postgres";
import { migratePostgres } from "@claudemesh/storage/postgres-migrations";
import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { describeMembersSuite, type OpenMembers } from "../suites/members.suite.ts";
import { createPostgresBrokersStore } from "./brokers-store.ts";
import { createPostgresMembersStore, postgresMembersMigrations } from "./members-store.ts";

const database = await createTestDatabase("members");
afterAll(() => database?.drop());
const url = database?.url ?? "";

let admin: pg.Client;

/** An empty database each time. */
async function openMembers(): Promise<OpenMembers & { readonly postgres: Postgres }> {
  await admin.query("DROP SCHEMA IF EXISTS claudemesh CASCADE; DROP SCHEMA IF EXISTS mesh CASCADE");
  const postgres = openPostgres({ url, poolSize: 4, onIdleError: () => undefined });
  await migratePostgres(postgres, postgresMembersMigrations());
  return {
    postgres,
    store: createPostgresMembersStore(postgres),
    brokers: createPostgresBrokersStore(postgres),
    async revokeMember(meshId, pubkey) {
      const revoke = "UPDATE mesh.member SET revoked_at = now() WHERE mesh_id = $1 AND pubkey = $2";
      expect((await admin.query(revoke, [meshId, pubkey])).rowCount).toBe(1);
    },
    close: () => postgres.close(),
  };
}

describe.skipIf(database === undefined)("members on PostgreSQL", () => {
  beforeAll(async () => {
    admin = new pg.Client({ connectionString: url });
    await admin.connect();
  });
  afterAll(() => admin.end());

  describeMembersSuite(openMembers);

  describe("particulars", () => {
    let members: Awaited<ReturnType<typeof openMembers>>;
    beforeEach(async () => {
      members = await openMembers();
      return () => members.close();
    });
    const nextId = createUuidV7Generator({ nowMs: Date.now, randomBytes });
    const alice = { pubkey: "a".repeat(64), name: "alice" };

    test("a name is taken in whatever case also where the database's language lowers I to another letter", async () => {
      const name = `${new URL(url).pathname.slice(1)}_tr`;
      await admin.query(
        `CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'tr-TR'`,
      );
      const turkish = new URL(url);
      turkish.pathname = name;
      const postgres = openPostgres({ url: turkish.href, poolSize: 1, onIdleError: () => undefined });
      try {
        await migratePostgres(postgres, postgresMembersMigrations());
        const store = createPostgresMembersStore(postgres);
        const outcome = await store.createMesh({ id: nextId(), name: "acme" }, alice, 1);
        if (outcome.type !== "created") throw new Error("the database was not empty");
        expect(await store.isNameTaken(outcome.mesh.id, "ALICE")).toBe(true);
        expect(await store.isNameTaken(outcome.mesh.id, "ALIC")).toBe(false);
      } finally {
        await postgres.close();
        await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
      }
    });

    test("a text that PostgreSQL can not hold is not found, and lists go on after it", async () => {
      const { store } = members;
      const outcome = await store.createMesh({ id: nextId(), name: "acme" }, alice, 1);
      if (outcome.type !== "created") throw new Error("the database was not empty");
      const { id } = outcome.mesh;
      for (const name of ["", "\0", "acme\0", id.toUpperCase()]) expect(await store.findMesh(name)).toBeUndefined();
      expect(await store.findMember(id, "a\0")).toBeUndefined();
      expect(await store.revokeToken(id, alice.pubkey, "\0", 1)).toBe(false);
      expect((await store.listMembers(id, "a\0z", 10)).items).toHaveLength(1);
      expect((await store.listMembers(id, `${alice.pubkey}\0`, 10)).items).toHaveLength(0);
      expect((await store.listTokens(id, alice.pubkey, "\0", 10)).items).toHaveLength(0);
      expect((await store.listInvites(id, "\0", 10)).items).toHaveLength(0);
      expect(await store.revokeInvite(id, alice.pubkey, "\0", 1)).toEqual({ type: "not_found" });
    });

    test("callers that are looked up together each get their own answer, and a revocation counts from the next one on", async () => {
      const { store } = members;
      const ids = [nextId(), nextId()];
      for (const [at, id] of ids.entries()) await store.createMesh({ id, name: `mesh-${at}` }, alice, 1);
      const [first = "", second = ""] = ids;
      for (const [at, label] of ["kept", "revoked"].entries()) {
        const token = { id: nextId(), tokenHash: hashToken(label), pubkey: alice.pubkey, label };
        await store.addToken(first, token, 1);
        if (at === 1) expect(await store.revokeToken(first, alice.pubkey, token.id, 2)).toBe(true);
      }
      const asked = [
        store.findByToken(first, hashToken("kept")),
        store.findByToken(second, hashToken("kept")),
        store.findByToken("no mesh", hashToken("kept")),
        store.findByToken("mesh-0", hashToken("kept")),
        store.findByToken("mesh-1", hashToken("kept")),
        store.findByToken("mesh-0\0", hashToken("kept")),
        store.findByToken(first, hashToken("revoked")),
        store.findByToken(first, hashToken("kept")),
      ];
      const found = (await Promise.all(asked)).map((caller) => caller?.mesh.id);
      expect(found).toEqual([first, undefined, undefined, first, undefined, undefined, undefined, first]);
      const meshes = await Promise.all([second, "mesh-0", "\0", "none", first].map((name) => store.findMesh(name)));
      expect(meshes.map((mesh) => mesh?.id)).toEqual([second, first, undefined, undefined, first]);
    });

    test("an invite from before invites had ids gets one of its own, and so does one that an earlier version adds", async () => {
      await admin.query("DROP SCHEMA claudemesh CASCADE; DROP SCHEMA mesh CASCADE");
      const { postgres, store } = members;
      const id = nextId();
      const add = (secret: string) =>
        admin.query(`INSERT INTO mesh.invite (mesh_id, secret_hash, created_by, created_at, expires_at)
          VALUES ('${id}', '${secret}', '${alice.pubkey}', now(), now() + interval '1 day')`);
      await migratePostgres(postgres, postgresMembersMigrations().slice(0, 1));
      await store.createMesh({ id, name: "acme" }, alice, 1);
      await add("s1");
      await migratePostgres(postgres, postgresMembersMigrations());
      await add("s2");
      const { items } = await store.listInvites(id, "", 10);
      expect(new Set(items.map((invite) => invite.id)).size).toBe(2);
      for (const invite of items) {
        expect(invite.id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
        expect(await store.revokeInvite(id, alice.pubkey, invite.id, Date.now())).toEqual({ type: "revoked" });
      }
    });

    test("one key that joins by two invites at once is let in once, and one invite stays good", async () => {
      const { store } = members;
      const outcome = await store.createMesh({ id: nextId(), name: "acme" }, alice, 1);
      if (outcome.type !== "created") throw new Error("the database was not empty");
      const { id } = outcome.mesh;
      const hashes = ["s1", "s2"].map(hashSecret);
      for (const secretHash of hashes) {
        await store.addInvite(id, { id: nextId(), secretHash, createdBy: alice.pubkey, expiresAt: 1_000 }, 1);
      }
      const bob = { pubkey: "b".repeat(64), name: "bob" };
      const outcomes = await Promise.all(hashes.map((secretHash) => store.join(id, secretHash, bob, 2)));
      expect(outcomes.map(({ type }) => type).sort()).toEqual(["already_member", "joined"]);
      const carol = { pubkey: "c".repeat(64), name: "carol" };
      const later = await Promise.all(hashes.map((secretHash) => store.join(id, secretHash, carol, 3)));
      expect(later.map(({ type }) => type).sort()).toEqual(["joined", "refused"]);
    });
  });
});
