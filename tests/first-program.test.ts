// The front door of the SDK, `import { connect } from "@claudemesh/client"`, between two real daemons and a broker.
import { connect, DaemonRefused, DaemonUnreachable, type InboxItem, type MeshConnection } from "@claudemesh/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Peer, World } from "./support/world.ts";

const world = new World();
let peers: readonly Peer[];
let alice: MeshConnection;
let bob: MeshConnection;

beforeAll(async () => {
  peers = await world.startWithPair();
  await Promise.all(peers.map((peer) => peer.start()));
  [alice, bob] = peers.map(({ home, mesh }: Peer) => connect({ home, mesh })) as [MeshConnection, MeshConnection];
});
afterAll(async () => {
  alice.close();
  bob.close();
  await world.end();
});

async function next(from: MeshConnection, wanted: (item: InboxItem) => boolean): Promise<InboxItem> {
  for await (const item of from.inbox({ follow: true, signal: AbortSignal.timeout(30_000) }))
    if (wanted(item)) return item;
  throw new Error("the message did not come");
}

test("a message reaches its peer's inbox, and the reply names what it answers", async () => {
  const sent = await alice.send("@bob", "is 42 ready?", { id: "question-42", priority: "now", meta: { build: 42 } });
  expect(sent).toMatchObject({ client_message_id: "question-42", duplicate: false });
  const question = await next(bob, ({ client_message_id: id }) => id === "question-42");
  expect(question).toMatchObject({ body: "is 42 ready?", sender_name: "alice", priority: "now", meta: { build: 42 } });

  await bob.reply(question, "it is", { id: "answer-42" });
  const answer = await next(alice, ({ client_message_id: id }) => id === "answer-42");
  expect(answer).toMatchObject({ body: "it is", reply_to_id: question.broker_message_id });

  await bob.markRead(question);
  expect(await bob.inbox({ unread: true }).next()).toMatchObject({ done: true });
  expect((await alice.status("question-42")).client_message_id).toBe("question-42");
});

test("the same id is one message, and other content under it is refused", async () => {
  await alice.send("@bob", "once", { id: "same" });
  expect(await alice.send("@bob", "once", { id: "same" })).toMatchObject({ duplicate: true });
  await expect(alice.send("@bob", "twice", { id: "same" })).rejects.toThrow(
    expect.objectContaining({ constructor: DaemonRefused, status: 409 }),
  );
});

test("a send without an id makes one of its own each time", async () => {
  const [first, second] = [await alice.send("@bob", "hello"), await alice.send("@bob", "hello")];
  expect(first.client_message_id).not.toBe(second.client_message_id);
});

test("the reply to a topic's message goes to the topic", async () => {
  const item = { topic: "missing", broker_message_id: "0198f0a0-0000-7000-8000-000000000000" } as InboxItem;
  await expect(alice.reply(item, "heard")).rejects.toThrow(expect.objectContaining({ status: 404 }));
});

test("a daemon that is away is waited for as long as the caller says", async () => {
  await peers[0]?.kill();
  await expect(alice.send("@bob", "hello", { retryForMs: 0 })).rejects.toThrow(DaemonUnreachable);
});
