// Three brokers on one PostgreSQL and one Redis, killed again and again under load: nothing that was answered is lost,
// nothing is there twice, and every member gets what is its own, in order (MSG-2, MSG-3, MSG-5, MSG-6).
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { joinTestMesh, type TestMember } from "./support/broker-harness.ts";
import { LoadReceiver, type LoadSend, sendThroughAny } from "./support/broker-load.ts";
import type { BrokerProcess } from "./support/broker-process.ts";
import { Brokers, createMeshOn, findServers } from "./support/brokers.ts";
import { createRandom, seedOfTheDay } from "./support/seed.ts";
import { until } from "./support/world.ts";

const servers = await findServers("chaos");
afterAll(() => servers.stop());

const killsWanted = 21;
const messagesWanted = 10_000;
const callers = 24;
const answersBetweenKills = 420;

describe.skipIf(!servers.found)("brokers side by side under SIGKILL", () => {
  const brokers = new Brokers({
    ...servers.urls,
    flags: ["--rate-limit", "100000000/60s"],
  });
  const admin = new pg.Client({ connectionString: servers.urls.databaseUrl });
  let all: BrokerProcess[] = [];
  beforeAll(async () => {
    await admin.connect();
    all = await Promise.all([brokers.add(), brokers.add(), brokers.add()]);
  });
  afterAll(async () => {
    await brokers.end();
    await admin.end();
  });

  async function makeMembers(): Promise<[TestMember, TestMember, TestMember]> {
    const [first] = all;
    if (first === undefined) throw new Error("the brokers have not started");
    const owner = await createMeshOn(brokers, first, "chaos");
    const members = [owner, await joinTestMesh(owner, "bob"), await joinTestMesh(owner, "carol")] as const;
    // The load reads what it was pushed.
    await owner.set("dm_policy", "any");
    await owner.call("POST", "/topics", { name: "news" });
    for (const member of members) expect((await member.call("PUT", "/topics/news/subscription")).status).toBe(200);
    return [...members];
  }

  test("nothing answered is lost and nothing lands twice through the kills", async () => {
    const random = createRandom(seedOfTheDay());
    const members = await makeMembers();
    const receivers = members.map((member) => new LoadReceiver(member, all, random));
    const receiving = receivers.map((receiver) => receiver.run());

    const load = { on: true, answered: 0 };
    const sends: LoadSend[] = [];
    const sending = Array.from({ length: callers }, async (_, caller) => {
      for (let n = 0; load.on; n += 1) {
        const id = `${caller}-${n}`;
        const toTopic = random.next() < 0.3;
        const send: LoadSend = {
          id,
          sender: random.pick(members),
          destination: toTopic ? { kind: "topic", ref: "news" } : { kind: "dm", ref: random.pick(members).pubkey },
          body: `${id}: ${"x".repeat(random.below(300))}`,
          answered: undefined,
        };
        sends.push(send);
        await sendThroughAny(send, { brokers: all, random, giveUp: () => random.next() < 0.1 });
        if (send.answered !== undefined) load.answered += 1;
      }
    });

    // Every second blow strikes where a receiver is connected, in turns: by chance alone one of them might hardly be hit.
    const pickVictim = async (kill: number): Promise<BrokerProcess> => {
      const aimedAt = kill % 2 === 0 ? receivers[(kill / 2) % receivers.length] : undefined;
      if (aimedAt === undefined) return random.pick(all);
      await until("a receiver is connected", () => aimedAt.connectedTo !== undefined);
      return aimedAt.connectedTo ?? random.pick(all);
    };
    let kills = 0;
    while (kills < killsWanted) {
      const goal = load.answered + random.below(answersBetweenKills);
      await until("the load goes on", () => load.answered >= goal);
      const victim = await pickVictim(kills);
      await victim.kill();
      kills += 1;
      await victim.start();
    }
    await until("enough was answered", () => load.answered >= messagesWanted, 120_000);
    load.on = false;
    await Promise.all(sending);

    // A caller that asks again, through any broker, gets the answer that it got first.
    const retried = sends.filter((send) => send.answered !== undefined).slice(-50);
    for (const send of retried) {
      const retry: LoadSend = { ...send, answered: undefined };
      await sendThroughAny(retry, { brokers: all, random, giveUp: () => false });
      expect(retry.answered).toEqual(send.answered);
    }

    await until(
      "every delivery is settled",
      async () => (await count("delivery_queue WHERE settled_at IS NULL")) === 0,
    );
    await until("every receiver is back", () => receivers.every(({ connectedTo }) => connectedTo !== undefined));
    for (const receiver of receivers) receiver.stop();
    await Promise.all(receiving);
    const stored = await audit(sends, members, receivers);
    const connections = receivers.map((receiver) => receiver.connections);
    const summary = { kills, answered: load.answered, stored, connections };
    process.stdout.write(`brokers under SIGKILL: ${JSON.stringify(summary)}\n`);
    expect(load.answered).toBeGreaterThanOrEqual(messagesWanted);
    // A run in which no receiver lost its broker would prove little.
    for (const made of connections) expect(made).toBeGreaterThan(3);
  });

  async function count(rest: string): Promise<number> {
    const { rows } = await admin.query<{ n: number }>(`SELECT count(*)::int AS n FROM mesh.${rest}`);
    return rows[0]?.n ?? 0;
  }

  /** Claim, message and history of each id, which must agree. */
  async function readAccepted(ids: readonly string[]) {
    const { rows } = await admin.query<{ id: string; broker_message_id: string; history_id: number }>(
      `SELECT d.client_message_id AS id, d.broker_message_id, h.history_id::int AS history_id
       FROM mesh.client_message_dedupe d
       JOIN mesh.message_history h ON h.mesh_id = d.mesh_id AND h.broker_message_id = d.broker_message_id
         AND h.client_message_id = d.client_message_id AND h.sender_pubkey = d.sender_pubkey
       JOIN (SELECT mesh_id, id, client_message_id, history_id FROM mesh.topic_message
         UNION ALL SELECT mesh_id, id, client_message_id, history_id FROM mesh.message_queue) AS m
         ON m.mesh_id = d.mesh_id AND m.id = d.broker_message_id AND m.history_id = h.history_id`,
    );
    const byId = new Map(rows.map((row) => [row.id, row]));
    return ids.map((id) => {
      const row = byId.get(id);
      return row && { brokerMessageId: row.broker_message_id, historyId: row.history_id };
    });
  }

  async function audit(
    sends: readonly LoadSend[],
    members: readonly TestMember[],
    receivers: readonly LoadReceiver[],
  ): Promise<number> {
    const stored = await count("client_message_dedupe");
    expect(await count("message_history")).toBe(stored);
    expect((await count("topic_message")) + (await count("message_queue"))).toBe(stored);
    const { rows: ids } = await admin.query<{ id: number }>(
      "SELECT history_id::int AS id FROM mesh.message_history ORDER BY history_id",
    );
    expect(ids.every(({ id }, index) => id === index + 1)).toBe(true);

    const answered = sends.filter((send) => send.answered !== undefined);
    const accepted = await readAccepted(answered.map((send) => send.id));
    const wrong = answered.filter((send, index) => {
      const row = accepted[index];
      return row?.brokerMessageId !== send.answered?.brokerMessageId || row?.historyId !== send.answered?.historyId;
    });
    expect(wrong.map((send) => send.id)).toEqual([]);

    const bodies = new Map(sends.map((send) => [send.id, send.body]));
    for (const [index, receiver] of receivers.entries()) {
      const { rows } = await admin.query<{ id: number; client_id: string }>(
        `SELECT d.history_id::int AS id, h.client_message_id AS client_id FROM mesh.delivery_queue d
         JOIN mesh.message_history h ON h.mesh_id = d.mesh_id AND h.history_id = d.history_id
         WHERE d.recipient_pubkey = $1 AND d.outcome = 'delivered' ORDER BY d.history_id`,
        [members[index]?.pubkey],
      );
      const got = [...receiver.received].sort(([a], [b]) => a - b);
      expect(got.map(([id, { clientMessageId }]) => [id, clientMessageId])).toEqual(
        rows.map((row) => [row.id, row.client_id]),
      );
      expect(got.filter(([, { clientMessageId, body }]) => bodies.get(clientMessageId) !== body)).toEqual([]);
      expect(receiver.misordered).toEqual([]);
    }
    return stored;
  }
});
