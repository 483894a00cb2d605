// When the frames of a socket are read.
import { expect, test } from "vitest";
import { FramesInTurn, smallFrameBytes } from "./frames-in-turn.ts";

const small = (name: string) => Buffer.from(name);
const large = (name: string) => Buffer.from(name.padEnd(smallFrameBytes + 1));

function start() {
  const said: string[] = [];
  const turns: (() => void)[] = [];
  const frames = new FramesInTurn({
    socket: { pause: () => said.push("pause"), resume: () => said.push("resume") },
    nextTurn: (run) => turns.push(run),
    read: (frame) => said.push(frame.toString().trim()),
  });
  return { said, turns, frames, turn: () => turns.shift()?.() };
}

test("small frames are read at once", () => {
  const { said, turns, frames } = start();
  for (const name of ["a", "b"]) frames.take(small(name));
  expect([said, turns.length]).toEqual([["a", "b"], 0]);
});

test("each large frame has a turn of its own, in order with what came behind it, and its socket is not read meanwhile", () => {
  const { said, turns, frames, turn } = start();
  frames.take(small("a"));
  for (const frame of [large("B"), small("c"), large("D"), large("E"), small("f")]) frames.take(frame);
  expect(said).toEqual(["a", "pause"]);
  expect(turns).toHaveLength(1);
  turn();
  expect(said).toEqual(["a", "pause", "B", "c"]);
  turn();
  expect(said.slice(4)).toEqual(["D"]);
  turn();
  expect(said.slice(5)).toEqual(["E", "f", "resume"]);
  expect(turns).toHaveLength(0);
  frames.take(small("g"));
  frames.take(large("H"));
  turn();
  expect(said.slice(8)).toEqual(["g", "pause", "H", "resume"]);
});
