// A broker whose host's clock is set back by two days while it runs, or while it does not: what was lent for a while comes
// back after that while, and not two days later.
import { expect, onTestFinished, test, vi } from "vitest";
import {
  createTestMesh,
  joinTestMesh,
  makeTemporaryFolder,
  startTestBroker,
  type TestMember,
} from "../../../tests/support/broker-harness.ts";
import { WebhookReceiver } from "../../../tests/support/webhook-receiver.ts";

const twoDaysMs = 2 * 86_400_000;

/** Two clocks of one host, which the test sets. */
function hostTime(startMs = Date.now()) {
  let wallMs = startMs;
  let monotonicMs = 0;
  return {
    sources: { wallMs: () => wallMs, monotonicMs: () => monotonicMs },
    pass: (ms: number) => {
      wallMs += ms;
      monotonicMs += ms;
    },
    setBack: () => {
      wallMs -= twoDaysMs;
    },
    wallMs: () => wallMs,
  };
}

async function startMesh(flags = {}) {
  const time = hostTime();
  const folder = makeTemporaryFolder();
  const broker = await startTestBroker({ folder, time: time.sources, flags });
  const alice = await createTestMesh(broker);
  return { time, folder, broker, alice };
}

const inputs_fingerprint = "a".repeat(64);
const claim = (member: TestMember, claim_id: string) =>
  member.call("POST", "/once/k/claim", { claim_id, inputs_fingerprint, lease_s: 60 });
const lease = (member: TestMember, lease_request_id: string) =>
  member.call("POST", "/queues/jobs/lease", { lease_request_id, max: 1, lease_s: 60 });

async function sendJob(member: TestMember) {
  await member.call("POST", "/queues", { id: "jobs" });
  const destination = { kind: "queue", ref: "jobs" };
  await member.call("POST", "/messages", { client_message_id: "m1", destination, body: "work" });
}

test("a queue's lease of a dead worker ends in time, and not before", async () => {
  const { time, alice } = await startMesh();
  await sendJob(alice);
  expect((await lease(alice, "first")).body.items).toHaveLength(1);
  time.setBack();
  time.pass(59_000);
  expect((await lease(alice, "second")).body.items).toHaveLength(0);
  time.pass(10_000);
  expect((await lease(alice, "third")).body.items).toHaveLength(1);
});

test("a dead holder of once is uncertain in time, and not before", async () => {
  const { time, alice } = await startMesh();
  expect((await claim(alice, "c1")).status).toBe(201);
  time.setBack();
  time.pass(59_000);
  expect((await claim(alice, "c2")).body).toMatchObject({ error: "running" });
  time.pass(10_000);
  expect((await claim(alice, "c2")).body).toMatchObject({ error: "uncertain" });
});

test("the presence of a daemon that ended without a word ends in time", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const { time, alice, broker } = await startMesh();
  const bob = await joinTestMesh(alice, "bob");
  await bob.connect();
  const peers = async () => (await alice.call("GET", "/peers")).body.items;
  await vi.waitFor(async () => expect(await peers()).toHaveLength(1));
  time.setBack();
  time.pass(60_000);
  expect(await peers()).toHaveLength(0);
  vi.useRealTimers();
  await broker.stop();
});

test("a webhook is tried again after its pause", async () => {
  const flags = {
    "webhook-allow-private": "true",
    "webhook-backoff-min-ms": "3600000",
    "webhook-backoff-max-ms": "3600000",
  };
  const { time, alice } = await startMesh(flags);
  const receiver = await WebhookReceiver.start((n) => (n === 1 ? 503 : 200));
  onTestFinished(() => receiver.stop());
  await alice.call("POST", "/topics", { name: "news" });
  await alice.call("POST", "/webhooks", { id: "ci", url: receiver.url, topics: ["news"] });
  const destination = { kind: "topic", ref: "news" };
  await alice.call("POST", "/messages", { client_message_id: "m1", destination, body: "x" });
  const deliveries = async () => (await alice.call("GET", "/webhooks/ci/deliveries")).body.items;
  // The pause has been written before the clock is set.
  await vi.waitFor(
    async () => expect(await deliveries()).toMatchObject([{ last_error: expect.stringContaining("503") }]),
    10_000,
  );
  time.setBack();
  time.pass(4_200_000);
  await vi.waitFor(() => expect(receiver.received).toHaveLength(2), 10_000);
});

test("time goes on where it was when the clock is set back while no broker runs", async () => {
  const { time, folder, broker, alice } = await startMesh();
  await sendJob(alice);
  expect((await lease(alice, "first")).body.items).toHaveLength(1);
  await broker.stop();
  const later = hostTime(time.wallMs() - twoDaysMs);
  const next = await startTestBroker({ folder, time: later.sources });
  alice.url = next.url;
  expect((await lease(alice, "second")).body.items).toHaveLength(0);
  later.pass(70_000);
  expect((await lease(alice, "third")).body.items).toHaveLength(1);
});
