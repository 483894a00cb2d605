// Spaces over real sockets: the link's wire and the browser's, against a real broker; and the task board of the examples.
import { connectSpaces, type SpaceClient } from "@claudemesh/client/space";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fillBoard, type Task, workThrough } from "../examples/task-board/board.ts";
import { createTestMesh, joinTestMesh, startTestBroker, type TestMember } from "./support/broker-harness.ts";

const clients: SpaceClient[] = [];
let ann: TestMember;
let ben: TestMember;
let stopBroker: () => Promise<void>;

beforeEach(async () => {
  const broker = await startTestBroker();
  stopBroker = broker.stop;
  ann = await createTestMesh(broker, "acme", "ann");
  ben = await joinTestMesh(ann, "ben");
});
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  await stopBroker();
});

const signer =
  ({ keys }: TestMember) =>
  (bytes: Uint8Array) =>
    new Uint8Array(Buffer.from(keys.sign(bytes), "hex"));

function connect(member: TestMember): SpaceClient {
  const identity = { meshId: member.meshId, publicKey: member.pubkey, sign: signer(member) };
  const client = connectSpaces({
    url: member.url,
    identity,
    agent: "task-board-test/1",
    backoff: { minMs: 1, maxMs: 20 },
  });
  clients.push(client);
  return client;
}

describe("the task board", () => {
  it("gives every task to one agent, and announces it once", async () => {
    await ann.call("POST", "/topics", { name: "board" });
    await ann.call("PUT", "/topics/board/subscription");
    const titles = Array.from({ length: 12 }, (_, n) => `task ${n}`);
    const board = await connect(ann).space("board", { create: true });
    const other = await connect(ben).space("board");
    await fillBoard(board, titles);
    await fillBoard(other, titles);
    const done = await Promise.all([
      workThrough(board, "ann", { topic: "board" }),
      workThrough(other, "ben", { topic: "board" }),
    ]);
    expect(done.flat().sort()).toEqual(titles.map((_, n) => `task:${String(n + 1).padStart(4, "0")}`));
    const { items } = await board.query({ prefix: "task:" });
    expect(items.map(({ document }) => (document as Task).value.done)).toEqual(titles.map(() => true));
    const { body } = await ann.call("GET", "/history?topic=board&limit=100");
    const announced = (body.items as { client_message_id: string }[]).map((item) => item.client_message_id);
    expect(announced.sort()).toEqual(
      done
        .flat()
        .sort()
        .map((id) => `done-${id}`),
    );
  });
});

describe("a link", () => {
  it("carries what others commit to subscribers", async () => {
    const a = await connect(ann).space("plan", { create: true });
    const b = await connect(ben).space("plan");
    const heard = new Promise((resolve) => b.subscribe("task:1", (document, cause) => resolve([cause, document])));
    await a.transact((tx) => tx.set("task:1", { value: { n: 1n } }));
    expect(await heard).toEqual(["integrate", { value: { n: 1n } }]);
  });

  it("to a broker that refuses the member ends loudly", async () => {
    const stranger = { ...ann, meshId: ann.meshId, pubkey: "0".repeat(64), keys: ben.keys, url: ann.url } as TestMember;
    await expect(connect(stranger).space("plan")).rejects.toMatchObject({ name: "ConnectionStoppedError" });
  });
});
