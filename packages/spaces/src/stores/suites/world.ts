// The small mesh that the spaces suites work on: members, a space, sessions and commits in short words. Back ends supply
// the harness. No assertions.

import { createHash } from "node:crypto";
import { MeshError } from "@claudemesh/protocol/errors";
import { createUuidV7Generator } from "@claudemesh/protocol/ids";
import type { JsonObject } from "@claudemesh/protocol/json";
import type { AcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import type { SendToAccept } from "@claudemesh/protocol/messages/commit-sends";
import {
  type ClientCommit,
  type ConfirmedRead,
  type EncodedCommit,
  encodeCommit,
  type MergeContext,
  type PendingRead,
} from "@claudemesh/protocol/spaces/commit";
import type { FabricObject } from "@claudemesh/protocol/spaces/fabric-value";
import type { Operation, PatchOp } from "@claudemesh/protocol/spaces/operations";
import type { RuleStore } from "@claudemesh/storage/row-rules";
import { prepareSends } from "../../../../../tests/support/prepared-sends.ts";
import type { Verdict } from "../../core/verdict.ts";
import type { SpaceRef } from "../../ports/rows.ts";
import type { CommitNotice, SpacePorts, SpacesStore } from "../../ports.ts";
import { createBranch, deleteBranch } from "../../services/branches.ts";
import { commitToSpace } from "../../services/commit/commit.ts";
import { type OpenedSession, openSession } from "../../services/open-session.ts";
import { type FoundEntity, readMany } from "../../services/query.ts";
import { SessionTurns } from "../../services/session-turns.ts";
import { createSpace } from "../../services/spaces.ts";

export type Row = Readonly<Record<string, unknown>>;

export interface OpenSpaces {
  readonly store: SpacesStore;
  readonly rules: RuleStore;
  /** Runs one statement, in a transaction of its own where it writes. */
  query(sql: string): Promise<Row[]>;
  close(): Promise<void>;
}

export interface SpacesHarness {
  /** An empty database with the tables of members and spaces, and a table `sent` for what was accepted in commits. */
  reset(): Promise<void>;
  /** A store with a connection of its own to that database. */
  open(): Promise<OpenSpaces>;
  /** The full name of a table. */
  table(name: string): string;
  readonly meshId: string;
  /** A time, as SQL. */
  readonly someTime: string;
}

export const idsOf = (sends: readonly SendToAccept[]) => sends.map(({ clientMessageId }) => clientMessageId);

/** Why a send of a commit is refused, if it is: its id was accepted before, or its body says so. */
export function refusalOf({ envelope }: SendToAccept, taken: boolean): string | undefined {
  if (taken) return "idempotency_key_reused";
  return Buffer.from(envelope.body).toString() === "refuse" ? "destination_not_found" : undefined;
}

export type CommitParts = {
  readonly localSeq?: number;
  readonly confirmed?: readonly ConfirmedRead[];
  readonly pending?: readonly PendingRead[];
  readonly branch?: string;
  readonly merge?: MergeContext;
  readonly sends?: readonly AcceptRequest[];
  readonly invocation?: JsonObject;
};

export class World {
  readonly space: SpaceRef;
  nowMs = 1_700_000_000_000;
  readonly notices: CommitNotice[] = [];
  readonly taken: { readonly sessionId: string; readonly epoch: number }[] = [];
  readonly woken: (readonly string[])[] = [];
  /** Runs when a commit's sends are prepared: where a limiter would refuse. */
  beforeSends: () => void | Promise<void> = () => undefined;
  readonly #harness: SpacesHarness;
  readonly #opened: OpenSpaces[] = [];
  readonly #nextId: () => string;
  readonly #turns = new SessionTurns();
  #opens = 0;

  private constructor(harness: SpacesHarness, spaceId: string) {
    this.#harness = harness;
    this.space = { meshId: harness.meshId, spaceId };
    let salt = 0;
    this.#nextId = createUuidV7Generator({
      nowMs: () => this.nowMs,
      randomBytes: (length) => createHash("sha256").update(`${spaceId}/${salt++}`).digest().subarray(0, length),
    });
  }

  static async start(harness: SpacesHarness): Promise<World> {
    await harness.reset();
    const world = new World(harness, "plan");
    await world.openAnother();
    await world.addMember(alice);
    await world.addMember(bob);
    await createSpace(world.ports(), world.space, { signedWrites: "optional", createdBy: alice });
    return world;
  }

  get store(): SpacesStore {
    return this.#first.store;
  }

  get rules(): RuleStore {
    return this.#first.rules;
  }

  get #first(): OpenSpaces {
    const [first] = this.#opened;
    if (first === undefined) throw new Error("the world is closed");
    return first;
  }

  async openAnother(): Promise<SpacesStore> {
    const opened = await this.#harness.open();
    this.#opened.push(opened);
    return opened.store;
  }

  async close(): Promise<void> {
    for (const opened of this.#opened.splice(0)) await opened.close();
  }

  /** As after a restart of the broker. */
  async reopen(): Promise<void> {
    await this.close();
    await this.openAnother();
  }

  query(sql: string): Promise<Row[]> {
    return this.#first.query(sql);
  }

  table(name: string): string {
    return this.#harness.table(name);
  }

  async addMember(pubkey: string): Promise<void> {
    await this.query(`INSERT INTO ${this.table("member")} (mesh_id, pubkey, name, role, joined_at)
      VALUES ('${this.space.meshId}', '${pubkey}', 'm', 'member', ${this.#harness.someTime})`);
  }

  ports(store: SpacesStore = this.store): SpacePorts {
    return {
      store,
      sends: {
        prepare: async (sender, sends) => {
          await this.beforeSends();
          return prepareSends(sender, sends);
        },
        onAccepted: (_, recipients) => this.woken.push(recipients),
      },
      turns: this.#turns,
      nowMs: () => this.nowMs,
      nextId: this.#nextId,
      randomBytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
      onCommitted: (notice) => this.notices.push(notice),
      onSessionTaken: (_, sessionId, epoch) => this.taken.push({ sessionId, epoch }),
    };
  }

  async open(member = alice, openId = `open-${++this.#opens}`, resume?: OpenedSession): Promise<OpenedSession> {
    const request = { openId, ...(resume && { sessionId: resume.sessionId, sessionToken: resume.sessionToken }) };
    return openSession(this.ports(), this.space, member, request);
  }

  async session(member = alice): Promise<Session> {
    return new Session(this, member, await this.open(member));
  }

  async read(ids: readonly string[], branch = "", atSeq?: number): Promise<FoundEntity[]> {
    return [...(await readMany(this.ports(), this.space, ids, { branch, atSeq })).items];
  }

  async document(id: string, branch = "", atSeq?: number): Promise<FabricObject | undefined> {
    const [found] = await this.read([id], branch, atSeq);
    return found?.document;
  }

  async lastSeq(): Promise<number> {
    return (await readMany(this.ports(), this.space, [], {})).seq;
  }

  async count(table: string): Promise<number> {
    const [row] = await this.query(
      `SELECT count(*) AS n FROM ${this.table(table)} WHERE space_id = '${this.space.spaceId}'`,
    );
    return Number(row?.n);
  }

  /** Client ids of the sends that were accepted in commits. */
  async sent(): Promise<string[]> {
    const rows = await this.query(`SELECT id FROM ${this.table("sent")} ORDER BY id`);
    return rows.map((row) => String(row.id));
  }
}

export const alice = "a".repeat(64);
export const bob = "b".repeat(64);

/** A session that numbers its own commits. */
export class Session {
  opened: OpenedSession;
  readonly member: string;
  readonly #world: World;
  nextLocalSeq = 1;

  constructor(world: World, member: string, opened: OpenedSession) {
    this.#world = world;
    this.member = member;
    this.opened = opened;
  }

  build(operations: readonly Operation[], parts: CommitParts = {}): EncodedCommit {
    const { confirmed = [], pending = [], localSeq = this.nextLocalSeq, ...rest } = parts;
    this.nextLocalSeq = Math.max(this.nextLocalSeq, localSeq + 1);
    const commit: ClientCommit = { localSeq, reads: { confirmed, pending }, operations, ...rest };
    return encodeCommit(commit);
  }

  send(commit: EncodedCommit, opened = this.opened, store?: SpacesStore): Promise<Verdict> {
    const { sessionId, sessionToken } = opened;
    const ports = this.#world.ports(store);
    return commitToSpace(ports, this.#world.space, this.member, { sessionId, sessionToken, commit });
  }

  commit(operations: readonly Operation[], parts: CommitParts = {}): Promise<Verdict> {
    return this.send(this.build(operations, parts));
  }

  /** The seq of a commit that must be accepted. */
  async write(operations: readonly Operation[], parts: CommitParts = {}): Promise<number> {
    const verdict = await this.commit(operations, parts);
    if (verdict.type === "rejected") throw verdict.error;
    return verdict.seq;
  }

  createBranch(name: string, from: { fromBranch?: string; atSeq?: number } = {}, localSeq = this.nextLocalSeq++) {
    const { sessionId, sessionToken } = this.opened;
    const request = { sessionId, sessionToken, localSeq, name, ...from };
    return createBranch(this.#world.ports(), this.#world.space, this.member, request);
  }

  deleteBranch(name: string, localSeq = this.nextLocalSeq++) {
    const { sessionId, sessionToken } = this.opened;
    return deleteBranch(this.#world.ports(), this.#world.space, this.member, {
      sessionId,
      sessionToken,
      localSeq,
      name,
    });
  }
}

export const set = (id: string, value: FabricObject): Operation => ({ op: "set", id, value: { value } });
export const patch = (id: string, ...patches: PatchOp[]): Operation => ({ op: "patch", id, patches });
export const remove = (id: string): Operation => ({ op: "delete", id });
export const read = (id: string, seq: number, ...path: string[]): ConfirmedRead => ({
  id,
  path: ["value", ...path],
  seq,
});
export const layer = (id: string, localSeq: number, path: string[] = [], basisSeq?: number): PendingRead => ({
  id,
  path: ["value", ...path],
  localSeq,
  ...(basisSeq !== undefined && { basisSeq }),
});

export function send(clientMessageId: string, body = "hello"): AcceptRequest {
  return { client_message_id: clientMessageId, destination: { kind: "topic", ref: "news" }, body };
}

/** The code of what a call is refused with. */
export async function refusal(call: Promise<unknown>): Promise<string> {
  try {
    await call;
  } catch (error) {
    if (error instanceof MeshError) return error.code;
    throw error;
  }
  return "none";
}

/** How a verdict reads in short. */
export function brief(verdict: Verdict): string | number {
  return verdict.type === "accepted" ? verdict.seq : verdict.error.name;
}
