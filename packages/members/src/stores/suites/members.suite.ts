// What every MembersStore owes the services above it, and the services over it, as one suite. Each back end's test
// file supplies the harness and adds what is particular to it.

import { createUuidV7Generator } from "@claudemesh/protocol/ids";
import { createMeshBytes, joinBytes } from "@claudemesh/protocol/wire/signing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createPeerKeys, type PeerKeys } from "../../../../../tests/support/peer-keys.ts";
import { hashSecret, hashToken } from "../../core/credentials.ts";
import type { BrokersStore } from "../../ports/brokers.ts";
import type { Member, MembersStore, Mesh } from "../../ports.ts";
import { createMesh } from "../../services/create-mesh.ts";
import { createInvite, inviteLifetimeSecondsDefault, joinMesh } from "../../services/join-mesh.ts";
import { authenticateTokenHash, createToken, revokeToken } from "../../services/member-tokens.ts";
import { describeBrokers } from "./brokers.suite.ts";
import { describeManagedInvites } from "./invites.suite.ts";
import { describeNames } from "./names.suite.ts";
import { describeRevocation } from "./revocation.suite.ts";
import { describeRoles } from "./roles.suite.ts";
import { describeSettings } from "./settings.suite.ts";

export interface OpenMembers {
  readonly store: MembersStore;
  readonly brokers: BrokersStore;
  /** Ends a membership in the database itself. */
  revokeMember(meshId: string, pubkey: string): Promise<void>;
  close(): Promise<void>;
}

/** Opens a store over an empty database. */
export function describeMembersSuite(open: () => Promise<OpenMembers>): void {
  let members: OpenMembers;
  const fixture: Fixture = {
    get store() {
      return members.store;
    },
    revoke: (meshId, pubkey) => members.revokeMember(meshId, pubkey),
  };
  beforeEach(async () => {
    members = await open();
  });
  afterEach(() => members.close());

  describe("a mesh", () => describeMeshes(fixture));
  describe("an invite", () => describeInvites(fixture));
  describe("the invites of a mesh", () => describeManagedInvites(() => members.store));
  describe("a token", () => describeTokens(fixture));
  describe("revoking a member", () => describeRevocation(() => members.store));

  describe("the brokers of a store", () => describeBrokers(() => members.brokers));
  describe("the names of a mesh", () => describeNames(() => members.store));
  describe("the settings of a mesh", () => describeSettings(() => members.store));
  describe("changing a role", () => describeRoles(() => members.store));
  describe("creating a mesh, signed", () => describeCreateMesh(fixture));
  describe("joining a mesh, signed", () => describeJoinMesh(fixture));
  describe("speaking by token", () => describeTokenService(fixture));
}

type Fixture = {
  readonly store: MembersStore;
  readonly revoke: (meshId: string, pubkey: string) => Promise<void>;
};

const nowMs = 1_700_000_000_000;
const expiresAt = nowMs + 60_000;
const [keyA, keyB, keyC] = ["a", "b", "c"].map((digit) => digit.repeat(64)) as [string, string, string];
const alice = { pubkey: keyA, name: "alice" };
const bob = { pubkey: keyB, name: "bob" };
const carol = { pubkey: keyC, name: "carol" };
const nextId = createUuidV7Generator({ nowMs: () => nowMs, randomBytes: (length) => new Uint8Array(length) });

async function foundMesh(store: MembersStore, name = "acme"): Promise<Mesh> {
  const outcome = await store.createMesh({ id: nextId(), name }, alice, nowMs);
  if (outcome.type !== "created") throw new Error(`the mesh ${name} was there before`);
  return outcome.mesh;
}

async function invite(store: MembersStore, mesh: Mesh, secret: string): Promise<Uint8Array> {
  const secretHash = hashSecret(secret);
  await store.addInvite(mesh.id, { id: secret, secretHash, createdBy: alice.pubkey, expiresAt }, nowMs);
  return secretHash;
}

function codeOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => "no failure",
    (error: { code?: unknown }) => error.code,
  );
}

function describeMeshes(fixture: Fixture): void {
  test("appears together with its owner, under its name and its id", async () => {
    const mesh = { id: nextId(), name: "acme" };
    const owner = { meshId: mesh.id, ...alice, role: "owner", joinedAt: nowMs, revoked: false };
    expect(await fixture.store.createMesh(mesh, alice, nowMs)).toEqual({ type: "created", mesh, owner });
    expect(await fixture.store.findMesh("acme")).toEqual(mesh);
    expect(await fixture.store.findMesh(mesh.id)).toEqual(mesh);
    expect(await fixture.store.findMember(mesh.id, alice.pubkey)).toEqual(owner);
    for (const none of ["other", mesh.id.toUpperCase()]) expect(await fixture.store.findMesh(none)).toBeUndefined();
    expect(await fixture.store.findMember(mesh.id, bob.pubkey)).toBeUndefined();
  });

  test("created again by its owner is what exists, with its first id", async () => {
    const mesh = await foundMesh(fixture.store);
    const again = await fixture.store.createMesh({ id: nextId(), name: "acme" }, alice, nowMs + 1);
    expect(again).toMatchObject({ type: "exists", mesh, owner: { ...alice, joinedAt: nowMs } });
  });

  test("created again by another key, under another name of its owner, or by a revoked owner is different", async () => {
    const mesh = await foundMesh(fixture.store);
    const again = (owner: typeof alice) => fixture.store.createMesh({ id: nextId(), name: "acme" }, owner, nowMs);
    expect(await again(bob)).toEqual({ type: "different" });
    expect(await again({ ...alice, name: "alicia" })).toEqual({ type: "different" });
    await fixture.revoke(mesh.id, alice.pubkey);
    expect(await again(alice)).toEqual({ type: "different" });
    expect(await fixture.store.findMesh("acme")).toEqual(mesh);
    expect(await fixture.store.findMember(mesh.id, bob.pubkey)).toBeUndefined();
  });

  test("asked for by many at once is created once", async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, () => fixture.store.createMesh({ id: nextId(), name: "acme" }, alice, nowMs)),
    );
    expect(outcomes.filter(({ type }) => type === "created")).toHaveLength(1);
    expect(outcomes.filter(({ type }) => type === "exists")).toHaveLength(7);
    const ids = outcomes.map((outcome) => (outcome.type === "different" ? "different" : outcome.mesh.id));
    expect(new Set(ids).size).toBe(1);
  });

  test("lists its live members by public key, page by page", async () => {
    const mesh = await foundMesh(fixture.store);
    for (const member of [carol, bob]) {
      await fixture.store.join(mesh.id, await invite(fixture.store, mesh, member.name), member, nowMs);
    }
    const first = await fixture.store.listMembers(mesh.id, "", 2);
    expect(first.items.map(({ name }) => name)).toEqual(["alice", "bob"]);
    expect(first.nextCursor).toBe(keyB);
    const second = await fixture.store.listMembers(mesh.id, first.nextCursor ?? "", 2);
    expect(second.items.map(({ name }) => name)).toEqual(["carol"]);
    expect(second.nextCursor).toBeUndefined();
    await fixture.revoke(mesh.id, bob.pubkey);
    const rest = await fixture.store.listMembers(mesh.id, "", 10);
    expect(rest.items.map(({ name }) => name)).toEqual(["alice", "carol"]);
    expect(await fixture.store.findMember(mesh.id, bob.pubkey)).toMatchObject({ name: "bob", revoked: true });
  });
}

function describeInvites(fixture: Fixture): void {
  test("lets one key in, and no other after it", async () => {
    const mesh = await foundMesh(fixture.store);
    const secret = await invite(fixture.store, mesh, "s1");
    const member = { meshId: mesh.id, ...bob, role: "member", joinedAt: nowMs, revoked: false };
    expect(await fixture.store.join(mesh.id, secret, bob, nowMs)).toEqual({ type: "joined", member });
    expect(await fixture.store.join(mesh.id, secret, carol, nowMs)).toEqual({ type: "refused" });
    expect(await fixture.store.findMember(mesh.id, carol.pubkey)).toBeUndefined();
  });

  test("answers its own key with the same membership, also after it expired", async () => {
    const mesh = await foundMesh(fixture.store);
    const secret = await invite(fixture.store, mesh, "s1");
    await fixture.store.join(mesh.id, secret, bob, nowMs);
    const again = await fixture.store.join(mesh.id, secret, { ...bob, name: "robert" }, expiresAt + 1);
    expect(again).toMatchObject({ type: "already_member", member: { name: "bob", joinedAt: nowMs } });
  });

  test("is good until the moment it expires", async () => {
    const mesh = await foundMesh(fixture.store);
    const secret = await invite(fixture.store, mesh, "s1");
    expect(await fixture.store.join(mesh.id, secret, bob, expiresAt)).toEqual({ type: "refused" });
    expect(await fixture.store.join(mesh.id, secret, bob, expiresAt - 1)).toMatchObject({ type: "joined" });
  });

  test("is unknown to another mesh, and a secret that was never issued opens nothing", async () => {
    const mesh = await foundMesh(fixture.store);
    const other = await foundMesh(fixture.store, "other");
    const secret = await invite(fixture.store, mesh, "s1");
    expect(await fixture.store.join(other.id, secret, bob, nowMs)).toEqual({ type: "refused" });
    expect(await fixture.store.join(mesh.id, hashSecret("s2"), bob, nowMs)).toEqual({ type: "refused" });
  });

  test("raced for by many keys lets exactly one in", async () => {
    const mesh = await foundMesh(fixture.store);
    const secret = await invite(fixture.store, mesh, "s1");
    const keys = Array.from({ length: 8 }, (_, index) => ({
      pubkey: String(index).repeat(64),
      name: `racer-${index}`,
    }));
    const outcomes = await Promise.all(keys.map((key) => fixture.store.join(mesh.id, secret, key, nowMs)));
    expect(outcomes.filter(({ type }) => type === "joined")).toHaveLength(1);
    expect(outcomes.filter(({ type }) => type === "refused")).toHaveLength(7);
    expect((await fixture.store.listMembers(mesh.id, "", 100)).items).toHaveLength(2);
  });

  test("is not spent by a key that is a member already", async () => {
    const mesh = await foundMesh(fixture.store);
    const secret = await invite(fixture.store, mesh, "s1");
    const again = await fixture.store.join(mesh.id, secret, alice, nowMs);
    expect(again).toMatchObject({ type: "already_member", member: { role: "owner" } });
    expect(await fixture.store.join(mesh.id, secret, bob, nowMs)).toMatchObject({ type: "joined" });
    // Spent by bob, it tells alice nothing any more.
    expect(await fixture.store.join(mesh.id, secret, alice, nowMs)).toEqual({ type: "refused" });
  });

  test("does not bring a revoked member back, neither the one it used nor a new one", async () => {
    const mesh = await foundMesh(fixture.store);
    const secret = await invite(fixture.store, mesh, "s1");
    await fixture.store.join(mesh.id, secret, bob, nowMs);
    await fixture.revoke(mesh.id, bob.pubkey);
    expect(await fixture.store.join(mesh.id, secret, bob, nowMs)).toEqual({ type: "refused" });
    const fresh = await invite(fixture.store, mesh, "s2");
    expect(await fixture.store.join(mesh.id, fresh, bob, nowMs)).toEqual({ type: "refused" });
    expect(await fixture.store.join(mesh.id, fresh, carol, nowMs)).toMatchObject({ type: "joined" });
  });
}

function describeTokens(fixture: Fixture): void {
  const add = (mesh: Mesh, id: string, pubkey = alice.pubkey) =>
    fixture.store.addToken(mesh.id, { id, tokenHash: hashToken(id), pubkey, label: `for ${id}` }, nowMs);

  test("speaks for its member in its mesh alone, until it is revoked", async () => {
    const mesh = await foundMesh(fixture.store);
    const other = await foundMesh(fixture.store, "other");
    await add(mesh, "t1");
    const caller = { mesh, member: { meshId: mesh.id, ...alice } };
    expect(await fixture.store.findByToken(mesh.id, hashToken("t1"))).toMatchObject(caller);
    expect(await fixture.store.findByToken(mesh.name, hashToken("t1"))).toMatchObject(caller);
    expect(await fixture.store.findByToken(other.name, hashToken("t1"))).toBeUndefined();
    for (const none of ["none", mesh.id.toUpperCase()]) {
      expect(await fixture.store.findByToken(none, hashToken("t1"))).toBeUndefined();
    }
    expect(await fixture.store.findByToken(other.id, hashToken("t1"))).toBeUndefined();
    expect(await fixture.store.findByToken(mesh.id, hashToken("t2"))).toBeUndefined();
    expect(await fixture.store.revokeToken(mesh.id, alice.pubkey, "t1", nowMs + 5)).toBe(true);
    expect(await fixture.store.findByToken(mesh.id, hashToken("t1"))).toBeUndefined();
  });

  test("that many requests bring at once is found for each by itself, and by none of those behind its revocation", async () => {
    const mesh = await foundMesh(fixture.store);
    const other = await foundMesh(fixture.store, "other");
    await add(mesh, "t1");
    await add(mesh, "t2");
    const ask = () =>
      Promise.all(
        [mesh.id, other.id, mesh.id, mesh.name, "none", mesh.id].flatMap((wanted) =>
          ["t1", "t2"].map(async (id) => (await fixture.store.findByToken(wanted, hashToken(id)))?.mesh.id),
        ),
      );
    const [yes, no] = [mesh.id, undefined];
    expect(await ask()).toEqual([yes, yes, no, no, yes, yes, yes, yes, no, no, yes, yes]);
    await fixture.store.revokeToken(mesh.id, alice.pubkey, "t1", nowMs + 5);
    expect(await ask()).toEqual([no, yes, no, no, no, yes, no, yes, no, no, no, yes]);
  });

  test("is revoked by its own member only; again changes nothing", async () => {
    const mesh = await foundMesh(fixture.store);
    await add(mesh, "t1");
    expect(await fixture.store.revokeToken(mesh.id, bob.pubkey, "t1", nowMs)).toBe(false);
    expect(await fixture.store.findByToken(mesh.id, hashToken("t1"))).toBeDefined();
    expect(await fixture.store.revokeToken(mesh.id, alice.pubkey, "t1", nowMs + 5)).toBe(true);
    expect(await fixture.store.revokeToken(mesh.id, alice.pubkey, "t1", nowMs + 9)).toBe(true);
    const { items } = await fixture.store.listTokens(mesh.id, alice.pubkey, "", 10);
    expect(items).toEqual([{ id: "t1", label: "for t1", createdAt: nowMs, revokedAt: nowMs + 5 }]);
  });

  test("is listed to its own member, page by page, without its secret", async () => {
    const mesh = await foundMesh(fixture.store);
    for (const id of ["t3", "t1", "t2"]) await add(mesh, id);
    await add(mesh, "t0", bob.pubkey);
    const first = await fixture.store.listTokens(mesh.id, alice.pubkey, "", 2);
    expect(first.items).toEqual([
      { id: "t1", label: "for t1", createdAt: nowMs, revokedAt: undefined },
      { id: "t2", label: "for t2", createdAt: nowMs, revokedAt: undefined },
    ]);
    const second = await fixture.store.listTokens(mesh.id, alice.pubkey, first.nextCursor ?? "", 2);
    expect(second.items.map(({ id }) => id)).toEqual(["t3"]);
    expect(second.nextCursor).toBeUndefined();
  });

  test("tells when its member is revoked", async () => {
    const mesh = await foundMesh(fixture.store);
    await add(mesh, "t1");
    await fixture.revoke(mesh.id, alice.pubkey);
    expect(await fixture.store.findByToken(mesh.id, hashToken("t1"))).toMatchObject({ member: { revoked: true } });
  });
}

function signedCreate(keys: PeerKeys, name: string, ownerName = "alice") {
  const signed = createMeshBytes({ name, owner_name: ownerName, owner_pubkey: keys.pubkey });
  return { name, owner: { name: ownerName, pubkey: keys.pubkey }, signature: keys.sign(signed) };
}

function describeCreateMesh(fixture: Fixture): void {
  const ports = () => ({ store: fixture.store, nowMs: () => nowMs, nextId });

  test("makes the key that signed its owner, and a retry gets the same mesh", async () => {
    const keys = createPeerKeys();
    const first = await createMesh(ports(), signedCreate(keys, "acme"));
    expect(first).toMatchObject({ created: true, owner: { pubkey: keys.pubkey, name: "alice", role: "owner" } });
    expect(await createMesh(ports(), signedCreate(keys, "acme"))).toEqual({ ...first, created: false });
  });

  test("by another owner is a conflict", async () => {
    await createMesh(ports(), signedCreate(createPeerKeys(), "acme"));
    const other = createMesh(ports(), signedCreate(createPeerKeys(), "acme"));
    expect(await codeOf(other)).toBe("exists_with_other_content");
  });

  test("needs the signature of the owner's key over exactly this request", async () => {
    const keys = createPeerKeys();
    const signed = signedCreate(keys, "acme");
    const attempts = [
      { ...signed, name: "other" },
      { ...signed, owner: { ...signed.owner, name: "mallory" } },
      { ...signed, owner: { ...signed.owner, pubkey: createPeerKeys().pubkey } },
      { ...signed, owner: { ...signed.owner, pubkey: "f".repeat(64) } },
      { ...signed, signature: "0".repeat(128) },
    ];
    for (const attempt of attempts) expect(await codeOf(createMesh(ports(), attempt))).toBe("unauthorized");
    expect(await fixture.store.findMesh("acme")).toBeUndefined();
  });

  test("refuses names that are none, read like an id, or mean the sender", async () => {
    const keys = createPeerKeys();
    for (const name of ["", "-x", "a b", "ä", "x".repeat(65), nextId()]) {
      expect(await codeOf(createMesh(ports(), signedCreate(keys, name)))).toBe("invalid_name");
    }
    for (const name of ["", "self", "SELF", "a b"]) {
      expect(await codeOf(createMesh(ports(), signedCreate(keys, "acme", name)))).toBe("invalid_name");
    }
  });
}

function describeJoinMesh(fixture: Fixture): void {
  const ports = () => ({ store: fixture.store, nowMs: () => nowMs, nextId });
  const signedJoin = (keys: PeerKeys, meshId: string, secret: string, name = "bob") => ({
    secret,
    name,
    pubkey: keys.pubkey,
    signature: keys.sign(joinBytes({ mesh_id: meshId, secret, name, pubkey: keys.pubkey })),
  });
  async function ownedMesh(): Promise<{ mesh: Mesh; owner: Member }> {
    const mesh = await foundMesh(fixture.store);
    const owner = await fixture.store.findMember(mesh.id, alice.pubkey);
    if (owner === undefined) throw new Error("the mesh has no owner");
    return { mesh, owner };
  }

  test("takes an invite that an owner made, once per key", async () => {
    const { mesh, owner } = await ownedMesh();
    const { secret, expiresAt: until } = await createInvite(ports(), owner);
    expect(until).toBe(nowMs + inviteLifetimeSecondsDefault * 1000);
    const keys = createPeerKeys();
    const first = await joinMesh(ports(), mesh, signedJoin(keys, mesh.id, secret));
    expect(first).toMatchObject({ joined: true, mesh, member: { pubkey: keys.pubkey, role: "member" } });
    const again = await joinMesh(ports(), mesh, signedJoin(keys, mesh.id, secret));
    expect(again).toEqual({ ...first, joined: false });
    const other = joinMesh(ports(), mesh, signedJoin(createPeerKeys(), mesh.id, secret));
    expect(await codeOf(other)).toBe("invite_refused");
  });

  test("gives each invite its own secret and the lifetime that was asked for", async () => {
    const { owner } = await ownedMesh();
    const [first, second] = await Promise.all([
      createInvite(ports(), owner, { lifetimeSeconds: 60 }),
      createInvite(ports(), owner, { lifetimeSeconds: 60 }),
    ]);
    expect(first.secret).not.toBe(second.secret);
    expect(first.expiresAt).toBe(nowMs + 60_000);
  });

  test("only an owner may invite", async () => {
    const { mesh, owner } = await ownedMesh();
    const { secret } = await createInvite(ports(), owner);
    const { member } = await joinMesh(ports(), mesh, signedJoin(createPeerKeys(), mesh.id, secret));
    expect(await codeOf(createInvite(ports(), member))).toBe("forbidden");
  });

  test("needs the signature of the joining key over exactly this request, and a wrong one spends nothing", async () => {
    const { mesh, owner } = await ownedMesh();
    const { secret } = await createInvite(ports(), owner);
    const keys = createPeerKeys();
    const signed = signedJoin(keys, mesh.id, secret);
    const attempts = [
      { ...signed, name: "mallory" },
      { ...signed, pubkey: createPeerKeys().pubkey },
      { ...signed, signature: "0".repeat(128) },
      signedJoin(keys, nextId(), secret),
      { ...signedJoin(keys, mesh.id, "another secret"), secret },
    ];
    for (const attempt of attempts) expect(await codeOf(joinMesh(ports(), mesh, attempt))).toBe("invite_refused");
    expect(await joinMesh(ports(), mesh, signed)).toMatchObject({ joined: true });
  });

  test("answers an outsider alike whether the mesh exists or not", async () => {
    const { mesh } = await ownedMesh();
    const request = signedJoin(createPeerKeys(), mesh.id, "guessed");
    const bodyOf = (target: Mesh | undefined, attempt: typeof request) =>
      joinMesh(ports(), target, attempt).catch((error: { toBody(): unknown }) => error.toBody());
    const unknown = await bodyOf(undefined, request);
    expect(unknown).toMatchObject({ error: "invite_refused" });
    expect(await bodyOf(mesh, request)).toEqual(unknown);
    expect(await bodyOf(mesh, { ...request, signature: "0".repeat(128) })).toEqual(unknown);
    const badName = { ...request, name: "a b" };
    expect(await bodyOf(mesh, badName)).toEqual(await bodyOf(undefined, badName));
  });

  test("refuses a name that is none or means the sender", async () => {
    const { mesh, owner } = await ownedMesh();
    const { secret } = await createInvite(ports(), owner);
    for (const name of ["", "Self", "a b"]) {
      const join = joinMesh(ports(), mesh, signedJoin(createPeerKeys(), mesh.id, secret, name));
      expect(await codeOf(join)).toBe("invalid_name");
    }
  });
}

function describeTokenService(fixture: Fixture): void {
  const ports = () => ({ store: fixture.store, nowMs: () => nowMs, nextId });
  async function ownerOf(mesh: Mesh): Promise<Member> {
    const owner = await fixture.store.findMember(mesh.id, alice.pubkey);
    if (owner === undefined) throw new Error("the mesh has no owner");
    return owner;
  }

  test("works with the one text that was shown, and each call shows a new one", async () => {
    const mesh = await foundMesh(fixture.store);
    const owner = await ownerOf(mesh);
    const first = await createToken(ports(), owner, "ci");
    const second = await createToken(ports(), owner, "ci");
    expect(first.token).toMatch(/^cmt_[\w-]{43}$/);
    expect(first.token).not.toBe(second.token);
    for (const { token } of [first, second])
      expect(await authenticateTokenHash(ports(), mesh.id, hashToken(token))).toEqual({ mesh, member: owner });
  });

  test("is refused alike when unknown, of another mesh, revoked, or of a revoked member", async () => {
    const mesh = await foundMesh(fixture.store);
    const other = await foundMesh(fixture.store, "other");
    const owner = await ownerOf(mesh);
    const live = await createToken(ports(), owner, "");
    const revoked = await createToken(ports(), owner, "");
    await revokeToken(ports(), owner, revoked.tokenId);
    const attempts = [
      [mesh.id, "cmt_unknown"],
      [other.id, live.token],
      [mesh.id, revoked.token],
      [mesh.id, live.tokenId],
    ] as const;
    for (const [meshId, token] of attempts) {
      expect(await codeOf(authenticateTokenHash(ports(), meshId, hashToken(token)))).toBe("unauthorized");
    }
    await fixture.revoke(mesh.id, alice.pubkey);
    expect(await codeOf(authenticateTokenHash(ports(), mesh.id, hashToken(live.token)))).toBe("unauthorized");
  });

  test("of another member is not found when revoked", async () => {
    const mesh = await foundMesh(fixture.store);
    const owner = await ownerOf(mesh);
    const { token, tokenId } = await createToken(ports(), owner, "");
    expect(await codeOf(revokeToken(ports(), { ...owner, pubkey: bob.pubkey }, tokenId))).toBe("not_found");
    expect(await authenticateTokenHash(ports(), mesh.id, hashToken(token))).toEqual({ mesh, member: owner });
  });
}
