// A mesh on the broker under test, with members whose keys the kit holds: an owner where one is available, and alice,
// bob and carol. Names and ids are new for every use, so that runs may share a mesh.
import { randomBytes } from "node:crypto";
import { decodeInvite, type Invite } from "@claudemesh/protocol/wire/invite";
import { type ConnectionKind, createMeshBytes, joinBytes } from "@claudemesh/protocol/wire/signing";
import { CannotBegin, Miss, needed, Skipped } from "../../frame/endings.ts";
import { type Answer, expectAnswer, fieldOf } from "../../frame/expect.ts";
import type { OptionValues } from "../../frame/options.ts";
import { aText, aUuidV7 } from "../../frame/pattern.ts";
import { loseAnswer } from "../../transport/cutting-proxy.ts";
import {
  ask,
  exchange,
  type HttpAnswer,
  type HttpCall,
  type HttpTarget,
  NoAnswer,
  readHttpUrl,
} from "../../transport/http.ts";
import { createMemberKeys, type MemberKeys } from "../../transport/member-keys.ts";
import { SocketPeer } from "../../transport/socket-peer.ts";

/** A caller below /v1/meshes/:mesh, with a bearer token. */
export type Caller = {
  readonly call: (method: string, path: string, json?: unknown) => Promise<HttpAnswer>;
  readonly callRaw: (method: string, path: string, raw: string | Uint8Array) => Promise<HttpAnswer>;
  /** The same call, whose answer is lost. */
  readonly lose: (method: string, path: string, json?: unknown) => Promise<HttpAnswer>;
};

export type MeshMember = Caller & {
  readonly name: string;
  readonly meshId: string;
  readonly keys: MemberKeys;
  readonly pubkey: string;
  readonly token: string;
  readonly connect: (kind?: ConnectionKind) => Promise<SocketPeer>;
  /** One more token, with the member's key. */
  readonly makeToken: (label: string) => Promise<Answer>;
};

export type MeshRef = { readonly mesh: string; readonly meshId: string };

export class BrokerWorld {
  readonly url: string;
  readonly target: HttpTarget & { readonly type: "tcp" };
  readonly adminToken: string | undefined;
  readonly #budget: number | undefined;
  /** A target that the registrar's verifier refuses. */
  readonly refusedTarget: string | undefined;
  meshRef: MeshRef = { mesh: "", meshId: "" };
  readonly #invites: string[];
  readonly #members: MeshMember[] = [];
  readonly #peers = new Set<SocketPeer>();
  readonly #run = randomBytes(5).toString("hex");
  #owner: Caller | undefined;
  #ownerWithKey: MeshMember | undefined;
  #ownsMesh = false;
  #count = 0;

  constructor(url: string, options: OptionValues) {
    this.url = url;
    this.target = readHttpUrl(url);
    this.adminToken = options.one("admin-token");
    const budget = options.one("budget");
    if (budget !== undefined && !/^[1-9][0-9]{0,6}$/.test(budget)) {
      throw new CannotBegin("--budget takes the number of messages that the broker's rate limit allows in a window.");
    }
    this.#budget = budget === undefined ? undefined : Number(budget);
    this.refusedTarget = options.one("refused-target");
    this.#invites = [...options.all("invite")];
  }

  static async open(options: OptionValues): Promise<BrokerWorld> {
    const url = options.one("url");
    if (url === undefined) throw new CannotBegin("--url <url> is missing: where the broker serves, http://host:port.");
    const world = new BrokerWorld(url, options);
    try {
      await exchange(world.target, { method: "GET", path: "/healthz" });
    } catch (error) {
      if (error instanceof NoAnswer) throw new CannotBegin(`Nothing answers at ${url}: ${error.message}`);
      throw error;
    }
    try {
      await world.#enterMesh(options.one("mesh"), options.one("owner-token"));
      for (const name of ["alice", "bob", "carol"]) await world.join(name);
    } catch (error) {
      if (error instanceof Skipped) throw new CannotBegin(error.message);
      if (!(error instanceof Miss)) throw error;
      const { expected, got, request } = error.facts;
      throw new CannotBegin(`The mesh could not be set up. Expected ${expected}, got ${got}, for:\n${request}`);
    }
    return world;
  }

  get alice(): MeshMember {
    return this.#member(0);
  }

  get bob(): MeshMember {
    return this.#member(1);
  }

  get carol(): MeshMember {
    return this.#member(2);
  }

  get owner(): Caller {
    return needed(this.#owner, "an owner: give --admin-token, or --mesh and --owner-token");
  }

  /** An owner whose key the kit holds. */
  get signingOwner(): MeshMember {
    return needed(this.#ownerWithKey, "an owner's key: give --admin-token");
  }

  /** Messages per window, for a scenario that spends them in a mesh of its own. */
  get budget(): number {
    return needed(this.#budget, "--budget <messages per window>, and --admin-token");
  }

  get admin(): string {
    return needed(this.adminToken, "--admin-token");
  }

  /** A new name or id. */
  fresh(what: string): string {
    this.#count++;
    return `${what}-${this.#run}-${this.#count}`;
  }

  ask(call: HttpCall): Promise<HttpAnswer> {
    return ask(this.target, call);
  }

  loseAnswer(call: HttpCall): Promise<HttpAnswer> {
    return loseAnswer(this.target, call);
  }

  /** A caller without a token, or with another one. */
  as(token: string | undefined, meshRef: MeshRef = this.meshRef): Caller {
    const prefix = `/v1/meshes/${meshRef.mesh}`;
    return {
      call: (method, path, json) => this.ask({ method, path: prefix + path, token, json }),
      callRaw: (method, path, raw) => this.ask({ method, path: prefix + path, token, raw }),
      lose: (method, path, json) => this.loseAnswer({ method, path: prefix + path, token, json }),
    };
  }

  async dial(meshId = this.meshRef.meshId): Promise<SocketPeer> {
    const peer = await SocketPeer.dial(this.url, meshId);
    this.#peers.add(peer);
    return peer;
  }

  /** A topic without subscribers. */
  async topic(postPolicy?: "members" | "subscribers"): Promise<string> {
    const name = this.fresh("topic");
    const policy = postPolicy === undefined ? {} : { post_policy: postPolicy };
    expectAnswer(await this.alice.call("POST", "/topics", { name, ...policy }), 201);
    return name;
  }

  async queue(maxDeliveries?: number): Promise<string> {
    const id = this.fresh("queue");
    const limit = maxDeliveries === undefined ? {} : { max_deliveries: maxDeliveries };
    expectAnswer(await this.alice.call("POST", "/queues", { id, ...limit }), 201);
    return id;
  }

  /** A mesh of its own with one owner, where direct messages need not be sealed; needs the admin token. */
  async createMesh(name: string, ownerName: string): Promise<MeshMember> {
    const owner = await this.createPlainMesh(name, ownerName);
    await allowUnsealed(owner);
    return owner;
  }

  /** The same without any setting. */
  async createPlainMesh(name: string, ownerName: string): Promise<MeshMember> {
    const keys = createMemberKeys();
    const answer = await this.ask({
      method: "POST",
      path: "/v1/meshes",
      token: this.admin,
      json: meshRequest(name, ownerName, keys),
    });
    expectAnswer(answer, 201, { mesh: name, mesh_id: aUuidV7, member_pubkey: keys.pubkey, role: "owner" });
    return this.#createMember({ mesh: name, meshId: fieldOf(answer, "mesh_id") }, ownerName, keys);
  }

  /** The secret of a new invite; throws Skipped where the kit cannot get one. */
  async invite(): Promise<string> {
    const invite = this.#owner === undefined ? this.#invites.shift() : undefined;
    if (invite !== undefined) return decodeInvite(invite).secret;
    return (await this.inviteRead()).secret;
  }

  /** A new invite of an owner. */
  async inviteRead(): Promise<Invite> {
    return decodeInvite(await inviteBy(needed(this.#owner, "one more --invite, or an owner")));
  }

  async join(name: string): Promise<MeshMember> {
    const keys = createMemberKeys();
    const memberName = this.fresh(name);
    const answer = await this.ask(this.joinCall(await this.invite(), memberName, keys));
    expectAnswer(answer, 201, { mesh_id: this.meshRef.meshId, member_pubkey: keys.pubkey, name: memberName });
    const member = await this.#createMember(this.meshRef, memberName, keys);
    this.#members.push(member);
    return member;
  }

  joinCall(secret: string, name: string, keys: MemberKeys): HttpCall {
    const signature = keys.sign(joinBytes({ mesh_id: this.meshRef.meshId, secret, name, pubkey: keys.pubkey }));
    const json = { secret, name, pubkey: keys.pubkey, signature };
    return { method: "POST", path: `/v1/meshes/${this.meshRef.meshId}/join`, json };
  }

  async tidy(): Promise<void> {
    await Promise.all([...this.#peers].map((peer) => peer.drop()));
    this.#peers.clear();
  }

  /** In a mesh that existed before the run, the kit's members are removed. */
  async close(): Promise<void> {
    await this.tidy();
    if (this.#ownsMesh || this.#owner === undefined) return;
    for (const { pubkey } of this.#members) await this.#owner.call("DELETE", `/members/${pubkey}`);
  }

  async #enterMesh(mesh: string | undefined, ownerToken: string | undefined): Promise<void> {
    if (mesh === undefined) {
      if (this.adminToken === undefined) {
        throw new CannotBegin("Give --admin-token, or --mesh with --owner-token, or --mesh with three --invite.");
      }
      const name = this.fresh("conformance");
      const owner = await this.createMesh(name, "olga");
      this.meshRef = { mesh: name, meshId: owner.meshId };
      this.#owner = owner;
      this.#ownerWithKey = owner;
      this.#ownsMesh = true;
      return;
    }
    this.#owner = ownerToken === undefined ? undefined : this.as(ownerToken, { mesh, meshId: "" });
    const invite = this.#owner === undefined ? this.#invites[0] : await inviteBy(this.#owner);
    if (invite === undefined) throw new CannotBegin("--mesh needs --owner-token, or three --invite.");
    this.meshRef = { mesh, meshId: decodeInvite(invite).mesh_id };
    if (this.#owner === undefined) return;
    this.#owner = this.as(ownerToken);
    await allowUnsealed(this.#owner);
  }

  async #createMember(meshRef: MeshRef, name: string, keys: MemberKeys): Promise<MeshMember> {
    const connect = async (kind: ConnectionKind = "daemon") => {
      const peer = await this.dial(meshRef.meshId);
      await peer.sayHello({ meshId: meshRef.meshId, keys }, kind);
      return peer;
    };
    const makeToken = async (label: string) => {
      const peer = await connect("client");
      const created = expectAnswer(await peer.request("token.create", { label }), 201, {
        token: aText,
        token_id: aUuidV7,
      });
      await peer.drop();
      return created;
    };
    const token = fieldOf(await makeToken("conformance"), "token");
    const self = { name, meshId: meshRef.meshId, keys, pubkey: keys.pubkey, token };
    return { ...self, connect, makeToken, ...this.as(token, meshRef) };
  }

  #member(index: number): MeshMember {
    const member = this.#members[index];
    if (member === undefined) throw new Error("the mesh is not set up");
    return member;
  }
}

async function inviteBy(owner: Caller): Promise<string> {
  const answer = await owner.call("POST", "/invites", {});
  return fieldOf(expectAnswer(answer, 201, { invite: aText }), "invite");
}

/** Most scenarios read messages, so they send them unsealed; sealed messages have scenarios of their own. */
async function allowUnsealed(owner: Caller): Promise<void> {
  const setting = { key: "dm_policy", value: "any" };
  expectAnswer(await owner.call("PUT", "/settings", setting), 200, setting);
}

export function meshRequest(name: string, ownerName: string, keys: MemberKeys): object {
  const signed = createMeshBytes({ name, owner_name: ownerName, owner_pubkey: keys.pubkey });
  return { name, owner: { name: ownerName, pubkey: keys.pubkey }, signature: keys.sign(signed) };
}

export type Send = { readonly client_message_id: string; readonly destination: object; readonly body?: string };

export const toTopic = (ref: string) => ({ kind: "topic", ref });
export const toQueue = (ref: string) => ({ kind: "queue", ref });
export const toMember = ({ pubkey }: { readonly pubkey: string }) => ({ kind: "dm", ref: pubkey });

/** Sends, and expects the message to be accepted now. */
export async function accept(sender: Caller, send: Send & Readonly<Record<string, unknown>>): Promise<HttpAnswer> {
  const answer = await sender.call("POST", "/messages", send);
  return expectAnswer(answer, 201, { client_message_id: send.client_message_id, duplicate: false });
}

/** A key that no member of this mesh has. */
export function strangersKey(): string {
  return createMemberKeys().pubkey;
}
