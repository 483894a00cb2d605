// Which owner has the next turn of the event loop.
import { expect, test } from "vitest";
import { FairTurns } from "./fair-turns.ts";

test("each has a turn of the loop of its own, in its owner's order, and owners take turns however much one has asked for", () => {
  const loop: (() => void)[] = [];
  const turns = new FairTurns((run) => loop.push(run));
  const ran: string[] = [];
  for (const n of [1, 2, 3]) turns.take("mallory", () => ran.push(`mallory ${n}`));
  turns.take("alice", () => {
    ran.push("alice 1");
    turns.take("alice", () => ran.push("alice 2"));
  });
  const perTurn: number[] = [];
  while (loop.length > 0) {
    const before = ran.length;
    loop.shift()?.();
    perTurn.push(ran.length - before);
  }
  expect(ran).toEqual(["mallory 1", "alice 1", "mallory 2", "alice 2", "mallory 3"]);
  expect(new Set(perTurn)).toEqual(new Set([1]));
});
