// Commits: verdicts that stay, order by localSeq, conflicts that name everything, sends with the commit or not at all.
import { generateKeyPairSync, sign } from "node:crypto";
import { MeshError } from "@claudemesh/protocol/errors";
import type { JsonObject } from "@claudemesh/protocol/json";
import { canonicalCommitPayload, type EncodedCommit } from "@claudemesh/protocol/spaces/commit";
import { branchCreation, invocationBytes, signedBranchWrite } from "@claudemesh/protocol/spaces/invocation";
import { valueAt } from "@claudemesh/protocol/spaces/value-at";
import { expect, test } from "vitest";
import { envelopeFor } from "../../core/invocation.ts";
import type { SpacesStore } from "../../ports.ts";
import { createBranch, deleteBranch } from "../../services/branches.ts";
import { commitToSpace } from "../../services/commit/commit.ts";
import { openSession } from "../../services/open-session.ts";
import { findInvocation, findVerdict, readLog } from "../../services/query.ts";
import { createSpace, setSignedWrites } from "../../services/spaces.ts";
import { alice, brief, patch, read, refusal, remove, type Session, send, set, type World } from "./world.ts";

export function describeCommits(world: () => World): void {
  test("a commit gets the next seq, and its documents are there", async () => {
    const session = await world().session();
    expect(await session.commit([set("task:1", { n: 1 }), set("task:2", { n: 2 })])).toEqual({
      type: "accepted",
      seq: 1,
      resolvedPendingReads: [],
      replayed: false,
    });
    expect(brief(await session.commit([patch("task:1", { op: "replace", path: "/value/n", value: 5n })]))).toBe(2);
    expect(await world().document("task:1")).toEqual({ value: { n: 5n } });
    expect(world().notices.map(({ seq, entityIds }) => [seq, entityIds])).toEqual([
      [1, ["task:1", "task:2"]],
      [2, ["task:1"]],
    ]);
  });

  test("replay: the same payload gets the stored verdict, accepted or rejected, also after a restart", async () => {
    const session = await world().session();
    const accepted = session.build([set("task:1", { n: 1 })]);
    await session.send(accepted);
    await session.write([set("task:1", { n: 2 })]);
    const rejected = session.build([set("task:1", { n: 3 })], { confirmed: [read("task:1", 1)] });
    const conflict = await session.send(rejected);
    expect(brief(conflict)).toBe("ConflictError");
    for (let round = 0; round < 2; round++) {
      expect(await session.send(accepted)).toMatchObject({ type: "accepted", seq: 1, replayed: true });
      const again = await session.send(rejected);
      if (again.type !== "rejected" || conflict.type !== "rejected") throw new Error("not rejected");
      expect(again.replayed).toBe(true);
      expect(again.error.toBody()).toEqual(conflict.error.toBody());
      await world().reopen();
    }
    expect(await world().lastSeq()).toBe(2);
    expect(world().notices).toHaveLength(2);
  });

  test("replay with another payload is a mismatch, also after a restart, and changes nothing", async () => {
    const session = await world().session();
    await session.write([set("task:1", { n: 1 })]);
    for (let round = 0; round < 2; round++) {
      const other = session.build([set("task:1", { n: 9 })], { localSeq: 1 });
      expect(await refusal(session.send(other))).toBe("replay_mismatch_error");
      expect(await world().document("task:1")).toEqual({ value: { n: 1 } });
      await world().reopen();
    }
  });

  test("the order of keys does not make another payload", async () => {
    const session = await world().session();
    await session.write([set("task:1", { a: 1, b: 2 })]);
    const turned = session.build([set("task:1", { b: 2, a: 1 })], { localSeq: 1 });
    expect(await session.send(turned)).toMatchObject({ seq: 1, replayed: true });
  });

  test("gaps in localSeq are allowed; a lower one that was never seen is passed", async () => {
    const session = await world().session();
    await session.write([set("task:1", { n: 1 })], { localSeq: 5 });
    const late = session.build([set("task:1", { n: 2 })], { localSeq: 3 });
    expect(await refusal(session.send(late))).toBe("local_seq_passed_error");
    expect(brief(await session.commit([set("task:1", { n: 3 })], { localSeq: 9 }))).toBe(2);
  });

  test("an error that is no verdict consumes nothing", async () => {
    const session = await world().session();
    const beyond = session.build([set("task:1", { n: 1 })], { localSeq: 1, confirmed: [read("task:1", 7)] });
    expect(await refusal(session.send(beyond))).toBe("seq_out_of_range");
    const nowhere = session.build([set("task:1", { n: 1 })], { localSeq: 1, branch: "nowhere" });
    expect(await refusal(session.send(nowhere))).toBe("branch_not_found");
    const verdict = findVerdict(world().ports(), world().space, alice, session.opened.sessionId, 1);
    expect(await refusal(verdict)).toBe("commit_not_found");
    expect(brief(await session.commit([set("task:1", { n: 1 })], { localSeq: 1 }))).toBe(1);
  });

  test("a conflict names every stale read at once, with what is there now", async () => {
    const session = await world().session();
    await session.write([set("task:1", { owner: "a" }), set("task:2", { owner: "a" }), set("task:3", { owner: "a" })]);
    const other = await world().session();
    await other.write([patch("task:1", { op: "replace", path: "/value/owner", value: "b" }), remove("task:2")]);
    const verdict = await session.commit([set("task:9", {})], {
      confirmed: [read("task:1", 1, "owner"), read("task:2", 1), read("task:3", 1)],
    });
    if (verdict.type !== "rejected") throw new Error("accepted");
    expect(verdict.error.toBody()).toMatchObject({
      error: "conflict_error",
      name: "ConflictError",
      retryable: false,
      conflicts: [
        { id: "task:1", branch: "", path: ["value", "owner"], expected: { seq: 1 }, actual: { seq: 2, value: "b" } },
        { id: "task:2", branch: "", path: ["value"], expected: { seq: 1 }, actual: { seq: 2 } },
      ],
    });
    expect(await world().read(["task:9"])).toEqual([]);
  });

  test("disjoint fields of one entity by two agents do not conflict", async () => {
    const [one, two] = [await world().session(), await world().session()];
    const seq = await one.write([set("task:1", { owner: "a", state: "open" })]);
    const write = (path: string, value: string) => [patch("task:1", { op: "replace", path, value })];
    expect(brief(await one.commit(write("/value/owner", "b"), { confirmed: [read("task:1", seq, "owner")] }))).toBe(2);
    expect(brief(await two.commit(write("/value/state", "done"), { confirmed: [read("task:1", seq, "state")] }))).toBe(
      3,
    );
    expect(await world().document("task:1")).toEqual({ value: { owner: "b", state: "done" } });
  });

  test("a splice touches every element of its array", async () => {
    const [one, two] = [await world().session(), await world().session()];
    const seq = await one.write([set("list:1", { items: ["a", "b", "c"], title: "t" })]);
    await two.write([patch("list:1", { op: "splice", path: "/value/items", index: 0, remove: 1, add: [] })]);
    const element = await one.commit([set("task:2", {})], { confirmed: [read("list:1", seq, "items", "2")] });
    expect(brief(element)).toBe("ConflictError");
    expect(brief(await one.commit([set("task:2", {})], { confirmed: [read("list:1", seq, "title")] }))).toBe(3);
  });

  test("a shallow read is not disturbed below a key that stays", async () => {
    const [one, two] = [await world().session(), await world().session()];
    const seq = await one.write([set("task:1", { a: { x: 1 } })]);
    const shallow = { confirmed: [{ ...read("task:1", seq), shallow: true }] };
    await two.write([patch("task:1", { op: "replace", path: "/value/a/x", value: 2 })]);
    expect(brief(await one.commit([set("task:2", {})], shallow))).toBe(3);
    await two.write([patch("task:1", { op: "add", path: "/value/b", value: 2 })]);
    expect(brief(await one.commit([set("task:2", {})], shallow))).toBe("ConflictError");
  });

  test("an absent entity can be read: creating it makes the read stale", async () => {
    const [one, two] = [await world().session(), await world().session()];
    const absent = { confirmed: [read("task:1", 0)] };
    await two.write([set("task:1", { by: "two" })], absent);
    expect(brief(await one.commit([set("task:1", { by: "one" })], absent))).toBe("ConflictError");
  });

  test("a patch that does not fit rejects the whole commit and names operation and path", async () => {
    const session = await world().session();
    const commit = session.build([
      set("task:1", { n: 1 }),
      patch("task:2", { op: "replace", path: "/value/missing", value: 1 }),
    ]);
    for (const replayed of [false, true]) {
      const verdict = await session.send(commit);
      if (verdict.type !== "rejected") throw new Error("accepted");
      expect(verdict.replayed).toBe(replayed);
      expect(verdict.error.toBody()).toMatchObject({ name: "PatchError", operationIndex: 1, path: "/value/missing" });
    }
    expect(await world().read(["task:1", "task:2"])).toEqual([]);
    expect(await world().lastSeq()).toBe(0);
  });

  test("a document that a patch would make too large is refused", async () => {
    const session = await world().session();
    await session.write([set("task:1", { text: "x".repeat(1_000_000) })]);
    const grow = patch("task:1", { op: "add", path: "/value/more", value: "y".repeat(100_000) });
    const verdict = await session.commit([grow]);
    if (verdict.type !== "rejected") throw new Error("accepted");
    expect(verdict.error.toBody()).toMatchObject({ name: "PatchError", reason: "too_large" });
  });

  test("seq grows by one in commit order, also for commits at once through two brokers", async () => {
    const second = await world().openAnother();
    const sessions = await Promise.all([1, 2, 3, 4].map(() => world().session()));
    const verdicts = await Promise.all(
      sessions.flatMap((session, n) =>
        [1, 2, 3, 4, 5].map((round) =>
          session.send(session.build([set(`task:${n}`, { round })]), session.opened, n % 2 === 0 ? second : undefined),
        ),
      ),
    );
    const seqs = verdicts.map(brief).filter((seq) => typeof seq === "number");
    const { items } = await readLog(world().ports(), world().space, { after: 0 }, 100);
    expect(items.map(({ seq }) => seq)).toEqual(items.map((_, index) => index + 1));
    expect(new Set(seqs).size).toBe(seqs.length);
    expect(items.length).toBe(seqs.length);
  });

  test("a counter that many agents raise through two brokers at once loses no update", async () => {
    const second = await world().openAnother();
    const sessions = await Promise.all([1, 2, 3, 4].map(() => world().session()));
    await sessions[0]?.write([set("counter:1", { n: 0 })]);
    const raise = async (session: Session, store: SpacesStore): Promise<void> => {
      for (let tries = 0; tries < 200; tries++) {
        const [now] = await world().read(["counter:1"]);
        const n = valueAt(now?.document, ["value", "n"]);
        if (!n.exists) throw new Error("the counter is gone");
        const commit = session.build([set("counter:1", { n: Number(n.value) + 1 })], {
          confirmed: [read("counter:1", now?.seq ?? 0)],
        });
        if ((await session.send(commit, session.opened, store)).type === "accepted") return;
      }
      throw new Error("never accepted");
    };
    await Promise.all(
      sessions.map(async (session, index) => {
        for (let round = 0; round < 5; round++) await raise(session, index % 2 === 0 ? second : world().store);
      }),
    );
    expect(await world().document("counter:1")).toEqual({ value: { n: 20 } });
  });

  test("sends are accepted with the commit, and a lost answer does not send twice", async () => {
    const session = await world().session();
    const commit = session.build([set("task:1", { n: 1 })], { sends: [send("m1"), send("m2")] });
    expect(brief(await session.send(commit))).toBe(1);
    await world().reopen();
    let prepared = 0;
    world().beforeSends = () => {
      prepared += 1;
    };
    expect(await session.send(commit)).toMatchObject({ seq: 1, replayed: true });
    expect(prepared).toBe(0);
    expect(await world().sent()).toEqual(["m1", "m2"]);
    expect(world().woken).toEqual([["m1", "m2"]]);
  });

  test("a send that is refused rejects the commit for good and undoes its neighbours", async () => {
    const session = await world().session();
    await session.write([set("task:1", { n: 1 })], { sends: [send("m1")] });
    const consumed = session.build([set("task:1", { n: 2 })], { sends: [send("m2"), send("m1")] });
    for (let round = 0; round < 2; round++) {
      const verdict = await session.send(consumed);
      if (verdict.type !== "rejected") throw new Error("accepted");
      expect(verdict.error.toBody()).toMatchObject({
        name: "SendRejectedError",
        index: 1,
        code: "idempotency_key_reused",
      });
    }
    expect(await world().sent()).toEqual(["m1"]);
    expect(await world().document("task:1")).toEqual({ value: { n: 1 } });
    expect(await world().lastSeq()).toBe(1);
    const failing = await session.commit([], { sends: [send("m3", "refuse")] });
    if (failing.type !== "rejected") throw new Error("accepted");
    expect(failing.error.details).toEqual({ index: 0, code: "destination_not_found" });
  });

  test("a commit may be sends alone", async () => {
    const session = await world().session();
    expect(brief(await session.commit([], { sends: [send("m1")] }))).toBe(1);
    expect(await world().sent()).toEqual(["m1"]);
  });

  test("a limit that refuses the sends is an answer and no verdict", async () => {
    const session = await world().session();
    const commit = session.build([set("task:1", { n: 1 })], { sends: [send("m1")] });
    world().beforeSends = () => {
      throw new MeshError("rate_limited");
    };
    expect(await refusal(session.send(commit))).toBe("rate_limited");
    world().beforeSends = () => undefined;
    expect(brief(await session.send(commit))).toBe(1);
  });

  test("a commit does not overtake one of its session whose sends are still being looked at", async () => {
    const session = await world().session();
    const gate = Promise.withResolvers<void>();
    world().beforeSends = () => gate.promise;
    const first = session.send(session.build([set("task:1", { n: 1 })], { sends: [send("m1")] }));
    const second = session.send(session.build([set("task:1", { n: 2 })]));
    const branch = session.createBranch("draft");
    gate.resolve();
    expect([brief(await first), brief(await second), brief(await branch)]).toEqual([1, 2, 3]);
  });

  test("one whose sends are refused by a limit lets the next pass", async () => {
    const session = await world().session();
    world().beforeSends = async () => {
      throw new MeshError("rate_limited");
    };
    const first = session.send(session.build([set("task:1", { n: 1 })], { sends: [send("m1")] }));
    const second = session.send(session.build([set("task:1", { n: 2 })]));
    expect(await refusal(first)).toBe("rate_limited");
    expect(brief(await second)).toBe(1);
  });

  test("main is the default branch's other name", async () => {
    const session = await world().session();
    await session.write([set("task:1", { n: 1 })], { branch: "main" });
    expect(await world().document("task:1", "main")).toEqual({ value: { n: 1 } });
    expect(await world().document("task:1")).toEqual({ value: { n: 1 } });
    expect(await refusal(session.createBranch("main"))).toBe("invalid_name");
    expect(await refusal(session.deleteBranch("main"))).toBe("invalid_request");
  });

  test("a stale read rejects the commit before its sends are accepted", async () => {
    const [one, two] = [await world().session(), await world().session()];
    await two.write([set("task:1", { n: 1 })]);
    const verdict = await one.commit([set("task:1", { n: 2 })], {
      confirmed: [read("task:1", 0)],
      sends: [send("m1")],
    });
    expect(brief(verdict)).toBe("ConflictError");
    expect(await world().sent()).toEqual([]);
  });

  test("the log keeps the original payload, author, session and time", async () => {
    const session = await world().session();
    const commit = session.build([set("task:1", { n: 1n })], { confirmed: [read("task:1", 0)] });
    await session.send(commit);
    const { items, nextAfter } = await readLog(world().ports(), world().space, { after: 0 }, 10);
    expect(items).toEqual([
      {
        seq: 1,
        branch: "",
        sessionId: session.opened.sessionId,
        localSeq: 1,
        author: alice,
        committedAt: world().nowMs,
        original: commit,
        resolution: { seq: 1 },
        invocationRef: null,
        authorizationRef: null,
      },
    ]);
    expect(nextAfter).toBeUndefined();
  });

  test("signed writes: verified, kept by content hash, linked from the log; a space can require them", async () => {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    const member = publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex");
    await world().addMember(member);
    const space = { ...world().space, spaceId: "signed" };
    await createSpace(world().ports(), space, { signedWrites: "required", createdBy: member });
    const other = await world().session(member);
    const ports = world().ports();
    const opened = await openSession(ports, space, member, { openId: "s1" });
    const commitAs = (commit: EncodedCommit) => commitToSpace(ports, space, member, { ...opened, commit });
    const plain = other.build([set("task:1", { n: 1 })]);
    expect(await refusal(commitAs(plain))).toBe("forbidden");
    const at = { space, memberPubkey: member, sessionId: opened.sessionId, localSeq: 1 };
    const scope = { ...at, cmd: "/memory/commit" as const };
    const signed = (payload: string, over: Partial<JsonObject> = {}): JsonObject => {
      const envelope = { ...envelopeFor({ ...scope, payload }), nonce: crypto.randomUUID(), ...over } as JsonObject;
      return { envelope, signature: sign(null, invocationBytes(envelope), privateKey).toString("hex") };
    };
    const invocation = signed(canonicalCommitPayload(plain));
    for (const wrong of [
      signed("another payload"),
      signed(canonicalCommitPayload(plain), { sub: { mesh: space.meshId, space: "plan" } }),
      { ...invocation, signature: "0".repeat(128) },
      { ...invocation, more: 1 },
    ]) {
      expect(await refusal(commitAs({ ...plain, invocation: wrong }))).toBe("forbidden");
    }
    const long = signed(canonicalCommitPayload(plain), { note: "x".repeat(65_536) });
    expect(await refusal(commitAs({ ...plain, invocation: long }))).toBe("payload_too_large");
    expect(brief(await commitAs({ ...plain, invocation }))).toBe(1);
    const fresh = { ...plain, invocation: signed(canonicalCommitPayload(plain)) };
    expect(await commitAs(fresh)).toMatchObject({ seq: 1, replayed: true });
    const { items } = await readLog(ports, space, { after: 0 }, 10);
    const entry = items[0];
    expect(entry?.original).toEqual(plain);
    const kept = await findInvocation(ports, space, entry?.invocationRef ?? "");
    expect(JSON.parse(kept?.content ?? "")).toEqual(invocation.envelope);
    const authorization = await findInvocation(ports, space, entry?.authorizationRef ?? "");
    expect(JSON.parse(authorization?.content ?? "")).toMatchObject({ signature: invocation.signature, iss: member });

    const request = { ...opened, localSeq: 2, name: "draft", atSeq: 1 };
    const { cmd, payload } = signedBranchWrite(branchCreation(request));
    expect(await refusal(createBranch(ports, space, member, request))).toBe("forbidden");
    const asCommit = signed(payload, { args: { ...envelopeFor({ ...scope, payload }).args, localSeq: 2 } });
    expect(await refusal(createBranch(ports, space, member, { ...request, invocation: asCommit }))).toBe("forbidden");
    const own = signed(payload, { ...envelopeFor({ ...scope, cmd, payload, localSeq: 2 }) });
    expect(await createBranch(ports, space, member, { ...request, invocation: own })).toMatchObject({ seq: 2 });
    expect((await readLog(ports, space, { after: 1 }, 10)).items[0]?.invocationRef).toMatch(/^[0-9a-f]{64}$/);
    const deletion = { ...opened, localSeq: 3, name: "draft" };
    expect(await refusal(deleteBranch(ports, space, member, deletion))).toBe("forbidden");
  });

  test("the same space again exists, with other settings it differs", async () => {
    const settings = { signedWrites: "optional" as const, createdBy: alice };
    expect(await createSpace(world().ports(), world().space, settings)).toBe("exists");
    const other = createSpace(world().ports(), world().space, { ...settings, signedWrites: "required" });
    expect(await refusal(other)).toBe("exists_with_other_content");
    const plain = { createdBy: alice };
    await setSignedWrites(world().ports(), world().space, "required");
    expect(await createSpace(world().ports(), world().space, plain)).toBe("exists");
    const unsigned = (await world().session()).commit([set("task:1", {})]);
    expect(await refusal(unsigned)).toBe("forbidden");
    expect(await refusal(createSpace(world().ports(), { ...world().space, spaceId: "-" }, settings))).toBe(
      "invalid_name",
    );
    expect((await world().store.listSpaces(world().space.meshId, "", 10)).map(({ spaceId }) => spaceId)).toEqual([
      "plan",
    ]);
  });
}
