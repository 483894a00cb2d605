import { PassThrough } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test, vi } from "vitest";
import { createRecordingShell } from "../testing/recording-shell.ts";
import { describeCount, printAll } from "./list-pages.ts";

const columns = { header: ["N"], cells: (n: number) => [String(n)] };

/** A list without an end, and how much of it was asked for. */
function endless() {
  const asked = { pages: 0 };
  async function* pages() {
    for (;;) {
      // A page comes over a socket, in a turn of its own.
      await nextTurn();
      yield [asked.pages++];
    }
  }
  return { asked, pages: pages() };
}

function stuckOutput() {
  const stream = new PassThrough({ highWaterMark: 1 });
  stream.write("more than fits");
  return stream;
}

describe("all pages of a list", () => {
  test("are asked for at the pace of the program that reads them", async () => {
    const { asked, pages } = endless();
    const stream = stuckOutput();
    let leave: () => void = () => undefined;
    const readerGone = new Promise<void>((resolve) => {
      leave = resolve;
    });
    const shell = createRecordingShell({ raw: () => stream, readerGone });
    const printing = printAll(shell, {}, pages, columns, "nothing");
    await vi.waitFor(() => expect(stream.listenerCount("drain")).toBe(1));
    expect(asked.pages).toBe(1);
    stream.resume();
    await vi.waitFor(() => expect(asked.pages).toBeGreaterThan(1));
    leave();
    await printing;
  });

  test("end when no program reads them any more", async () => {
    const { asked, pages } = endless();
    const shell = createRecordingShell({ raw: () => stuckOutput(), readerGone: Promise.resolve() });
    await printAll(shell, { json: true }, pages, columns, "nothing");
    expect([asked.pages, shell.printed]).toEqual([1, ["0"]]);
  });

  test("say that there is nothing only to people", async () => {
    async function* none() {
      yield [];
    }
    const shell = createRecordingShell();
    await printAll(shell, { json: true }, none(), columns, "nothing");
    await printAll(shell, {}, none(), columns, "nothing");
    expect(shell.printed).toEqual(["nothing"]);
  });
});

test("a count that reached its limit is said to be no more than that", () => {
  expect([describeCount(7), describeCount(1_000)]).toEqual(["7", "At least 1000"]);
});
