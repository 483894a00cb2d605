// Pending reads: commits that build on earlier ones of their session, before those were confirmed. Accepted means that
// the read saw exactly what was accepted before it.
import { expect, test } from "vitest";
import { alice, brief, layer, patch, read, refusal, remove, set, type World } from "./world.ts";

export function describePending(world: () => World): void {
  test("a stack is accepted layer by layer, and each verdict says what it rested on", async () => {
    const session = await world().session();
    await session.write([set("task:1", { n: 1 })]);
    await session.write([patch("task:1", { op: "replace", path: "/value/n", value: 2 })], {
      pending: [layer("task:1", 1)],
    });
    const verdict = await session.commit([set("task:2", { n: 2 })], {
      pending: [layer("task:1", 1), layer("task:1", 2)],
    });
    expect(verdict).toMatchObject({
      seq: 3,
      resolvedPendingReads: [
        { localSeq: 1, seq: 1 },
        { localSeq: 2, seq: 2 },
      ],
    });
  });

  test("a layer that has not arrived is no verdict: the same commit is accepted after it", async () => {
    const session = await world().session();
    const first = session.build([set("task:1", { n: 1 })]);
    const second = session.build([set("task:2", { n: 1 })], { pending: [layer("task:1", 1)] });
    expect(await refusal(session.send(second))).toBe("pending_dependency_error");
    await session.send(first);
    expect(brief(await session.send(second))).toBe(2);
  });

  test("a rejected layer rejects what builds on it, and that rejects what builds on that", async () => {
    const [session, other] = [await world().session(), await world().session()];
    await other.write([set("task:1", { by: "other" })]);
    expect(brief(await session.commit([set("task:1", { n: 1 })], { confirmed: [read("task:1", 0)] }))).toBe(
      "ConflictError",
    );
    const second = await session.commit([set("task:2", { n: 1 })], { pending: [layer("task:1", 1)] });
    const third = await session.commit([set("task:3", { n: 1 })], { pending: [layer("task:2", 2)] });
    if (second.type !== "rejected" || third.type !== "rejected") throw new Error("accepted");
    expect(second.error.toBody()).toMatchObject({ name: "DependencyRejectedError", localSeq: 1 });
    expect(third.error.toBody()).toMatchObject({ name: "DependencyRejectedError", localSeq: 2 });
    expect(await world().lastSeq()).toBe(1);
  });

  test("a layer that was passed over and never received is dead", async () => {
    const session = await world().session();
    await session.write([set("task:1", { n: 1 })], { localSeq: 4 });
    const verdict = await session.commit([set("task:2", {})], { localSeq: 5, pending: [layer("task:1", 2)] });
    if (verdict.type !== "rejected") throw new Error("accepted");
    expect(verdict.error.toBody()).toMatchObject({ name: "DependencyRejectedError", localSeq: 2 });
  });

  test("a foreign write between basis and layer is a conflict", async () => {
    const [session, other] = [await world().session(), await world().session()];
    const basis = await other.write([set("task:1", { a: 1, b: 1 })]);
    // Between what the session saw and its own first commit, another session writes what it will read.
    await other.write([patch("task:1", { op: "replace", path: "/value/b", value: 2 })]);
    await session.write([patch("task:1", { op: "replace", path: "/value/a", value: 2 })]);
    const reading = session.build([set("task:2", {})], { pending: [layer("task:1", 1, [], basis)] });
    expect(brief(await session.send(reading))).toBe("ConflictError");
    // Without a basis nothing says what was under the layer.
    const blind = session.build([set("task:2", {})], { pending: [layer("task:1", 1)] });
    expect(await refusal(session.send(blind))).toBe("basis_required_error");
  });

  test("the phantom: a rejected lower layer under an accepted upper one", async () => {
    const [session, other] = [await world().session(), await world().session()];
    const basis = await other.write([set("task:1", { a: 1, b: 1 }), set("lock:1", { free: true })]);
    await other.write([set("lock:1", { free: false })]);
    const rejected = await session.commit([patch("task:1", { op: "replace", path: "/value/a", value: 2 })], {
      confirmed: [read("lock:1", basis)],
    });
    expect(brief(rejected)).toBe("ConflictError");
    // The upper layer does not read what the lower one wrote, so that it stands.
    await session.write([patch("task:1", { op: "replace", path: "/value/b", value: 2 })]);
    // This one saw both; naming both, it falls with the lower.
    const both = [layer("task:1", 1, [], basis), layer("task:1", 2, [], basis)];
    expect(brief(await session.commit([set("task:2", {})], { pending: both }))).toBe("DependencyRejectedError");
    // Naming only the upper, it is judged by what is there: a is 1, whatever it expects.
    expect(brief(await session.commit([set("task:2", {})], { pending: [layer("task:1", 2, ["b"], basis)] }))).toBe(4);
  });

  test("a write of its own that a read does not name counts as any other", async () => {
    const session = await world().session();
    const basis = await session.write([set("task:1", { a: 1, b: 1 })]);
    await session.write([patch("task:1", { op: "replace", path: "/value/a", value: 2 })]);
    await session.write([patch("task:1", { op: "replace", path: "/value/b", value: 2 })]);
    const naming = (...layers: number[]) => layers.map((localSeq) => layer("task:1", localSeq, [], basis));
    expect(brief(await session.commit([set("task:2", {})], { pending: naming(3) }))).toBe("ConflictError");
    expect(brief(await session.commit([set("task:2", {})], { pending: naming(2, 3) }))).toBe(4);
  });

  test("an array remove under a read without basis needs one", async () => {
    const session = await world().session();
    await session.write([set("list:1", { items: ["a", "b", "c"] })]);
    await session.write([patch("list:1", { op: "remove", path: "/value/items/0" })]);
    const reading = { pending: [layer("list:1", 2, ["items", "0"])] };
    expect(await refusal(session.commit([set("task:1", {})], { ...reading, localSeq: 3 }))).toBe(
      "basis_required_error",
    );
    const basis = { pending: [layer("list:1", 2, ["items", "0"], 1)] };
    expect(brief(await session.commit([set("task:1", {})], { ...basis, localSeq: 3 }))).toBe(3);
  });

  test("an own splice with a foreign write of an element under it, with basis, is a conflict", async () => {
    const [session, other] = [await world().session(), await world().session()];
    const basis = await other.write([set("list:1", { items: ["a", "b", "c"] })]);
    await other.write([patch("list:1", { op: "replace", path: "/value/items/1", value: "B" })]);
    await session.write([patch("list:1", { op: "splice", path: "/value/items", index: 0, remove: 1, add: [] })]);
    // It saw "b" at 0, where the splice brought it from 1; what is there is "B".
    const shifted = { pending: [layer("list:1", 1, ["items", "0"], basis)] };
    expect(brief(await session.commit([set("task:1", {})], shifted))).toBe("ConflictError");
  });

  test("content that moved twice is followed to where it was written", async () => {
    const [session, other] = [await world().session(), await world().session()];
    const basis = await other.write([set("task:1", { a: { x: 1 }, b: null, c: null })]);
    await other.write([patch("task:1", { op: "replace", path: "/value/a/x", value: 9 })]);
    await session.write([patch("task:1", { op: "move", from: "/value/a", path: "/value/b" })]);
    await session.write([patch("task:1", { op: "move", from: "/value/b", path: "/value/c" })]);
    const pending = [layer("task:1", 1, ["c", "x"], basis), layer("task:1", 2, ["c", "x"], basis)];
    expect(brief(await session.commit([set("task:2", {})], { pending }))).toBe("ConflictError");
  });

  test("a layer that covers what was read needs no basis", async () => {
    const [session, other] = [await world().session(), await world().session()];
    await other.write([set("task:1", { a: 1 })]);
    await session.write([patch("task:1", { op: "replace", path: "/value/a", value: 2 })]);
    expect(brief(await session.commit([set("task:2", {})], { pending: [layer("task:1", 1, ["a"])] }))).toBe(3);
    await other.write([patch("task:1", { op: "replace", path: "/value/a", value: 3 })]);
    expect(brief(await session.commit([set("task:2", {})], { pending: [layer("task:1", 1, ["a"])] }))).toBe(
      "ConflictError",
    );
  });

  test("a deleted entity can be read as a layer", async () => {
    const session = await world().session();
    await session.write([set("task:1", { a: 1 })]);
    await session.write([remove("task:1")]);
    expect(brief(await session.commit([set("task:2", {})], { pending: [layer("task:1", 2)] }))).toBe(3);
  });

  test("a layer on another branch is refused, and so is a basis above the space's seq", async () => {
    const session = await world().session();
    await session.write([set("task:1", { a: 1 })]);
    await session.createBranch("draft");
    const elsewhere = { branch: "draft", pending: [layer("task:1", 1)] };
    expect(await refusal(session.commit([set("task:2", {})], elsewhere))).toBe("invalid_request");
    const beyond = { pending: [layer("task:1", 1, [], 99)] };
    expect(await refusal(session.commit([set("task:2", {})], beyond))).toBe("seq_out_of_range");
  });

  test("a takeover in mid-stack: the new holder replays what the old one sent and goes on", async () => {
    const session = await world().session();
    const stack = [
      session.build([set("task:1", { n: 1 })]),
      session.build([patch("task:1", { op: "replace", path: "/value/n", value: 2 })], {
        pending: [layer("task:1", 1)],
      }),
      session.build([patch("task:1", { op: "replace", path: "/value/n", value: 3 })], {
        pending: [layer("task:1", 1), layer("task:1", 2)],
      }),
    ];
    const [first, second, third] = stack as [(typeof stack)[0], (typeof stack)[0], (typeof stack)[0]];
    await session.send(first);
    await session.send(second);
    const old = session.opened;
    await world().reopen();
    session.opened = await world().open(alice, "takeover", old);
    expect(session.opened.lastLocalSeq).toBe(2);
    expect(await refusal(session.send(third, old))).toBe("session_revoked_error");
    expect(await session.send(first)).toMatchObject({ seq: 1, replayed: true });
    expect(await session.send(second)).toMatchObject({ seq: 2, replayed: true });
    expect(await session.send(third)).toMatchObject({ seq: 3, replayed: false });
    expect(await world().document("task:1")).toEqual({ value: { n: 3 } });
  });
}
