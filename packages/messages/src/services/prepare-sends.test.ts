// Look-up and limit for sends that a commit carries: what spends budget, what is refused before anything happens, and what is left
// for the transaction to find.
import { expect, test } from "vitest";
import type { LimiterDecision } from "../ports/limiter.ts";
import { type PrepareSendsPorts, prepareSends } from "./prepare-sends.ts";

const sender = { meshId: "mesh-1", pubkey: "a".repeat(64) };
const send = (client_message_id: string, body = "hi") => ({
  client_message_id,
  destination: { kind: "topic" as const, ref: "news" },
  body,
});

function createPorts(decide: (id: string) => LimiterDecision, over: Partial<PrepareSendsPorts> = {}) {
  const asked: string[] = [];
  const consumed = new Set<string>();
  let passed = 0;
  const ports: PrepareSendsPorts = {
    store: {
      findAccepted: async (_, id) => (consumed.has(id) ? ({} as never) : undefined),
    },
    limiter: {
      consume: async (_, id) => {
        asked.push(id);
        return decide(id);
      },
      available: async () => true,
    },
    limits: {
      whenUnavailable: "refuse",
      onPassedUncounted: () => {
        passed += 1;
      },
    },
    nowMs: () => 1_000,
    nextId: () => "id",
    inlineBytes: 10,
    takesUnsealed: async () => true,
    dedupeRetentionMs: 500,
    ...over,
  };
  return { ports, asked, consumed, passed: () => passed };
}

const ok = (): LimiterDecision => ({ type: "ok", spent: true });

test("each new id spends budget, a consumed one spends nothing and passes", async () => {
  const { ports, asked, consumed } = createPorts(ok);
  consumed.add("m2");
  const sends = await prepareSends(ports, sender, [send("m1"), send("m2"), send("m3")]);
  expect(asked).toEqual(["m1", "m3"]);
  expect(sends.map(({ clientMessageId }) => clientMessageId)).toEqual(["m1", "m2", "m3"]);
  expect(sends[0]).toMatchObject({ senderPubkey: sender.pubkey, acceptedAtMs: 1_000, expiresAtMs: 1_500 });
});

test("where the budget ends, those behind spend nothing", async () => {
  const { ports, asked } = createPorts((id) => (id === "m2" ? { type: "denied", retryAfterSeconds: 7 } : ok()));
  const refused = prepareSends(ports, sender, [send("m1"), send("m2"), send("m3")]);
  await expect(refused).rejects.toMatchObject({ code: "rate_limited", details: { retry_after_s: 7 } });
  expect(asked).toEqual(["m1", "m2"]);
});

test("an id that was consumed meanwhile is no matter of budget", async () => {
  const { ports, consumed } = createPorts((id) => {
    consumed.add(id);
    return { type: "denied", retryAfterSeconds: 7 };
  });
  expect(await prepareSends(ports, sender, [send("m1")])).toHaveLength(1);
});

test("a limiter that is away makes sends refused, or lets them pass and counts that, by the setting", async () => {
  const away = (): LimiterDecision => ({ type: "unavailable" });
  await expect(prepareSends(createPorts(away).ports, sender, [send("m1")])).rejects.toMatchObject({
    code: "limiter_unavailable",
  });
  const open = createPorts(away);
  const limits = { ...open.ports.limits, whenUnavailable: "pass" as const };
  expect(await prepareSends({ ...open.ports, limits }, sender, [send("m1")])).toHaveLength(1);
  expect(open.passed()).toBe(1);
});

test("a direct message that is not sealed is refused before anything is spent, unless it was accepted before", async () => {
  const takesUnsealed = async () => false;
  const { ports, asked, consumed } = createPorts(ok, { takesUnsealed });
  const destination = { kind: "dm" as const, ref: "b".repeat(64) };
  const plain = { ...send("m2"), destination };
  await expect(prepareSends(ports, sender, [send("m1"), plain])).rejects.toMatchObject({
    code: "dm_not_sealed",
    status: 422,
    details: { index: 1 },
  });
  expect(asked).toEqual([]);
  expect(await prepareSends(ports, sender, [{ ...plain, envelope_version: "2" }])).toHaveLength(1);
  consumed.add("m2");
  expect(await prepareSends(ports, sender, [plain])).toHaveLength(1);
});

test("what is malformed or too large is refused before anything is spent", async () => {
  const { ports, asked } = createPorts(ok);
  const wrong = { ...send("m2"), destination: { kind: "topic" as const, ref: "no name" } };
  await expect(prepareSends(ports, sender, [send("m1"), wrong])).rejects.toMatchObject({
    status: 400,
    details: { index: 1, field: expect.stringMatching(/^commit\.sends\.1\./) },
  });
  expect(asked).toEqual([]);
  await expect(prepareSends(ports, sender, [send("m1"), send("m2", "x".repeat(11))])).rejects.toMatchObject({
    code: "payload_too_large",
    details: { index: 1, limit_bytes: 10 },
  });
  expect(asked).toEqual([]);
});
