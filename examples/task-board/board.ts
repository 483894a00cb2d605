// A task board in a space: agents take tasks that are free, do them, and say so. No two agents ever have the same one.
import type { Space } from "@claudemesh/client/space";

export type Task = {
  readonly value: { readonly title: string; readonly owner: string | null; readonly done: boolean };
};

/** A topic that hears of every task that is done. It must exist. */
export type BoardOptions = { readonly topic: string };

/** Puts tasks on the board that are not there yet; what agents have made of them since stays. */
export async function fillBoard(space: Space, titles: readonly string[]): Promise<void> {
  await space.transact((tx) => {
    for (const [index, title] of titles.entries()) {
      const id = `task:${String(index + 1).padStart(4, "0")}`;
      if (tx.get(id) === undefined) tx.set(id, { value: { title, owner: null, done: false } });
    }
  });
}

/** Takes the first task that is free. Undefined where there is none left. */
export async function claimNext(space: Space, me: string): Promise<string | undefined> {
  for await (const { id } of space.list("task:")) {
    const { value: isMine } = await space.transact((tx) => {
      // The list may be old by now. What is read here is not: if another agent is faster, this runs again.
      if (tx.get<Task>(id)?.value.owner !== null) return false;
      tx.patch(id, [{ op: "replace", path: "/value/owner", value: me }]);
      return true;
    });
    if (isMine) return id;
  }
  return undefined;
}

/** Marks the task as done and announces it to the others: both happen, or neither. */
export async function finish(space: Space, me: string, id: string, { topic }: BoardOptions): Promise<void> {
  await space.transact((tx) => {
    const task = tx.get<Task>(id);
    if (task?.value.owner !== me) throw new Error(`${id} is not ${me}'s`);
    tx.patch(id, [{ op: "replace", path: "/value/done", value: true }]);
    tx.send({
      // The same id each time: a task is announced once, however often this runs.
      client_message_id: `done-${id}`,
      destination: { kind: "topic", ref: topic },
      body: JSON.stringify({ done: task.value.title, by: me }),
    });
  });
}

/** Works until the board is empty; returns what it did, in order. */
export async function workThrough(
  space: Space,
  me: string,
  options: BoardOptions,
  work: (title: string) => Promise<void> = () => Promise.resolve(),
): Promise<string[]> {
  const done: string[] = [];
  for (let id = await claimNext(space, me); id !== undefined; id = await claimNext(space, me)) {
    await work(space.peek(id) === undefined ? "" : (space.peek(id) as Task).value.title);
    await finish(space, me, id, options);
    done.push(id);
  }
  return done;
}
