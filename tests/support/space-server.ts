// A broker's spaces in one process: the real engine on SQLite in memory, and around it what a broker adds on a socket:
// sessions of connections, watches, sync frames before verdicts. Connections can be cut at any frame, and frames can be
// kept back so that they come coalesced. No assertions.

import { membersMigrations } from "@claudemesh/members/sqlite";
import { MeshError } from "@claudemesh/protocol/errors";
import type { JsonObject } from "@claudemesh/protocol/json";
import type { SendToAccept } from "@claudemesh/protocol/messages/commit-sends";
import type { EncodedCommit } from "@claudemesh/protocol/spaces/commit";
import { encodeFabric } from "@claudemesh/protocol/spaces/fabric-value";
import { encodeMergePlan } from "@claudemesh/protocol/spaces/merge";
import { readResolutions } from "@claudemesh/protocol/spaces/wire-inputs";
import type { SpacePorts } from "@claudemesh/spaces/ports";
import { createBranch, deleteBranch } from "@claudemesh/spaces/services/branches";
import { changesByPrefix, changesOfIds } from "@claudemesh/spaces/services/changes";
import { commitToSpace } from "@claudemesh/spaces/services/commit/commit";
import { holdSession } from "@claudemesh/spaces/services/hold-session";
import { diffBranches, proposeMerge } from "@claudemesh/spaces/services/merges";
import { openSession } from "@claudemesh/spaces/services/open-session";
import { listByPrefix, readEntity, readLog, readMany } from "@claudemesh/spaces/services/query";
import { SessionTurns } from "@claudemesh/spaces/services/session-turns";
import { createSpace } from "@claudemesh/spaces/services/spaces";
import { createSqliteSpacesStore, spacesMigrations } from "@claudemesh/spaces/sqlite";
import { GroupCommit } from "@claudemesh/storage/group-commit";
import { openSqlite, type Sqlite } from "@claudemesh/storage/sqlite";
import { migrateSqlite } from "@claudemesh/storage/sqlite-migrations";
import { prepareSends } from "./prepared-sends.ts";

const meshId = "mesh-1";
const pageLimit = 1_000;

type Input = Readonly<Record<string, unknown>>;
export type ServerReply = { readonly status: number; readonly body: unknown };
type Found = {
  readonly id: string;
  readonly seq: number;
  readonly branch: string;
  readonly document: object | undefined;
};

/** The server's end of one connection. */
export class ServerEnd {
  readonly member: string;
  readonly push: (frame: { readonly type: string }) => void;
  sessionId: string | undefined;
  readonly watches = new Map<string, { ids: string[]; prefixes: string[]; sentSeq: number }>();

  constructor(member: string, push: (frame: { readonly type: string }) => void) {
    this.member = member;
    this.push = push;
  }
}

export class SpaceServer {
  readonly space: string;
  /** The ids of messages that were accepted with commits. */
  readonly sent: string[] = [];
  /** Of the same messages. */
  readonly sentVersions: string[] = [];
  /** The last token of each session. */
  readonly tokens = new Map<string, string>();
  /** What went wrong in here that no broker may do. */
  readonly failures: unknown[] = [];
  /** While true, no connection hears of others' commits; what is missed comes in one frame. */
  isSlow = false;
  /** Asked before every request; an answer takes the place of the real one. */
  refuse: (type: string, input: Input) => ServerReply | undefined = () => undefined;
  readonly #db: Sqlite;
  readonly #ports: SpacePorts;
  readonly #ends = new Set<ServerEnd>();
  #turn: Promise<unknown> = Promise.resolve();
  #ids = 0;

  private constructor(db: Sqlite, space: string) {
    this.space = space;
    this.#db = db;
    const acceptSends = (_tx: Sqlite, _mesh: string, sends: readonly SendToAccept[]) => {
      for (const [index, { clientMessageId, envelope }] of sends.entries()) {
        if (this.sent.includes(clientMessageId)) {
          return { type: "refused" as const, index, code: "idempotency_key_reused" };
        }
        this.sent.push(clientMessageId);
        this.sentVersions.push(envelope.version);
      }
      return { type: "accepted" as const, recipients: [] };
    };
    this.#ports = {
      store: createSqliteSpacesStore(db, new GroupCommit(db), { acceptSends }),
      sends: { prepare: async (sender, sends) => prepareSends(sender, sends), onAccepted: () => undefined },
      nowMs: () => 1_700_000_000_000,
      nextId: () => `session-${String(++this.#ids).padStart(8, "0")}`,
      randomBytes: (length) => new Uint8Array(length).fill(++this.#ids % 256),
      onCommitted: () => undefined,
      onSessionTaken: (_, sessionId) => this.#revoke(sessionId),
      turns: new SessionTurns(),
    };
  }

  static async start(members: readonly string[], space = "plan"): Promise<SpaceServer> {
    const db = openSqlite({ path: ":memory:" });
    await migrateSqlite(db, [...membersMigrations(), ...spacesMigrations()]);
    db.sql("INSERT INTO mesh (id, name, created_at) VALUES (?, 'm', 1)").run(meshId);
    for (const pubkey of members) {
      db.sql("INSERT INTO member VALUES (?, ?, 'm', 'member', 1, NULL)").run(meshId, pubkey);
    }
    const server = new SpaceServer(db, space);
    const [createdBy = ""] = members;
    await createSpace(server.#ports, server.#ref, { signedWrites: "optional", createdBy });
    return server;
  }

  stop(): void {
    this.#db.close();
  }

  get #ref() {
    return { meshId, spaceId: this.space };
  }

  attach(end: ServerEnd): void {
    this.#ends.add(end);
  }

  detach(end: ServerEnd): void {
    this.#ends.delete(end);
  }

  /** One request after another, from any connection: what is not about order is tested elsewhere. */
  handle(end: ServerEnd, type: string, input: Input, reply: (reply: ServerReply) => void): void {
    this.#turn = this.#turn.then(async () => {
      const answer = await this.#answer(end, type, input);
      for (const each of this.#ends) {
        if (each === end || !this.isSlow) await this.#flush(each);
      }
      reply(answer);
    });
  }

  /** Every connection has heard everything. */
  async settle(): Promise<void> {
    this.isSlow = false;
    this.#turn = this.#turn.then(async () => {
      for (const each of this.#ends) await this.#flush(each);
    });
    await this.#turn;
  }

  /** What the space holds. */
  async documents(branch = "", atSeq?: number): Promise<Record<string, object>> {
    const { items } = await listByPrefix(this.#ports, this.#ref, { prefix: "", branch, atSeq, limit: pageLimit });
    return Object.fromEntries(items.flatMap(({ id, document }) => (document === undefined ? [] : [[id, document]])));
  }

  async log(): Promise<readonly { readonly seq: number; readonly sessionId: string; readonly original: unknown }[]> {
    return (await readLog(this.#ports, this.#ref, { after: 0 }, pageLimit)).items;
  }

  async #answer(end: ServerEnd, type: string, input: Input): Promise<ServerReply> {
    const refused = this.refuse(type, input);
    if (refused !== undefined) return refused;
    try {
      return { status: 200, body: await this.#carryOut(end, type, input) };
    } catch (error) {
      if (!(error instanceof MeshError)) this.failures.push(error);
      const answer = error instanceof MeshError ? error : new MeshError("invalid_request", String(error));
      return { status: answer.status, body: answer.toBody() };
    }
  }

  async #carryOut(end: ServerEnd, type: string, input: Input): Promise<unknown> {
    const { branch, atSeq, source, target } = input as { [key: string]: string } & { atSeq?: number };
    const ports = this.#ports;
    if (input.space !== this.space) throw new MeshError("space_not_found");
    switch (type) {
      case "space.open": {
        const opened = await openSession(ports, this.#ref, end.member, input as { openId: string });
        end.sessionId = opened.sessionId;
        this.tokens.set(opened.sessionId, opened.sessionToken);
        return opened;
      }
      case "space.commit":
        return this.#verdict(commitToSpace(ports, this.#ref, end.member, input as CommitInput));
      case "space.branch.create":
        return this.#verdict(createBranch(ports, this.#ref, end.member, input as LifecycleInput));
      case "space.branch.delete":
        return this.#verdict(deleteBranch(ports, this.#ref, end.member, input as LifecycleInput));
      case "space.watch":
        return this.#watch(end, input);
      case "space.entity":
        return toWire(await readEntity(ports, this.#ref, String(input.entityId), { branch, atSeq }));
      case "space.query":
        return this.#query(input, { branch, atSeq });
      case "space.log":
        return readLog(ports, this.#ref, { after: Number(input.after ?? 0) }, pageLimit);
      case "space.merge.propose": {
        const resolutions = readResolutions(input.resolutions as JsonObject | undefined);
        return encodeMergePlan(
          await proposeMerge(ports, this.#ref, { source: source ?? "", target: target ?? "" }, resolutions),
        );
      }
      case "space.diff":
        return diffBranches(ports, this.#ref, { source: source ?? "", target: target ?? "" });
      default:
        throw new MeshError("not_found");
    }
  }

  async #verdict(deciding: ReturnType<typeof commitToSpace>): Promise<unknown> {
    const verdict = await deciding;
    if (verdict.type === "rejected") throw verdict.error;
    return verdict;
  }

  async #query(input: Input, moment: { branch?: string | undefined; atSeq?: number | undefined }): Promise<unknown> {
    if (Array.isArray(input.ids)) {
      const { seq, items } = await readMany(this.#ports, this.#ref, input.ids, moment);
      return { seq, items: items.map(toWire) };
    }
    const { prefix = "", cursor, limit = pageLimit } = input as { prefix?: string; cursor?: string; limit?: number };
    const page = await listByPrefix(this.#ports, this.#ref, { ...moment, prefix, cursor, limit });
    return { ...page, items: page.items.map(toWire) };
  }

  async #watch(end: ServerEnd, input: Input): Promise<unknown> {
    const {
      sessionId,
      sessionToken,
      branch = "",
      seenSeq = 0,
    } = input as { [key: string]: string } & { seenSeq?: number };
    await holdSession(this.#ports, this.#ref, {
      memberPubkey: end.member,
      sessionId: String(sessionId),
      sessionToken: String(sessionToken),
    });
    const { ids = [], prefixes = [] } = input as { ids?: string[]; prefixes?: string[] };
    const watch = { ids, prefixes, sentSeq: seenSeq };
    // Throws where there is no such branch.
    await readMany(this.#ports, this.#ref, [], { branch });
    end.watches.set(branch, watch);
    await this.#flush(end);
    return { seq: watch.sentSeq };
  }

  async #flush(end: ServerEnd): Promise<void> {
    const { sessionId } = end;
    if (sessionId === undefined) return;
    for (const [branch, watch] of end.watches) {
      const query = { branch, sinceSeq: watch.sentSeq };
      const { toSeq, items } = await changesOfIds(this.#ports, this.#ref, query, watch.ids);
      const found = new Map(items.map((item) => [item.id, item]));
      for (const prefix of watch.prefixes) {
        let cursor: string | undefined;
        do {
          const asked = { ...query, atSeq: toSeq, prefix, cursor, limit: pageLimit };
          const page = await changesByPrefix(this.#ports, this.#ref, asked);
          for (const item of page.items) found.set(item.id, item);
          cursor = page.nextCursor;
        } while (cursor !== undefined);
      }
      const session = await this.#ports.store.read(this.#ref, (view) => view.findSession(sessionId));
      const fromSeq = watch.sentSeq;
      watch.sentSeq = toSeq;
      if (found.size === 0) continue;
      const caughtUpLocalSeq = session?.lastLocalSeq ?? 0;
      const upserts = [...found.values()].map(toWire);
      const about = { space: this.space, sessionId, branch, fromSeq, toSeq, caughtUpLocalSeq };
      end.push({ type: "sync", ...about, upserts, removes: [] } as { type: string });
    }
  }

  #revoke(sessionId: string): void {
    for (const end of this.#ends) {
      if (end.sessionId !== sessionId) continue;
      end.watches.clear();
      end.sessionId = undefined;
      end.push({ type: "session.revoked", space: this.space, sessionId } as { type: string });
    }
  }
}

type CommitInput = { sessionId: string; sessionToken: string; commit: EncodedCommit };
type LifecycleInput = { sessionId: string; sessionToken: string; localSeq: number; name: string };

function toWire({ id, seq, branch, document }: Found): object {
  if (document === undefined) return { id, seq, branch, deleted: true };
  return { id, seq, branch, document: encodeFabric(document as never) };
}
