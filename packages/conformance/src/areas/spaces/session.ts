// A session of a space for scenarios: it numbers commits, sends them over HTTP, and checks the answers. Also functions
// that write operations.
import type { JsonValue } from "@claudemesh/protocol/json";
import { expectAnswer, expectSameJson } from "../../frame/expect.ts";
import { aCount, aText, type Pattern } from "../../frame/pattern.ts";
import type { HttpAnswer } from "../../transport/http.ts";
import type { BrokerWorld, Caller } from "../broker/world.ts";

export type Operation = Readonly<Record<string, unknown>>;
export type Commit = { readonly localSeq: number } & Readonly<Record<string, unknown>>;
export type SessionCredentials = { readonly sessionId: string; readonly sessionToken: string };

export const set = (id: string, value: unknown): Operation => ({ op: "set", id, value: { value } });
export const patch = (id: string, ...patches: readonly object[]): Operation => ({ op: "patch", id, patches });
export const remove = (id: string): Operation => ({ op: "delete", id });
export const replace = (path: string, value: unknown) => ({ op: "replace", path, value });
export const add = (path: string, value: unknown) => ({ op: "add", path, value });

/** A confirmed read; the path is the whole of `value` where none is given. */
export const read = (id: string, seq: number, path: readonly string[] = ["value"], more: object = {}) => ({
  id,
  path,
  seq,
  ...more,
});
export const confirmed = (...reads: readonly object[]) => ({ reads: { confirmed: reads, pending: [] } });
export const pending = (...reads: readonly object[]) => ({ reads: { confirmed: [], pending: reads } });

export async function createSpace(world: BrokerWorld): Promise<string> {
  const name = world.fresh("space");
  expectAnswer(await world.alice.call("POST", "/spaces", { name }), 201, { name, seq: 0 });
  return name;
}

export const spacePath = (space: string, path = "") => `/spaces/${space}${path}`;

export class Session implements SessionCredentials {
  readonly caller: Caller;
  readonly space: string;
  readonly sessionId: string;
  readonly sessionToken: string;
  #localSeq: number;

  constructor(caller: Caller, space: string, opened: HttpAnswer) {
    this.caller = caller;
    this.space = space;
    this.sessionId = String(opened.body.sessionId);
    this.sessionToken = String(opened.body.sessionToken);
    this.#localSeq = Number(opened.body.lastLocalSeq);
  }

  static async open(world: BrokerWorld, caller: Caller, space: string, more: object = {}): Promise<Session> {
    const input = { openId: world.fresh("open"), ...more };
    const answer = await caller.call("POST", spacePath(space, "/sessions"), input);
    expectAnswer(answer, 200, { sessionId: aText, sessionToken: aText, seq: aCount, lastLocalSeq: aCount });
    return new Session(caller, space, answer);
  }

  /** A new space with a session of alice. */
  static async inNewSpace(world: BrokerWorld): Promise<Session> {
    return Session.open(world, world.alice, await createSpace(world));
  }

  get credentials(): SessionCredentials {
    return { sessionId: this.sessionId, sessionToken: this.sessionToken };
  }

  /** The next commit; `more` may give it another localSeq. */
  build(operations: readonly Operation[], more: object = {}): Commit {
    const commit = {
      localSeq: this.#localSeq + 1,
      reads: { confirmed: [], pending: [] },
      operations,
      ...more,
    };
    this.#localSeq = Math.max(this.#localSeq, commit.localSeq);
    return commit;
  }

  send(commit: object): Promise<HttpAnswer> {
    return this.caller.call("POST", spacePath(this.space, "/commits"), { ...this.credentials, commit });
  }

  lose(commit: object): Promise<HttpAnswer> {
    return this.caller.lose("POST", spacePath(this.space, "/commits"), { ...this.credentials, commit });
  }

  /** Builds and sends. */
  commit(operations: readonly Operation[], more: object = {}): Promise<HttpAnswer> {
    return this.send(this.build(operations, more));
  }

  /** The seq of a commit that is accepted now. */
  async accept(operations: readonly Operation[], more: object = {}): Promise<number> {
    const answer = expectAccepted(await this.commit(operations, more));
    return Number(answer.body.seq);
  }

  verdict(localSeq: number, by: Caller = this.caller): Promise<HttpAnswer> {
    return by.call("GET", spacePath(this.space, `/sessions/${this.sessionId}/commits/${localSeq}`));
  }

  entity(id: string, query = ""): Promise<HttpAnswer> {
    return this.caller.call("GET", spacePath(this.space, `/entities/${encodeURIComponent(id)}${query}`));
  }

  query(input: object): Promise<HttpAnswer> {
    return this.caller.call("POST", spacePath(this.space, "/query"), input);
  }

  get(path: string): Promise<HttpAnswer> {
    return this.caller.call("GET", spacePath(this.space, path));
  }

  /** Fails unless `value` of the entity equals this. */
  async expectValue(id: string, value: unknown, query = ""): Promise<HttpAnswer> {
    const answer = expectAnswer(await this.entity(id, query), 200);
    expectSameJson(answer.body.document, { value } as JsonValue, `${id} holds`, answer.request);
    return answer;
  }

  /** Creates or deletes a branch. */
  branch(action: "create" | "delete", name: string, more: object = {}): Promise<HttpAnswer> {
    this.#localSeq += 1;
    const input = { ...this.credentials, localSeq: this.#localSeq, ...more };
    return action === "create"
      ? this.caller.call("POST", spacePath(this.space, "/branches"), { ...input, name })
      : this.caller.call("POST", spacePath(this.space, `/branches/${name}/delete`), input);
  }

  async createBranch(name: string, more: object = {}): Promise<number> {
    return Number(expectAccepted(await this.branch("create", name, more)).body.seq);
  }

  propose(source: string, target: string, more: object = {}): Promise<HttpAnswer> {
    return this.caller.call("POST", spacePath(this.space, "/merges/propose"), { source, target, ...more });
  }

  get lastLocalSeq(): number {
    return this.#localSeq;
  }
}

/**
 * Runs each step in a session of its member, several at a time, because independent steps need not wait for one
 * another.
 */
export async function inSessions<T>(
  world: BrokerWorld,
  space: string,
  items: readonly T[],
  work: (session: Session, item: T, index: number) => Promise<void>,
): Promise<void> {
  const workers = 8;
  await Promise.all(
    Array.from({ length: workers }, async (_, worker) => {
      const session = await Session.open(world, world.alice, space);
      for (let index = worker; index < items.length; index += workers) await work(session, items[index] as T, index);
    }),
  );
}

export function expectAccepted<A extends { status: number; body: Readonly<Record<string, unknown>>; request: string }>(
  answer: A,
  more: { readonly [field: string]: Pattern } = {},
): A {
  return expectAnswer(answer, 200, { seq: aCount, replayed: false, ...more });
}

/** The part of an answer that a retry must get again: everything but the field that marks a replay. */
export function verdictOf({ body }: HttpAnswer): Pattern {
  const { replayed: _, ...rest } = body;
  return rest as Pattern;
}
