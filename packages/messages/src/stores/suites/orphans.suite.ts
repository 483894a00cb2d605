// The orphan check: nothing is found in a store that has seen all kinds of traffic, and every rule that a
// statement breaks is named.
import { describe, expect, test } from "vitest";
import type { ForgetStep } from "../../ports/housekeeping.ts";
import { checkAllOrphans, type OrphanReport, orphanCheckNames } from "../../services/check-orphans.ts";
import { sweepAll } from "../../services/sweep.ts";
import { dm, queue, send, topic, type World } from "./world.ts";

const dayMs = 86_400_000;

type Members = { readonly alice: string; readonly bob: string; readonly carol: string };

/** Every table has a row, and every rule something to look at. */
async function fillWorld(world: World): Promise<Members> {
  const [alice, bob, carol] = await world.threeMembers();
  const { meshId, store } = world;
  await world.accept(alice, send("old-1", dm(bob)));
  world.nowMs += 10 * dayMs;
  await sweepAll({
    store,
    nowMs: () => world.nowMs,
    messageRetentionMs: dayMs,
    dedupeRetentionMs: undefined,
  });
  await world.addTopic("news", [bob, carol]);
  world.nowMs += 2 * dayMs;
  await world.query(`UPDATE ${world.table("member")} SET role = 'owner' WHERE pubkey = '${alice}'`);
  const webhook = { meshId, id: "ci", incarnation: "one", url: "https://receiver.example/hook", topics: undefined };
  const secrets = { secret: "s".repeat(16), fingerprint: Buffer.alloc(32, 1), createdBy: alice };
  await store.webhooks.create({ ...webhook, ...secrets }, world.nowMs, 10);
  await world.accept(alice, { ...send("dm-1", dm(bob), "words"), meta: { mentions: [bob] } });
  await world.accept(alice, { ...send("topic-1", topic("news"), "words"), meta: { mentions: [carol] } });
  await world.addQueue("jobs");
  for (const id of ["acked", "leased", "ready"]) await world.accept(alice, send(id, queue("jobs")));
  const lease = { meshId, queue: "jobs", holder: bob, max: 1, leaseSeconds: 3600 };
  const first = await store.queues.lease({ ...lease, leaseRequestId: "r1", leaseToken: "t1" }, world.nowMs);
  const brokerMessageIds = first.type === "leased" ? first.items.map((item) => item.broker_message_id) : [];
  await store.queues.settle({ ...lease, leaseToken: "t1", brokerMessageIds, settlement: "acked" }, world.nowMs);
  await store.queues.lease({ ...lease, leaseRequestId: "r2", leaseToken: "t2" }, world.nowMs);
  await world.fence(alice, send("fenced", dm(bob)));
  await store.presence.hold([{ meshId, pubkey: bob, connectionId: "c" }], world.nowMs, world.nowMs + dayMs);
  await store.presence.setProfile(meshId, bob, { title: "x" }, world.nowMs);
  while (await store.search.indexNext(world.nowMs));
  while (await store.housekeeping.countNext());
  while (await store.webhooks.writeNext(world.nowMs));
  const someBytes = `SELECT '${meshId}', request_fingerprint FROM ${world.table("client_message_dedupe")} LIMIT 1`;
  await world.query(`INSERT INTO ${world.table("member_token")} (mesh_id, token_hash, id, pubkey, label, created_at)
    ${someBytes.replace("fingerprint FROM", `fingerprint, 'token-1', '${bob}', 'x', 1 FROM`)}`);
  await world.query(`INSERT INTO ${world.table("invite")} (mesh_id, secret_hash, id, created_by, created_at, expires_at)
    ${someBytes.replace("fingerprint FROM", `fingerprint, 'invite-1', '${alice}', 1, 2 FROM`)}`);
  return { alice, bob, carol };
}

type Break = (world: World, members: Members) => string;
const inTable =
  (text: string): Break =>
  (world) =>
    text.replaceAll(/\[(\w+)\]/g, (_, name: string) => world.table(name));
const historyIdOf = (id: string) => `(SELECT history_id FROM [message_history] WHERE client_message_id = '${id}')`;

/** A statement that breaks a rule, by the name of that rule. */
const breaks: Record<(typeof orphanCheckNames)[number] | "rows_without_mesh", Break> = {
  rows_without_mesh: inTable(`INSERT INTO [topic] (mesh_id, name, post_policy, created_by, created_at)
    VALUES ('mesh-lost', 'x', 'members', 'x', 1)`),
  dedupe_without_message: inTable("DELETE FROM [topic_message]"),
  dedupe_denies_message: inTable(
    "UPDATE [client_message_dedupe] SET history_available = false WHERE client_message_id = 'dm-1'",
  ),
  dedupe_without_history: inTable(
    "UPDATE [message_history] SET destination_ref = 'x' WHERE client_message_id = 'topic-1'",
  ),
  history_without_dedupe: inTable("DELETE FROM [client_message_dedupe] WHERE client_message_id = 'dm-1'"),
  history_of_nothing: inTable("DELETE FROM [client_message_dedupe] WHERE client_message_id = 'old-1'"),
  history_without_member: inTable("UPDATE [message_history] SET sender_pubkey = 'x' WHERE client_message_id = 'dm-1'"),
  history_beyond_counter: inTable("DELETE FROM [mesh_history_counter]"),
  direct_message_without_delivery: inTable(`DELETE FROM [delivery_queue] WHERE history_id = ${historyIdOf("dm-1")}`),
  queued_history_without_queue_message: inTable("DELETE FROM [queue_message] WHERE state = 'ready'"),
  topic_message_without_history: inTable("UPDATE [topic_message] SET topic = 'x'"),
  topic_message_passed_over: inTable(`UPDATE [mesh_housekeeping] SET removed_up_to = ${historyIdOf("topic-1")}`),
  message_queue_without_history: inTable("UPDATE [message_queue] SET history_id = 99 WHERE client_message_id = 'dm-1'"),
  message_queue_passed_over: inTable(`UPDATE [mesh_housekeeping] SET removed_up_to = ${historyIdOf("dm-1")}`),
  topic_message_without_delivery: (world, members) =>
    inTable(`DELETE FROM [delivery_queue] WHERE history_id = ${historyIdOf("topic-1")}
      AND recipient_pubkey = '${members.carol}'`)(world, members),
  topic_message_without_mention: inTable(`DELETE FROM [mention_index] WHERE history_id = ${historyIdOf("topic-1")}`),
  message_queue_without_mention: inTable(`DELETE FROM [mention_index] WHERE history_id = ${historyIdOf("dm-1")}`),
  delivery_without_history: inTable(`UPDATE [delivery_queue] SET history_id = 99
    WHERE history_id = ${historyIdOf("dm-1")}`),
  delivery_not_addressed: (world, { carol }) =>
    inTable(`UPDATE [delivery_queue] SET recipient_pubkey = '${carol}'
      WHERE history_id = ${historyIdOf("dm-1")}`)(world, { alice: "", bob: "", carol }),
  delivery_without_member: (world, members) =>
    inTable(`UPDATE [delivery_queue] SET recipient_pubkey = 'x'
      WHERE recipient_pubkey = '${members.carol}'`)(world, members),
  unsettled_delivery_without_message: inTable("DELETE FROM [message_queue] WHERE client_message_id = 'dm-1'"),
  mention_without_message: inTable("UPDATE [mention_index] SET history_id = 99"),
  search_row_without_message: inTable("DELETE FROM [topic_message]"),
  queue_message_without_history: inTable("UPDATE [queue_message] SET history_id = 99 WHERE state = 'ready'"),
  queue_message_without_queue: inTable("DELETE FROM [queue]"),
  waiting_queue_message_without_message: inTable("DELETE FROM [message_queue] WHERE client_message_id = 'ready'"),
  leased_message_without_lease: inTable("DELETE FROM [queue_lease] WHERE lease_token = 't2'"),
  acked_message_without_settlement: inTable("DELETE FROM [queue_settlement]"),
  settlement_without_queue_message: inTable("UPDATE [queue_settlement] SET history_id = 99"),
  lease_without_queue: inTable("UPDATE [queue_lease] SET queue = 'x'"),
  lease_without_member: inTable("UPDATE [queue_lease] SET holder_pubkey = 'x'"),
  subscription_without_topic: inTable("DELETE FROM [topic]"),
  subscription_without_member: (world, members) =>
    inTable(`UPDATE [topic_subscription] SET member_pubkey = 'x'
      WHERE member_pubkey = '${members.bob}'`)(world, members),
  presence_without_member: inTable("UPDATE [presence_lease] SET member_pubkey = 'x'"),
  profile_without_member: inTable("UPDATE [member_profile] SET member_pubkey = 'x'"),
  fence_of_committed_id: inTable("UPDATE [client_message_fence] SET client_message_id = 'dm-1'"),
  fence_without_member: inTable("UPDATE [client_message_fence] SET sender_pubkey = 'x'"),
  token_without_member: inTable("UPDATE [member_token] SET pubkey = 'x'"),
  invite_without_member: inTable("UPDATE [invite] SET used_by = 'x'"),
  webhook_without_member: inTable("UPDATE [webhook] SET created_by = 'x'"),
  webhook_delivery_without_webhook: inTable("UPDATE [webhook] SET incarnation = 'x'"),
  webhook_delivery_without_history: inTable("UPDATE [webhook_delivery] SET broker_message_id = 'broker-lost'"),
  webhook_cursor_ahead: inTable("UPDATE [webhook] SET written_up_to = 99"),
  history_counter_behind: inTable("UPDATE [mesh_history_counter] SET last_history_id = 1"),
  search_cursor_ahead: inTable("UPDATE [message_search_cursor] SET indexed_up_to = 99"),
  rate_cursor_ahead: inTable("UPDATE [rate_limit_counter_cursor] SET counted_up_to = 99"),
  retention_cursor_ahead: inTable("UPDATE [mesh_housekeeping] SET removed_up_to = 99"),
};

const checkWorld = (world: World): Promise<OrphanReport> =>
  checkAllOrphans({ store: world.store, nowMs: () => world.nowMs });
const named = ({ checks }: OrphanReport) => checks.filter(({ found }) => found > 0).map(({ name }) => name);

/** Members who read the topic, the mesh's others among them. */
async function addSubscribers(world: World, name: string, count: number): Promise<void> {
  const { meshId } = world;
  const tuples = Array.from({ length: count }, (_, n) => `('${meshId}', 'reader-${n}', 'm', 'member', 1)`);
  const member = world.table("member");
  await world.query(`INSERT INTO ${member} (mesh_id, pubkey, name, role, joined_at) VALUES ${tuples.join(", ")}`);
  await world.addTopic(name);
  await world.query(`INSERT INTO ${world.table("topic_subscription")} (mesh_id, topic, member_pubkey, subscribed_at)
    SELECT mesh_id, '${name}', pubkey, joined_at FROM ${member} WHERE mesh_id = '${meshId}'`);
}

/** One world for each rule: this takes a while. */
export function describeBreaking(world: () => World): void {
  test.for(Object.entries(breaks))("names %s where a statement has broken it", async ([name, breakRule]) => {
    const members = await fillWorld(world());
    await world().query(breakRule(world(), members));
    const report = await checkWorld(world());
    expect(named(report)).toContain(name);
    const finding = report.checks.find((each) => each.name === name);
    expect(finding?.examples.length).toBeGreaterThan(0);
    expect(finding?.examples[0]).toContain(name === "rows_without_mesh" ? "topic/" : world().meshId);
    expect(report.ok).toBe(false);
  });
}

export function describeOrphans(world: () => World): void {
  const check = () => checkWorld(world());
  describe("the orphan check", () => {
    test("finds nothing after all kinds of traffic, and has looked at rows for every rule", async () => {
      await fillWorld(world());
      const report = await check();
      expect(named(report)).toEqual([]);
      expect(report).toMatchObject({ ok: true, found: 0, meshes: 1 });
      expect(report.checks.filter(({ rows, name }) => rows === 0 && name !== "rows_without_mesh")).toEqual([]);
      expect(report.checks.map(({ name }) => name)).toEqual(["rows_without_mesh", ...orphanCheckNames]);
    });

    test("goes through tables that are larger than a page, and counts every row once", async () => {
      const [alice, bob] = await world().threeMembers();
      await Promise.all(Array.from({ length: 450 }, (_, n) => world().accept(alice, send(`m${n}`, dm(bob)))));
      await world().query(`DELETE FROM ${world().table("client_message_dedupe")} WHERE client_message_id LIKE 'm1%'`);
      const { checks } = await check();
      const byName = new Map(checks.map((each) => [each.name, each]));
      expect(byName.get("history_without_dedupe")).toMatchObject({ rows: 450, found: 111, invariant: "MSG-2" });
      expect(byName.get("history_without_dedupe")?.examples).toHaveLength(10);
      expect(byName.get("delivery_without_history")).toMatchObject({ rows: 450, found: 0 });
      expect(byName.get("dedupe_without_message")).toMatchObject({ rows: 339, found: 0 });
    });

    test("finds nothing where a clock was put back after ids were forgotten", async () => {
      const [alice, bob] = await world().threeMembers();
      await world().accept(alice, send("m1", dm(bob)), { dedupeRetentionMs: 7 * dayMs });
      world().nowMs += 7 * dayMs;
      const { store, nowMs } = world();
      await sweepAll({ store, nowMs: () => nowMs, messageRetentionMs: undefined, dedupeRetentionMs: 7 * dayMs });
      expect(await world().effects()).toMatchObject({ dedupe: 0, history: 1 });
      world().nowMs -= dayMs / 2;
      expect(named(await check())).toEqual([]);
    });

    test("finds nothing where a webhook goes through history again, also through what retention removed", async () => {
      await fillWorld(world());
      const { meshId, store, nowMs } = world();
      expect(await store.webhooks.replayFrom(meshId, "ci", 1)).toBe(true);
      expect(named(await check())).toEqual([]);
      while (await store.webhooks.writeNext(nowMs));
      const terms = { messageRetentionMs: dayMs, dedupeRetentionMs: 7 * dayMs };
      await sweepAll({ store, nowMs: () => nowMs + 400 * dayMs, ...terms });
      expect(await world().effects()).toMatchObject({ message: 0, history: 0 });
      expect(await store.webhooks.replayFrom(meshId, "ci", 1)).toBe(true);
      expect(named(await check())).toEqual([]);
    });

    test("finds nothing where subscribers came, left or were revoked, and where clocks were a little apart", async () => {
      const [alice, bob, carol] = await world().threeMembers();
      await world().addTopic("news", [alice, bob, carol]);
      const { meshId, store } = world();
      world().nowMs += 2 * dayMs;
      await world().revoke(carol);
      await store.topics.unsubscribe(meshId, "news", bob);
      await world().accept(alice, send("m1", topic("news")));
      await store.topics.subscribe(meshId, "news", bob, world().nowMs - dayMs);
      await world().accept(bob, send("m2", topic("news")));
      expect(await world().effects()).toMatchObject({ message: 2, delivery: 1 });
      expect(named(await check())).toEqual([]);
    });

    test("finds nothing where a message to very many is on its way out, its deliveries before it", async () => {
      const alice = await world().addMember();
      await addSubscribers(world(), "news", 2_500);
      world().nowMs += 2 * dayMs;
      await world().accept(alice, send("m1", topic("news")), { dedupeRetentionMs: 7 * dayMs });
      world().nowMs += 8 * dayMs;
      const { store, meshId, nowMs } = world();
      await sweepAll({ store, nowMs: () => nowMs, messageRetentionMs: undefined, dedupeRetentionMs: 7 * dayMs });
      const terms = { nowMs, messagesBeforeMs: nowMs - dayMs, forgetIds: true, leasesBeforeMs: undefined };
      const left: number[] = [];
      let more = true;
      while (more) {
        ({ more } = await store.housekeeping.sweepMesh(meshId, terms));
        expect(named(await check())).toEqual([]);
        left.push((await world().effects()).delivery);
      }
      expect(left.some((deliveries) => deliveries > 0 && deliveries < 2_500)).toBe(true);
      expect(await world().effects()).toMatchObject({ message: 0, history: 0, delivery: 0 });
    });

    describe("finds nothing between steps of which one ends with the last delivery of a message", () => {
      // Together as many deliveries as a step of SQLite takes.
      const fill = async () => {
        const [alice, bob] = await world().threeMembers();
        await addSubscribers(world(), "news", 509);
        for (const [id, to] of Object.entries({ "m-1": topic("news"), "m-2": dm(bob) })) {
          await world().accept(alice, send(id, to), { dedupeRetentionMs: 7 * dayMs });
        }
        expect((await world().effects()).delivery).toBe(512);
        world().nowMs += 8 * dayMs;
        return { meshId: world().meshId, store: world().store, nowMs: () => world().nowMs };
      };

      test("where ids are forgotten", async () => {
        const { store, meshId, nowMs } = await fill();
        await sweepAll({ store, nowMs, messageRetentionMs: dayMs, dedupeRetentionMs: undefined });
        let after: string | undefined = "";
        while (after !== undefined) {
          const step: ForgetStep = await store.housekeeping.forgetIds(meshId, after, nowMs());
          after = step.next;
          expect(named(await check())).toEqual([]);
        }
        expect(await world().effects()).toMatchObject({ dedupe: 0, history: 0, delivery: 0 });
      });

      test("where messages go whose ids are forgotten", async () => {
        const { store, meshId, nowMs } = await fill();
        await sweepAll({ store, nowMs, messageRetentionMs: undefined, dedupeRetentionMs: 7 * dayMs });
        const terms = { nowMs: nowMs(), messagesBeforeMs: nowMs() - dayMs, forgetIds: true, leasesBeforeMs: undefined };
        let more = true;
        while (more) {
          ({ more } = await store.housekeeping.sweepMesh(meshId, terms));
          expect(named(await check())).toEqual([]);
        }
        expect(await world().effects()).toMatchObject({ message: 0, history: 0, delivery: 0 });
      });
    });

    test("finds nothing while accepts and sweeps go on beside it", async () => {
      const [alice, bob] = await world().threeMembers();
      await Promise.all(Array.from({ length: 200 }, (_, n) => world().accept(alice, send(`old-${n}`, dm(bob)))));
      world().nowMs += 366 * dayMs;
      const other = await world().openAnother();
      const sweeping = sweepAll({
        store: other,
        nowMs: () => world().nowMs,
        messageRetentionMs: dayMs,
        dedupeRetentionMs: 365 * dayMs,
      });
      const accepting = Promise.all(
        Array.from({ length: 200 }, (_, n) => world().accept(alice, send(`new-${n}`, dm(bob)))),
      );
      expect(named(await check())).toEqual([]);
      await Promise.all([sweeping, accepting]);
      expect(named(await check())).toEqual([]);
    });

    test("of one night is claimed once for each mesh", async () => {
      const claims = await Promise.all(
        Array.from({ length: 5 }, () => world().store.orphans.claim(world().meshId, world().nowMs, world().nowMs - 1)),
      );
      expect(claims.filter((claimed) => claimed)).toHaveLength(1);
      world().nowMs += dayMs;
      expect(await world().store.orphans.claim(world().meshId, world().nowMs, world().nowMs - dayMs)).toBe(false);
      expect(await world().store.orphans.claim(world().meshId, world().nowMs, world().nowMs - 1)).toBe(true);
    });
  });
}
