// Fences and fates: a fenced id can never commit, a committed one can never be fenced, and both say the same for ever.
import { expect, test } from "vitest";
import { dm, noEffects, send, topic, type World } from "./world.ts";

export function describeFences(world: () => World): void {
  test("before the send: fenced, and whatever of the id still comes is refused", async () => {
    const [alice, bob] = await world().threeMembers();
    const request = send("m1", dm(bob));
    expect(await world().fate(alice, request)).toEqual({ fate: "none" });
    expect(await world().fence(alice, request)).toEqual({ fate: "fenced" });
    expect(await world().fate(alice, request)).toEqual({ fate: "fenced" });
    const refusal = { type: "fenced", clientMessageId: "m1" };
    expect(await world().accept(alice, request)).toEqual(refusal);
    expect(await world().accept(alice, send("m1", dm(bob), "other"))).toEqual(refusal);
    expect(await world().effects()).toEqual(noEffects);
  });

  test("after the send: committed, with the ids of the accept, and the message stays", async () => {
    const [alice, bob] = await world().threeMembers();
    const request = send("m1", dm(bob));
    const accepted = await world().accept(alice, request);
    if (accepted.type !== "accepted") throw new Error("the send was not accepted");
    const { brokerMessageId, historyId } = accepted;
    const fate = { fate: "committed", brokerMessageId, historyId, historyAvailable: true };
    expect(await world().fence(alice, request)).toEqual(fate);
    expect(await world().fate(alice, request)).toEqual(fate);
    expect(await world().accept(alice, request)).toMatchObject({ type: "duplicate" });
  });

  test("an id that holds other content or is another member's is taken", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    const request = send("m1", dm(bob));
    await world().accept(alice, request);
    for (const ask of [
      () => world().fence(alice, send("m1", dm(bob), "other")),
      () => world().fate(alice, send("m1", dm(bob), "other")),
      () => world().fence(carol, request),
      () => world().fate(carol, request),
    ]) {
      expect(await ask()).toEqual({ fate: "taken" });
    }
  });

  test("of another member does not hit mine, and keeps its fate after I took the id", async () => {
    const [alice, bob] = await world().threeMembers();
    const request = send("m1", dm(bob));
    expect(await world().fence(alice, request)).toEqual({ fate: "fenced" });
    expect(await world().accept(bob, request)).toMatchObject({ type: "accepted" });
    expect(await world().fence(alice, request)).toEqual({ fate: "fenced" });
    expect(await world().fate(alice, request)).toEqual({ fate: "fenced" });
    expect(await world().fate(bob, request)).toMatchObject({ fate: "committed" });
  });

  test("of another mesh does not hit mine", async () => {
    const [alice, bob] = await world().threeMembers();
    const other = await world().startOther("mesh-2");
    await other.fence(alice, send("m1", dm(bob)));
    expect(await world().accept(alice, send("m1", dm(bob)))).toMatchObject({ type: "accepted" });
    await other.close();
  });

  test("again, in any number at once, is the same fate and one row", async () => {
    const [alice, bob] = await world().threeMembers();
    const request = send("m1", dm(bob));
    const second = await world().openAnother();
    const stores = [world().store, second, world().store, second];
    const fates = await Promise.all(stores.map((store) => world().fence(alice, request, store)));
    expect(fates).toEqual(stores.map(() => ({ fate: "fenced" })));
    const [row] = await world().query(`SELECT count(*) AS n FROM ${world().table("client_message_fence")}`);
    expect(Number(row?.n)).toBe(1);
  });

  test("a fate that is asked for is not decided by asking", async () => {
    const [alice, bob] = await world().threeMembers();
    expect(await world().fate(alice, send("m1", dm(bob)))).toEqual({ fate: "none" });
    expect(await world().accept(alice, send("m1", dm(bob)))).toMatchObject({ type: "accepted" });
  });

  test("a refused send can still be fenced", async () => {
    const [alice] = await world().threeMembers();
    const request = send("m1", topic("nowhere"));
    await world().accept(alice, request);
    expect(await world().fence(alice, request)).toEqual({ fate: "fenced" });
    await world().addTopic("nowhere");
    expect(await world().accept(alice, request)).toMatchObject({ type: "fenced" });
  });

  test("a send that is past its look-up when its id is fenced cannot commit afterwards", async () => {
    const [alice, bob] = await world().threeMembers();
    const request = send("m1", dm(bob));
    const second = await world().openAnother();
    const held = world().accept(alice, request, {
      afterLookUp: async () => {
        expect(await world().fence(alice, request, second)).toEqual({ fate: "fenced" });
      },
    });
    expect(await held).toEqual({ type: "fenced", clientMessageId: "m1" });
    expect(await world().effects()).toEqual(noEffects);
  });

  test("racing with its send agrees with it: fenced and refused, or committed and accepted", async () => {
    const [alice, bob] = await world().threeMembers();
    const second = await world().openAnother();
    for (let round = 0; round < 20; round++) {
      const request = send(`m${round}`, dm(bob));
      const works = [() => world().accept(alice, request), () => world().fence(alice, request, second)];
      if (round % 2 === 1) works.reverse();
      const outcomes = await Promise.all(works.map((work) => work()));
      const accept = outcomes.find((outcome) => "type" in outcome);
      const fence = outcomes.find((outcome) => "fate" in outcome);
      expect([accept?.type, fence?.fate]).toEqual(
        accept?.type === "accepted" ? ["accepted", "committed"] : ["fenced", "fenced"],
      );
      expect(await world().fate(alice, request)).toEqual(fence);
    }
  });
}
