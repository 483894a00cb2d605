// What one member may ask of a broker that costs it much: large documents, commits that change them in many places, reads
// against many writes, and watches of many things. Each is one round, on a space of its own.
import { expect } from "vitest";
import type { TestMember } from "./broker-harness.ts";
import type { RawPeer } from "./raw-peer.ts";

type Held = { readonly sessionId: string; readonly sessionToken: string };

export class BusyMember {
  readonly peer: RawPeer;
  readonly space: string;
  #opens = 0;

  private constructor(peer: RawPeer, space: string) {
    this.peer = peer;
    this.space = space;
  }

  static async start(member: TestMember, space: string): Promise<BusyMember> {
    const busy = new BusyMember(await member.connect("client"), space);
    await busy.peer.request("space.create", { name: space });
    return busy;
  }

  async open(): Promise<BusySession> {
    const openId = `${this.space}-${++this.#opens}`;
    const { body } = await this.peer.request("space.open", { space: this.space, openId });
    const held = { sessionId: String(body.sessionId), sessionToken: String(body.sessionToken) };
    return new BusySession(this.peer, this.space, held);
  }
}

class BusySession {
  readonly #peer: RawPeer;
  readonly #space: string;
  readonly #held: Held;
  #localSeq = 0;

  constructor(peer: RawPeer, space: string, held: Held) {
    this.#peer = peer;
    this.#space = space;
    this.#held = held;
  }

  /** The status, and the error where there is one. */
  async commit(operations: readonly object[], confirmed: readonly object[] = [], more: object = {}): Promise<string> {
    const commit = { localSeq: ++this.#localSeq, reads: { confirmed, pending: [] }, operations, ...more };
    const { status, body } = await this.#peer.request("space.commit", { space: this.#space, ...this.#held, commit });
    return status === 200 ? "200" : `${status} ${body.error}`;
  }

  async watch(prefixes: readonly string[]): Promise<void> {
    const { status } = await this.#peer.request("space.watch", { space: this.#space, ...this.#held, prefixes });
    expect(status).toBe(200);
  }

  async branch(name: string): Promise<void> {
    const input = { space: this.#space, ...this.#held, localSeq: ++this.#localSeq, name };
    expect((await this.#peer.request("space.branch.create", input)).status).toBe(200);
  }
}

const many = <T>(count: number, make: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => make(n));
const set = (id: string, value: unknown) => ({ op: "set", id, value: { value } });
const patch = (id: string, ...patches: object[]) => ({ op: "patch", id, patches });
const replace = (path: string, value: unknown) => ({ op: "replace", path, value });
const zeros = many(500_000, () => 0);
const wide = Object.fromEntries(many(60_000, (n) => [`k${n}`, 0]));
const narrower = Object.fromEntries(many(20_000, (n) => [`k${n}`, 0]));
const text = "x".repeat(1_000_000);

/** What is made ready, and then what is measured. */
export type ExpensiveRequest = {
  readonly name: string;
  readonly prepare: (busy: BusyMember) => Promise<() => Promise<unknown>>;
};

const commitsOn = (name: string, value: unknown, operations: readonly object[], outcome: string): ExpensiveRequest => ({
  name,
  prepare: async (busy) => {
    const session = await busy.open();
    expect(await session.commit([set("big:1", value)])).toBe("200");
    return async () => expect(await session.commit(operations)).toBe(outcome);
  },
});

/** On a space with a branch that has eight documents of a megabyte, one of them changed in many places. */
const asking = (name: string, type: string, input: object): ExpensiveRequest => ({
  name,
  prepare: async (busy) => {
    const session = await busy.open();
    await session.commit([set("big:0", 0)]);
    await session.branch("draft");
    const onDraft = { branch: "draft" };
    for (let n = 0; n < 8; n += 1) await session.commit([set(`big:${n}`, { zeros, n })], [], onDraft);
    const splices = many(100, () => ({ ...spliceAtHead, path: "/value/zeros" }));
    expect(await session.commit([patch("big:1", ...splices)], [], onDraft)).toBe("200");
    // A merge of so much is refused when it was looked at, and the others answer.
    return () => busy.peer.request(type, { space: busy.space, ...input });
  },
});

const tooExpensive = "422 commit_too_expensive";
const spliceAtHead = { op: "splice", path: "/value", index: 0, remove: 0, add: [1] };

export const expensiveRequests: readonly ExpensiveRequest[] = [
  commitsOn("5,000 splices of a long array", zeros, [patch("big:1", ...many(5_000, () => spliceAtHead))], tooExpensive),
  commitsOn("as many splices as are admitted", zeros, [patch("big:1", ...many(120, () => spliceAtHead))], "200"),
  commitsOn(
    "5,000 operations on a long array",
    zeros,
    many(5_000, (n) => patch("big:1", replace(`/value/${n}`, 1))),
    "200",
  ),
  commitsOn(
    "5,000 operations on a wide object",
    wide,
    many(5_000, (n) => patch("big:1", replace(`/value/k${n}`, 1))),
    tooExpensive,
  ),
  commitsOn("one operation on a wide object", wide, [patch("big:1", replace("/value/k7", 1))], "200"),
  {
    name: "5,000 sets, and 5,000 patches of as many entities",
    prepare: async (busy) => {
      const session = await busy.open();
      return async () => {
        expect(await session.commit(many(5_000, (n) => set(`task:${n}`, { n, title: "write", owner: "bob" })))).toBe(
          "200",
        );
        expect(await session.commit(many(5_000, (n) => patch(`task:${n}`, replace("/value/owner", "eve"))))).toBe(
          "200",
        );
      };
    },
  },
  {
    name: "commits of four megabytes",
    prepare: async (busy) => {
      const session = await busy.open();
      return async () => {
        expect(await session.commit(many(4, (n) => set(`big:${n}`, text)))).toBe("200");
        expect(await session.commit([set("big:1", zeros)])).toBe("200");
        expect(await session.commit([set("big:2", wide), set("big:3", narrower)])).toBe("200");
      };
    },
  },
  {
    name: "a commit that patches very many large entities",
    prepare: async (busy) => {
      const session = await busy.open();
      for (let n = 0; n < 40; n += 1) await session.commit([set(`big:${n}`, { text })]);
      return async () =>
        expect(await session.commit(many(40, (n) => patch(`big:${n}`, replace("/value/n", 1))))).not.toBe("200");
    },
  },
  {
    name: "20,000 reads against 20,000 later writes",
    prepare: async (busy) => {
      const session = await busy.open();
      await session.commit([set("a:1", Object.fromEntries(many(5_000, (n) => [`k${n}`, 0])))]);
      for (let round = 0; round < 4; round += 1) {
        await session.commit([patch("a:1", ...many(5_000, (n) => replace(`/value/k${n}`, round)))]);
      }
      const confirmed = many(20_000, (n) => ({ id: "a:1", path: ["value", `other${n}`], seq: 1 }));
      return () => session.commit([set("b:1", 1)], confirmed);
    },
  },
  {
    name: "2,000 pending reads of content that was moved 64 times",
    prepare: async (busy) => {
      const session = await busy.open();
      const deep = many(100, () => "a");
      const base = `/value/${deep.join("/")}`;
      let value: object = Object.fromEntries(many(70, (n) => [`x${n}`, n]));
      for (const key of deep) value = { [key]: value };
      expect(await session.commit([set("a:1", value)])).toBe("200");
      const moves = many(64, (n) => ({ op: "move", from: `${base}/x${63 - n}`, path: `${base}/x${64 - n}` }));
      expect(await session.commit([patch("a:1", { op: "remove", path: `${base}/x64` }, ...moves)])).toBe("200");
      const pending = many(2_000, (n) => {
        return { id: "a:1", path: ["value", ...deep, "x0", `n${n}`], localSeq: 2, basisSeq: 1 };
      });
      return async () =>
        expect(await session.commit([set("b:1", 1)], [], { reads: { confirmed: [], pending } })).toBe(tooExpensive);
    },
  },
  {
    name: "large entities behind small ones, and many reads of one at once",
    prepare: async (busy) => {
      const session = await busy.open();
      await session.commit(many(31, (n) => set(`a:${n + 100}`, n)));
      for (let n = 0; n < 8; n += 1) await session.commit([set(`a:${n + 200}`, narrower)]);
      const listing = { space: busy.space, prefix: "a:" };
      return () =>
        Promise.all([
          busy.peer.request("space.query", listing),
          ...many(24, () => busy.peer.request("space.entity", { space: busy.space, entityId: "a:200" })),
        ]);
    },
  },
  asking("a read of a large entity", "space.entity", { entityId: "big:1", branch: "draft" }),
  asking("a listing of large entities", "space.query", { prefix: "big:", branch: "draft" }),
  asking("a page of a log of large commits", "space.log", {}),
  asking("a diff of large entities", "space.diff", { source: "draft", target: "" }),
  asking("a merge of large entities", "space.merge.propose", { source: "draft", target: "" }),
  {
    name: "a commit that 40 sessions with 1,000 prefixes each watch",
    prepare: async (busy) => {
      const sessions: BusySession[] = [];
      for (let n = 0; n < 40; n += 1) {
        const session = await busy.open();
        await session.watch(many(1_000, (p) => `p${p}:`));
        sessions.push(session);
      }
      return async () => sessions[0]?.commit(many(5_000, (n) => set(`p${n % 1_000}:${n}`, n)));
    },
  },
  {
    name: "commits of 64 sessions at once",
    prepare: async (busy) => {
      const sessions: BusySession[] = [];
      for (let n = 0; n < 64; n += 1) {
        const session = await busy.open();
        await session.commit([set(`big:${n}`, zeros.slice(0, 100_000))]);
        sessions.push(session);
      }
      return () =>
        Promise.all(
          sessions.map((session, n) => session.commit([patch(`big:${n}`, ...many(400, () => spliceAtHead))])),
        );
    },
  },
];
