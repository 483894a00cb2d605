// When a send's id is looked up beside its sender's token, and for whom: on stores whose answers the test holds back.
import { hashToken } from "@claudemesh/members/credentials";
import type { MeshMember } from "@claudemesh/members/ports";
import { describe, expect, test } from "vitest";
import type { BrokerContext } from "../context.ts";
import { lookAheadOf } from "../operations/look-aheads.ts";
import { HttpCallers } from "./http-callers.ts";

const meshId = "01890000-0000-7000-8000-000000000001";
const found: MeshMember = {
  mesh: { id: meshId, name: "acme" },
  member: { meshId, pubkey: "a".repeat(64), name: "alice", role: "member", joinedAt: 1, revoked: false },
};

function start() {
  const lookedUp: string[] = [];
  let asked: PromiseWithResolvers<MeshMember | undefined>[] = [];
  const callers = new HttpCallers({
    findByToken: () => {
      const answer = Promise.withResolvers<MeshMember | undefined>();
      asked.push(answer);
      return answer.promise;
    },
  });
  const findAccepted = async (mesh: string, id: string) => void lookedUp.push(`${mesh} ${id}`);
  const broker = { messages: { accepts: { findAccepted } }, nowMs: () => 17 } as unknown as BrokerContext;
  const lookAhead = lookAheadOf(broker, "send");
  if (lookAhead === undefined) throw new Error("a send looks ahead");
  const ask = (id: unknown, token = "good", mesh = "acme") =>
    callers.askAhead({ tokenHash: hashToken(token), params: { mesh }, body: { client_message_id: id } }, lookAhead);
  const answer = (caller: MeshMember | undefined) => {
    for (const { resolve } of asked) resolve(caller);
    asked = [];
  };
  const sendOnce = async () => {
    const first = ask("m0");
    answer(found);
    await first;
  };
  return { ask, answer, sendOnce, lookedUp };
}

describe("a send's id is looked up while its token is", () => {
  test("for whom the token was good the last time, and the caller brings what was begun", async () => {
    const { ask, answer, sendOnce, lookedUp } = start();
    await sendOnce();
    expect(lookedUp).toEqual([]);
    const second = ask("m1");
    expect(lookedUp).toEqual([`${meshId} m1`]);
    answer(found);
    expect(await second).toMatchObject({ ...found, lookUp: { meshId, clientMessageId: "m1", atMs: 17 } });
  });

  test("never for a stranger, whatever others sent", async () => {
    const { ask, answer, sendOnce, lookedUp } = start();
    await sendOnce();
    for (const [token, mesh] of [
      ["bad", "acme"],
      ["good", "other"],
    ]) {
      for (let tries = 0; tries < 3; tries += 1) {
        const refused = ask("m1", token, mesh);
        answer(undefined);
        await expect(refused).rejects.toMatchObject({ code: "unauthorized" });
      }
    }
    expect(lookedUp).toEqual([]);
  });

  test("once after a revocation, and the revoked member is refused, then and later", async () => {
    const { ask, answer, sendOnce, lookedUp } = start();
    await sendOnce();
    for (const gone of [undefined, { ...found, member: { ...found.member, revoked: true } }]) {
      const refused = ask("m1");
      answer(gone);
      await expect(refused).rejects.toMatchObject({ code: "unauthorized" });
    }
    expect(lookedUp).toHaveLength(1);
  });

  test("not where it is no id that a store could be asked for", async () => {
    const { ask, answer, sendOnce, lookedUp } = start();
    await sendOnce();
    for (const id of [undefined, 7, "", "a b", "\0", "x".repeat(129)]) {
      const asked = ask(id);
      answer(found);
      expect(await asked).toEqual(found);
    }
    expect(lookedUp).toEqual([]);
  });

  test("for a bounded number of senders: who sent first is forgotten", async () => {
    const { ask, answer, sendOnce, lookedUp } = start();
    await sendOnce();
    const others = Array.from({ length: 4_096 }, (_, n) => ask("m0", `other-${n}`));
    answer(found);
    await Promise.all(others);
    const again = [ask("m1"), ask("m2", "other-4095")];
    answer(found);
    await Promise.all(again);
    expect(lookedUp).toEqual([`${meshId} m2`]);
  });
});
