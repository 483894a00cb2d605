// What every OnceStore owes, as one suite over a harness: each test has a mesh of its own, and several stores with
// connections of their own on the same database (REG-10, REG-11, REG-12).
import type { OnceClaim, OnceResolution } from "@claudemesh/protocol/registrar/once-state";
import { beforeEach, describe, expect, test } from "vitest";
import type { OnceOutcome, OnceStore } from "../../ports/once-store.ts";

export type OnceHarness = {
  /** Two stores at least, as of several brokers. */
  readonly stores: () => readonly OnceStore[];
  /** A new mesh with members of these public keys. */
  readonly addMesh: (pubkeys: readonly string[]) => Promise<string>;
  readonly revoke: (meshId: string, pubkey: string) => Promise<void>;
  /** Runs one statement in a transaction of its own; `once_claim` stands for the table. */
  readonly execute: (sql: string) => Promise<void>;
};

const fingerprints = ["a".repeat(64), "b".repeat(64)] as const;

/** One key of one mesh, as its callers see it. */
export class OnceWorld {
  static readonly members = ["1".repeat(64), "2".repeat(64), "3".repeat(64)] as const;
  readonly meshId: string;
  readonly key: string;
  nowMs = 1_700_000_000_000;
  readonly #harness: OnceHarness;

  private constructor(harness: OnceHarness, meshId: string, key: string) {
    this.#harness = harness;
    this.meshId = meshId;
    this.key = key;
  }

  static async start(harness: OnceHarness, key = "deploy:7"): Promise<OnceWorld> {
    return new OnceWorld(harness, await harness.addMesh(OnceWorld.members), key);
  }

  get stores(): readonly OnceStore[] {
    return this.#harness.stores();
  }

  #at(store: number): OnceStore {
    const chosen = this.stores[store % this.stores.length];
    if (chosen === undefined) throw new Error("the harness has no store");
    return chosen;
  }

  claimOf(claimId: string, member = 0, inputs = 0, leaseSeconds = 10): OnceClaim {
    return {
      claimId,
      holder: OnceWorld.members[member] ?? "",
      inputsFingerprint: fingerprints[inputs] ?? "",
      leaseSeconds,
    };
  }

  claim(claimId: string, at: { member?: number; inputs?: number; store?: number } = {}): Promise<OnceOutcome> {
    const { meshId, key, nowMs } = this;
    return this.#at(at.store ?? 0).claim({ meshId, key }, this.claimOf(claimId, at.member, at.inputs), nowMs);
  }

  renew(epoch: number, at: { member?: number; store?: number } = {}): Promise<OnceOutcome> {
    const holder = OnceWorld.members[at.member ?? 0] ?? "";
    return this.#at(at.store ?? 0).renew({ meshId: this.meshId, key: this.key, epoch }, holder, this.nowMs);
  }

  record(epoch: number, result: string, at: { member?: number; store?: number } = {}): Promise<OnceOutcome> {
    const holder = OnceWorld.members[at.member ?? 0] ?? "";
    const key = { meshId: this.meshId, key: this.key, epoch };
    return this.#at(at.store ?? 0).record(key, { holder, result }, this.nowMs);
  }

  resolve(
    epoch: number,
    resolution: OnceResolution,
    at: { member?: number; store?: number } = {},
  ): Promise<OnceOutcome> {
    const by = OnceWorld.members[at.member ?? 1] ?? "";
    const key = { meshId: this.meshId, key: this.key, epoch };
    return this.#at(at.store ?? 0).resolve(key, { ...resolution, by }, this.nowMs);
  }

  epochs(limit = 100) {
    return this.#at(0).epochs({ meshId: this.meshId, key: this.key }, limit);
  }

  wait(seconds: number): void {
    this.nowMs += seconds * 1000;
  }
}

const held = (epoch: number) => ({ type: "held", epoch: { epoch } });
const typesOf = (outcomes: readonly OnceOutcome[]) => outcomes.map(({ type }) => type).toSorted();
const notDone: OnceResolution = { outcome: "not_done" };
const done = (result?: string): OnceResolution => ({ outcome: "done", result });

export function describeOnce(harness: OnceHarness): void {
  let world: OnceWorld;
  beforeEach(async () => {
    world = await OnceWorld.start(harness);
  });

  describe("a key that no caller has claimed", () => {
    test("has no epoch, and nothing of it can be renewed, recorded or resolved", async () => {
      expect(await world.epochs()).toEqual([]);
      const calls = [world.renew(1), world.record(1, "1"), world.resolve(1, notDone)];
      expect(typesOf(await Promise.all(calls))).toEqual(["unknown_epoch", "unknown_epoch", "unknown_epoch"]);
    });

    test("is held by the first claim, whose row is what every store reads back", async () => {
      expect(await world.claim("c1")).toMatchObject(held(1));
      for (const store of world.stores) {
        expect(await store.epochs(world, 10)).toEqual([
          {
            ...world.claimOf("c1"),
            epoch: 1,
            claimedAtMs: world.nowMs,
            leaseUntilMs: world.nowMs + 10_000,
            settlement: undefined,
          },
        ]);
      }
    });

    test("is another key in another mesh, and beside a key that begins alike", async () => {
      const other = await OnceWorld.start(harness);
      await world.claim("c1");
      expect(await other.claim("c1")).toMatchObject(held(1));
      const longer = await world.stores[0]?.claim({ ...world, key: "deploy:77" }, world.claimOf("c1"), world.nowMs);
      expect(longer).toMatchObject(held(1));
    });
  });

  describe("a claim whose answer was lost", () => {
    test("gets its epoch and lease again, from any store, also after a renewal", async () => {
      const first = await world.claim("c1");
      world.wait(3);
      for (const store of [0, 1]) expect(await world.claim("c1", { store })).toEqual(first);
      await world.renew(1);
      expect(await world.claim("c1", { store: 1 })).toMatchObject({
        type: "held",
        epoch: { epoch: 1, leaseUntilMs: world.nowMs + 10_000 },
      });
      expect(await world.epochs()).toHaveLength(1);
    });

    test("gets the result once there is one", async () => {
      await world.claim("c1");
      await world.record(1, '"ok"');
      expect(await world.claim("c1")).toMatchObject({ type: "done", epoch: { settlement: { result: '"ok"' } } });
    });

    test("asked many times at once has one epoch", async () => {
      const asked = Array.from({ length: 12 }, (_, store) => world.claim("c1", { store }));
      for (const outcome of await Promise.all(asked)) expect(outcome).toMatchObject(held(1));
      expect(await world.epochs()).toHaveLength(1);
    });
  });

  describe("claims of one key at the same time", () => {
    test("let exactly one run; the others hear who does", async () => {
      const asked = Array.from({ length: 16 }, (_, n) => world.claim(`c${n}`, { store: n, member: n % 3 }));
      const outcomes = await Promise.all(asked);
      expect(typesOf(outcomes)).toEqual(["held", ...Array.from({ length: 15 }, () => "running")]);
      const [only] = await world.epochs();
      for (const outcome of outcomes) expect(outcome).toMatchObject({ epoch: { claimId: only?.claimId, epoch: 1 } });
    });

    test("let exactly one run under the next epoch when the key was released", async () => {
      await world.claim("c0");
      world.wait(10);
      await world.resolve(1, notDone);
      const asked = Array.from({ length: 16 }, (_, n) => world.claim(`d${n}`, { store: n, member: n % 3 }));
      const outcomes = await Promise.all(asked);
      expect(typesOf(outcomes).filter((type) => type === "held")).toHaveLength(1);
      expect((await world.epochs()).map(({ epoch }) => epoch)).toEqual([2, 1]);
    });
  });

  describe("a lease that ended", () => {
    test("makes the key uncertain for every caller by the clock alone, and no renewal brings it back", async () => {
      await world.claim("c1");
      world.wait(9.999);
      expect(await world.claim("c2", { member: 1 })).toMatchObject({ type: "running" });
      world.wait(0.001);
      for (const id of ["c1", "c2"]) expect(await world.claim(id)).toMatchObject({ type: "uncertain" });
      expect(await world.renew(1)).toMatchObject({ type: "uncertain", epoch: { epoch: 1 } });
    });

    test("was kept alive as long as it was renewed", async () => {
      await world.claim("c1");
      for (let round = 0; round < 5; round++) {
        world.wait(6);
        expect(await world.renew(1, { store: round })).toMatchObject(held(1));
      }
      expect(await world.claim("c2")).toMatchObject({ type: "running" });
    });

    test("leaves its holder the right to record late; every caller gets the result", async () => {
      await world.claim("c1");
      world.wait(60);
      expect(await world.record(1, "[1]", { store: 1 })).toMatchObject({ type: "settled" });
      expect(await world.claim("c2", { member: 2 })).toMatchObject({
        type: "done",
        epoch: { epoch: 1, settlement: { how: "recorded", result: "[1]", atMs: world.nowMs } },
      });
    });
  });

  describe("a record", () => {
    test("again with the same result is the first answer, with another it changes nothing", async () => {
      await world.claim("c1");
      const first = await world.record(1, '{"a":1}');
      world.wait(3);
      expect(await world.record(1, '{"a":1}', { store: 1 })).toEqual(first);
      expect(await world.record(1, '{"a":2}')).toMatchObject({ type: "settled_otherwise" });
      expect(await world.claim("c2")).toMatchObject({ type: "done", epoch: { settlement: { result: '{"a":1}' } } });
    });

    test("with two results at once keeps one of them", async () => {
      await world.claim("c1");
      const outcomes = await Promise.all([0, 1, 2, 3].map((n) => world.record(1, `${n}`, { store: n })));
      expect(typesOf(outcomes)).toEqual(["settled", "settled_otherwise", "settled_otherwise", "settled_otherwise"]);
      const winner = outcomes.findIndex(({ type }) => type === "settled");
      expect(await world.claim("c2")).toMatchObject({ type: "done", epoch: { settlement: { result: `${winner}` } } });
    });

    test("of another member is refused", async () => {
      await world.claim("c1");
      expect(await world.record(1, "1", { member: 1 })).toMatchObject({ type: "not_the_holder" });
      expect(await world.renew(1, { member: 1 })).toMatchObject({ type: "not_the_holder" });
      expect(await world.claim("c1")).toMatchObject(held(1));
    });

    test("keeps a text that needs every kind of escape, and one of 64 KiB", async () => {
      const text = JSON.stringify(`\u0000\u001f"\\ü🚀${"x".repeat(65_000)}`);
      await world.claim("c1");
      await world.record(1, text);
      const [epoch] = await world.epochs();
      expect(epoch?.settlement).toMatchObject({ result: text });
    });
  });

  describe("a resolve", () => {
    test("is refused while the lease lasts", async () => {
      await world.claim("c1");
      expect(await world.resolve(1, notDone)).toMatchObject({ type: "running" });
      expect(await world.resolve(1, done(), { member: 0 })).toMatchObject({ type: "running" });
    });

    test("as done makes it done for every caller, with the member that said so; the holder's late record is refused", async () => {
      await world.claim("c1");
      world.wait(10);
      const first = await world.resolve(1, done('"by hand"'));
      expect(first).toMatchObject({ type: "settled", epoch: { settlement: { by: OnceWorld.members[1] } } });
      world.wait(1);
      expect(await world.resolve(1, done('"by hand"'), { member: 2, store: 1 })).toEqual(first);
      expect(await world.record(1, '"by hand"')).toMatchObject({ type: "settled_otherwise" });
      expect(await world.claim("c2")).toMatchObject({
        type: "done",
        epoch: { settlement: { how: "resolved_done", result: '"by hand"' } },
      });
    });

    test("as not done frees the key under a new epoch, for other inputs too; the old epoch stays ended", async () => {
      await world.claim("c1");
      world.wait(10);
      const first = await world.resolve(1, notDone);
      expect(await world.claim("c1")).toMatchObject({ type: "settled_otherwise", epoch: { epoch: 1 } });
      expect(await world.claim("c2", { member: 2, inputs: 1 })).toMatchObject(held(2));
      expect(await world.resolve(1, notDone, { member: 2 })).toEqual(first);
      expect(await world.resolve(1, done())).toMatchObject({ type: "settled_otherwise" });
      for (const late of [world.record(1, "1"), world.renew(1), world.claim("c1", { inputs: 1 })]) {
        expect(await late).toMatchObject({ type: "settled_otherwise", epoch: { epoch: 1 } });
      }
      expect(await world.record(2, "2", { member: 2 })).toMatchObject({ type: "settled" });
    });

    test("and the holder's late record at once: one of them stands, and both callers learn which", async () => {
      for (let round = 0; round < 5; round++) {
        const one = await OnceWorld.start(harness, `race-${round}`);
        await one.claim("c1");
        one.wait(10);
        const [resolved, recorded] = await Promise.all([
          one.resolve(1, notDone, { store: 0 }),
          one.record(1, "1", { store: 1 }),
        ]);
        expect(typesOf([resolved, recorded])).toEqual(["settled", "settled_otherwise"]);
        expect(resolved).toMatchObject({ epoch: (await one.epochs())[0] });
      }
    });

    test("that says done where the holder has recorded agrees with the record", async () => {
      await world.claim("c1");
      world.wait(10);
      await world.record(1, '"r"');
      expect(await world.resolve(1, done())).toMatchObject({
        type: "settled",
        epoch: { settlement: { how: "recorded" } },
      });
      expect(await world.resolve(1, notDone)).toMatchObject({ type: "settled_otherwise" });
    });
  });

  describe("other inputs", () => {
    test("are a mismatch while it runs, when it is uncertain and when it is done, also for the holder", async () => {
      await world.claim("c1");
      const mismatch = async () => {
        for (const id of ["c1", "c2"]) {
          expect(await world.claim(id, { inputs: 1 })).toMatchObject({ type: "inputs_mismatch" });
        }
      };
      await mismatch();
      world.wait(10);
      await mismatch();
      await world.record(1, "1");
      await mismatch();
    });
  });

  describe("a member whose membership ended", () => {
    test("changes nothing any more; what it held becomes uncertain and can be resolved", async () => {
      await world.claim("c1");
      await harness.revoke(world.meshId, OnceWorld.members[0]);
      for (const call of [world.renew(1), world.record(1, "1")]) {
        expect(await call).toEqual({ type: "not_a_member" });
      }
      expect(await world.claim("c9", { member: 1 })).toMatchObject({ type: "running" });
      world.wait(10);
      expect(await world.resolve(1, notDone, { member: 0 })).toEqual({ type: "not_a_member" });
      expect(await world.resolve(1, notDone, { member: 1 })).toMatchObject({ type: "settled" });
      await harness.revoke(world.meshId, OnceWorld.members[2]);
      expect(await world.claim("c3", { member: 2 })).toEqual({ type: "not_a_member" });
      expect(await world.claim("c2", { member: 1 })).toMatchObject(held(2));
    });
  });

  describe("the database itself", () => {
    test("refuses to change a result, an epoch's holder or its claim, and to shorten a lease", async () => {
      await world.claim("c1");
      const where = `WHERE mesh_id = '${world.meshId}'`;
      const refused = async (set: string) =>
        expect(harness.execute(`UPDATE once_claim SET ${set} ${where}`)).rejects.toThrow(/stands/);
      await refused(`holder_pubkey = '${OnceWorld.members[1]}'`);
      await refused("claim_id = 'other'");
      await refused("epoch = 2");
      await world.record(1, "1");
      await refused("result = '2'");
      await refused("settled_how = NULL, settled_by = NULL, settled_at = NULL, result = NULL");
      expect(await world.claim("c2")).toMatchObject({ type: "done", epoch: { settlement: { result: "1" } } });
    });
  });
}
