// A connection cut at each of its frames in turn: what shows in the end, what was shown on the way, and what became of
// every transaction are those of a run that was never cut.
import type { Space, SpaceError } from "@claudemesh/client/space";
import { expect, it } from "vitest";
import { alice, bob, ReplicaWorld } from "./support/replica-world.ts";

type Task = { value: { title: string; owner: string | null; done?: boolean } };
type Outcome = {
  readonly heard: unknown[];
  readonly results: unknown[];
  readonly frames: number;
  readonly cuts: number;
  readonly visible: unknown;
};

async function outcomeOf(work: Promise<{ readonly seq: number; readonly attempts: number }>): Promise<unknown> {
  try {
    const { seq, attempts } = await work;
    return { seq, attempts };
  } catch (error) {
    const { name, attempts } = error as SpaceError;
    return { name, attempts };
  }
}

const claim = (space: Space, id: string, owner: string, retries?: number) =>
  space.transact(
    (tx) => {
      const task = tx.get<Task>(id);
      if (task === undefined) throw new Error("there is no such task");
      tx.patch(id, [{ op: "replace", path: "/value/owner", value: `${owner} after ${task.value.owner}` }]);
    },
    retries === undefined ? {} : { retries },
  );

/** Commits that rest on one another, foreign writes, a conflict that ends and one that is overcome, sends, a deletion. */
async function runStory(cutAt: number | undefined): Promise<Outcome> {
  const world = await ReplicaWorld.start();
  const heard: unknown[] = [];
  const results: unknown[] = [];
  const { space: b } = await world.open(bob);
  await b.transact((tx) => {
    tx.set("task:1", { value: { title: "paint", owner: null } });
    tx.set("list:1", { value: { items: [] } });
  });
  const { space: a, wire } = await world.open(alice, (frame) => frame === cutAt);
  for (const id of ["task:1", "list:1"]) a.subscribe(id, (document, cause) => heard.push([id, cause, document?.value]));
  a.subscribePrefix("note:", (id, document, cause) => heard.push([id, cause, document?.value]));
  await world.rest();

  const note = a.transact((tx) => tx.set("note:1", { value: { n: 1 } }));
  const stacked = [claim(a, "task:1", "alice"), claim(a, "task:1", "alice again"), note];
  const append = (space: Space, item: string) =>
    space.transact((tx) => tx.patch("list:1", [{ op: "add", path: "/value/items/-", value: item }]));
  results.push(...(await Promise.all([...stacked, append(a, "one"), append(a, "two")].map(outcomeOf))));
  await world.rest();

  await b.transact((tx) => tx.patch("task:1", [{ op: "add", path: "/value/title", value: "paint it" }]));
  await append(b, "three");
  await world.rest();

  world.server.isSlow = true;
  await claim(b, "task:1", "bob");
  const doomed = [claim(a, "task:1", "alice", 0), claim(a, "task:1", "alice on that", 0), append(a, "four")];
  results.push(...(await Promise.all(doomed.map(outcomeOf))));
  await world.rest();

  world.server.isSlow = true;
  await claim(b, "task:1", "bob once more");
  const send = { client_message_id: "m-1", destination: { kind: "topic" as const, ref: "news" }, body: "done" };
  const overcome = a.transact((tx) => {
    const task = tx.get<Task>("task:1");
    tx.patch("task:1", [{ op: "add", path: "/value/done", value: task?.value.owner !== null }]);
    tx.send(send);
  });
  results.push(await outcomeOf(overcome));
  await world.rest();

  await b.transact((tx) => tx.delete("task:1"));
  await world.rest();
  results.push(await outcomeOf(a.createBranch("draft").then((result) => ({ ...result, attempts: 1 }))));
  const draft = a.branch("draft");
  draft.subscribe("list:1", (document, cause) => heard.push(["draft list:1", cause, document?.value]));
  await world.rest();
  await draft.transact((tx) =>
    tx.patch("list:1", [{ op: "splice", path: "/value/items", index: 0, remove: 1, add: [] }]),
  );
  await world.rest();
  results.push(await a.merge({ source: "draft" }));
  await world.rest();

  const visible = Object.fromEntries(["task:1", "list:1", "note:1"].map((id) => [id, a.peek(id)]));
  const documents = await world.server.documents();
  for (const [id, document] of Object.entries(visible)) expect(document).toEqual(documents[id]);
  expect(world.server.sent).toEqual(["m-1"]);
  const outcome = {
    heard,
    results,
    visible,
    frames: wire.frames,
    cuts: wire.labels.filter((label) => label === "cut").length,
  };
  await world.stop();
  return outcome;
}

it("ends as if it had never been cut, wherever it was cut", async () => {
  const uncut = await runStory(undefined);
  expect(uncut.results).toContainEqual(expect.objectContaining({ name: "ConflictError" }));
  expect(uncut.results).toContainEqual(expect.objectContaining({ name: "DependencyRejectedError" }));
  expect(uncut.results).toContainEqual(expect.objectContaining({ attempts: 2 }));
  expect(uncut.heard.map((each) => (each as unknown[])[1])).toEqual(
    expect.arrayContaining(["commit", "revert", "integrate"]),
  );
  expect(uncut.frames).toBeGreaterThan(40);
  for (let frame = 1; frame <= uncut.frames; frame += 1) {
    const cut = await runStory(frame);
    expect({ frame, heard: cut.heard, results: cut.results, visible: cut.visible }).toEqual({
      frame,
      heard: uncut.heard,
      results: uncut.results,
      visible: uncut.visible,
    });
    expect(cut.cuts).toBe(1);
  }
});
