// Brokers side by side on one PostgreSQL database and one Redis, as processes: what is accepted by one is pushed
// through another at once, races end as on one broker, and what is lost with Redis comes back without a restart.
import pg from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { callBroker, joinTestMesh, type TestMember } from "./support/broker-harness.ts";
import type { BrokerProcess } from "./support/broker-process.ts";
import { Brokers, createMeshOn } from "./support/brokers.ts";
import { RestartableRedis } from "./support/restartable-redis.ts";
import { createTestDatabase } from "./support/services.ts";
import { until } from "./support/world.ts";

const database = await createTestDatabase("brokers");
const redis = database === undefined ? undefined : await RestartableRedis.create();
afterAll(async () => {
  await database?.drop();
  await redis?.stop();
});

/** Long enough that within a test nothing but a signal can wake a connection. */
const noSweep = ["--delivery-sweep-seconds", "86400"];

describe.skipIf(redis === undefined)("brokers side by side", () => {
  const urls = { databaseUrl: database?.url ?? "", redisUrl: redis?.url ?? "" };
  const admin = new pg.Client({ connectionString: urls.databaseUrl });
  const brokers = new Brokers({ ...urls, flags: [...noSweep, "--rate-limit", "1000000/60s"] });
  let [a, b, c]: BrokerProcess[] = [];
  let meshes = 0;

  beforeAll(async () => {
    await admin.connect();
    // At once: they migrate the same empty database and make the same admin token.
    [a, b, c] = await Promise.all([brokers.add(), brokers.add(), brokers.add()]);
  });
  afterAll(async () => {
    await brokers.end();
    await admin.end();
  });

  async function makeMesh(): Promise<{ alice: TestMember; bob: TestMember }> {
    if (a === undefined) throw new Error("the brokers have not started");
    meshes += 1;
    const alice = await createMeshOn(brokers, a, `mesh-${meshes}`);
    const bob = await joinTestMesh(alice, "bob");
    await alice.token();
    await bob.token();
    return { alice, bob };
  }

  async function connectAt(member: TestMember, broker: BrokerProcess | undefined) {
    member.url = broker?.url ?? "";
    return member.connect();
  }

  const sendThrough = (
    broker: BrokerProcess | undefined,
    member: TestMember,
    id: string,
    to: TestMember,
    body = "hi",
  ) => {
    member.url = broker?.url ?? "";
    return member.send(id, to, body);
  };

  const hi = Buffer.from("hi").toString("base64");

  test("a message accepted by one is pushed through another by its signal alone, and settled there", async () => {
    const { alice, bob } = await makeMesh();
    const receiver = await connectAt(bob, b);
    for (const [id, through] of [["m1", a] as const, ["m2", c] as const, ["m3", b] as const]) {
      expect(await sendThrough(through, alice, id, bob)).toMatchObject({ status: 201 });
      const pushed = await receiver.nextPush();
      expect(pushed).toMatchObject({ client_message_id: id, sender_pubkey: alice.pubkey, body_base64: hi });
      await receiver.ack(pushed.history_id);
    }
    const { rows } = await admin.query("SELECT outcome FROM mesh.delivery_queue WHERE mesh_id = $1", [bob.meshId]);
    expect(rows).toEqual(Array(3).fill({ outcome: "delivered" }));
  });

  test("a topic reaches its subscribers on every broker", async () => {
    const { alice, bob } = await makeMesh();
    const carol = await joinTestMesh(alice, "carol");
    await carol.token();
    await alice.call("POST", "/topics", { name: "news" });
    for (const member of [bob, carol]) await member.call("PUT", "/topics/news/subscription");
    const receivers = [await connectAt(bob, b), await connectAt(carol, c)];
    alice.url = a?.url ?? "";
    const destination = { kind: "topic", ref: "news" };
    const sent = await alice.call("POST", "/messages", { client_message_id: "m1", destination, body: "read all" });
    expect(sent.status).toBe(201);
    for (const receiver of receivers) expect(await receiver.nextPush()).toMatchObject({ body: "read all" });
  });

  test("one id raced for through all of them is accepted once; exact retries are duplicates, others conflicts", async () => {
    const { alice, bob } = await makeMesh();
    const through = [a, b, c];
    const token = await alice.token();
    const post = (n: number, body: string) =>
      callBroker(through[n % 3]?.url ?? "", "POST", `/v1/meshes/${alice.mesh}/messages`, {
        token,
        body: { client_message_id: "raced", destination: { kind: "dm", ref: bob.pubkey }, envelope_version: "2", body },
      });
    const same = await Promise.all(Array.from({ length: 30 }, (_, n) => post(n, "same")));
    expect(same.map(({ status }) => status).sort()).toEqual([...Array(29).fill(200), 201]);
    expect(new Set(same.map(({ body }) => body.broker_message_id)).size).toBe(1);
    const other = await Promise.all(Array.from({ length: 6 }, (_, n) => post(n, "other")));
    for (const { status, body } of other) {
      expect([status, body.conflict]).toEqual([409, "request_fingerprint_mismatch"]);
    }
    const { rows } = await admin.query("SELECT 1 FROM mesh.message_history WHERE mesh_id = $1", [alice.meshId]);
    expect(rows).toHaveLength(1);
  });

  test("history read forward through one of them misses nothing that the others commit meanwhile", async () => {
    const { alice, bob } = await makeMesh();
    const through = [a, b, c];
    const [token, reading] = [await alice.token(), await bob.token()];
    const total = 240;
    let sent = 0;
    const senders = Array.from({ length: 12 }, async (_, sender) => {
      while (sent < total) {
        sent += 1;
        const destination = { kind: "dm", ref: bob.pubkey };
        const body = { client_message_id: `m${sent}`, destination, envelope_version: "2", body: "x" };
        const url = through[sender % 3]?.url ?? "";
        const { status } = await callBroker(url, "POST", `/v1/meshes/${alice.mesh}/messages`, { token, body });
        expect(status).toBe(201);
      }
    });
    const seen: number[] = [];
    let pages = 0;
    await until("everything is read", async () => {
      const path = `/v1/meshes/${bob.mesh}/history?after=${seen.at(-1) ?? 0}`;
      const { body } = await callBroker(b?.url ?? "", "GET", path, { token: reading });
      const items = body.items as { history_id: number }[];
      if (items.length > 0) pages += 1;
      seen.push(...items.map((item) => item.history_id));
      return seen.length >= total;
    });
    await Promise.all(senders);
    expect(seen).toEqual(Array.from({ length: total }, (_, index) => index + 1));
    // Read in one go after the end, it would prove nothing.
    expect(pages).toBeGreaterThan(3);
  });

  test("the newer daemon of a member takes the place of the older one on another broker", async () => {
    const { bob } = await makeMesh();
    const older = await connectAt(bob, a);
    const newer = await connectAt(bob, b);
    expect(await older.closed).toEqual({ code: 4003, reason: "replaced_by_newer" });
    expect((await newer.request("history")).status).toBe(200);
  });

  test("a member revoked through one of them is cut off at another", async () => {
    const { alice, bob } = await makeMesh();
    const connected = await connectAt(bob, b);
    alice.url = a?.url ?? "";
    expect(await alice.call("DELETE", `/members/${bob.pubkey}`)).toMatchObject({ status: 200 });
    expect(await connected.closed).toMatchObject({ code: 4005 });
  });

  test("a send that one of them holds past its look-up is refused after its id was fenced through another", async () => {
    const { alice, bob } = await makeMesh();
    const holding = await brokers.add({ CLAUDEMESH_FAILPOINTS: "accept.after_b0=delay:5000" });
    onTestFinished(() => holding.kill());
    const lookUps = async () => {
      const { rows } = await admin.query<{ n: number }>(
        `SELECT count(*)::int AS n FROM pg_stat_activity
         WHERE datname = current_database() AND query LIKE '%AS k (mesh_id, client_message_id, n)%'
           AND state = 'idle' AND pid <> pg_backend_pid()`,
      );
      return rows[0]?.n ?? 0;
    };
    const before = await lookUps();
    const sending = sendThrough(holding, alice, "held", bob);
    await until("the send is past its look-up", async () => (await lookUps()) > before);
    alice.url = b?.url ?? "";
    const fence = await alice.call("POST", "/messages/by-client-id/held/fence", { fingerprint: "ab".repeat(32) });
    expect(fence).toMatchObject({ status: 200, body: { fate: "fenced" } });
    expect(await sending).toMatchObject({ status: 409, body: { error: "fenced" } });
  });

  test.each([
    ["accept.before_commit", 201],
    ["accept.after_commit", 200],
  ] as const)("a broker that dies at %s is survived by another: the retry there answers %i", async (point, status) => {
    const { alice, bob } = await makeMesh();
    const dying = await brokers.add({ CLAUDEMESH_FAILPOINTS: `${point}=crash` });
    onTestFinished(() => dying.kill());
    await expect(sendThrough(dying, alice, point, bob)).rejects.toThrow();
    expect((await dying.process.exited).signal).toBe("SIGKILL");
    expect(await sendThrough(b, alice, point, bob)).toMatchObject({ status, body: { history_id: 1 } });
  });

  describe("while Redis is away", () => {
    const open = new Brokers({ ...urls, flags: ["--delivery-sweep-seconds", "1", "--limiter-open"] });
    let openBrokers: BrokerProcess[] = [];
    beforeAll(async () => {
      openBrokers = await Promise.all([open.add(), open.add()]);
    });
    afterAll(() => open.end());

    async function takeRedisAway(noticedBy: readonly (BrokerProcess | undefined)[], path: string, status: number) {
      onTestFinished(() => redis?.start());
      await redis?.stop();
      for (const broker of noticedBy) {
        await until("the loss shows", async () => (await callBroker(broker?.url ?? "", "GET", path)).status === status);
      }
    }

    test("new ids are refused with 503, retries get their 200, nothing is lost, and its return is enough", async () => {
      const { alice, bob } = await makeMesh();
      const receiver = await connectAt(bob, b);
      const first = await sendThrough(a, alice, "m1", bob);
      expect(first.status).toBe(201);
      await receiver.ack((await receiver.nextPush()).history_id);

      await takeRedisAway([a, b], "/readyz", 503);
      const notReady = await callBroker(a?.url ?? "", "GET", "/readyz");
      expect(notReady.body).toMatchObject({ error: "limiter_unavailable", retryable: true });
      const answers = await Promise.all(["m2", "m3", "m4"].map((id) => sendThrough(a, alice, id, bob)));
      for (const { status, body } of answers) expect([status, body.error]).toEqual([503, "limiter_unavailable"]);
      for (const broker of [a, b]) {
        const retry = await sendThrough(broker, alice, "m1", bob);
        expect(retry).toMatchObject({ status: 200, body: { ...first.body, duplicate: true } });
      }

      await redis?.start();
      await until("a is ready again", async () => (await callBroker(a?.url ?? "", "GET", "/readyz")).status === 200);
      for (const id of ["m2", "m3", "m4"]) expect(await sendThrough(a, alice, id, bob)).toMatchObject({ status: 201 });
      // Signals are back as well, or the receiver on the other broker would hear nothing.
      await until("all of them arrive", async () => {
        await sendThrough(a, alice, `nudge-${performance.now()}`, bob);
        return receiver.arrived.filter((frame) => frame.type === "message").length >= 3;
      });
    });

    test("an open limiter lets new ids pass, and what no signal tells of is found by the sweep", async () => {
      const { alice, bob } = await makeMesh();
      const [one, two] = openBrokers;
      const receiver = await connectAt(bob, two);
      await takeRedisAway([a], "/readyz", 503);
      expect((await callBroker(one?.url ?? "", "GET", "/readyz")).status).toBe(200);
      expect(await sendThrough(one, alice, "m1", bob)).toMatchObject({ status: 201 });
      expect(await receiver.nextPush()).toMatchObject({ client_message_id: "m1" });
      expect(one?.process.stderr).toContain("limiter_open_passed");
    });
  });
});
