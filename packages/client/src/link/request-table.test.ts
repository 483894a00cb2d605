import { describe, expect, it, vi } from "vitest";
import { RequestTable } from "./request-table.ts";

const reply = (id: number) => ({ type: "reply", id, status: 201, body: null }) as const;

describe("RequestTable", () => {
  it("forgets the oldest of too many requests that were given up", async () => {
    const table = new RequestTable(2);
    const heard: number[] = [];
    for (let n = 0; n < 3; n++) {
      const id = table.nextId();
      expect(await table.wait(id, { timeoutMs: 1, onLateAnswer: () => heard.push(id) })).toEqual({ type: "timed_out" });
    }
    for (const id of [1, 2, 3]) table.answer(reply(id));
    expect(heard).toEqual([2, 3]);
  });

  it("gives each request its own time, whichever was asked first", async () => {
    const table = new RequestTable(10);
    const ended: number[] = [];
    const ask = async (timeoutMs: number) => {
      const id = table.nextId();
      const outcome = await table.wait(id, { timeoutMs });
      ended.push(id);
      return outcome.type;
    };
    const [patient, quick, slower] = [ask(20_000), ask(1), ask(5)];
    expect([await quick, await slower]).toEqual(["timed_out", "timed_out"]);
    expect(ended).toEqual([2, 3]);
    table.answer(reply(1));
    expect(await patient).toBe("answered");
    // Nothing was open for a moment.
    expect(await ask(1)).toBe("timed_out");
  });

  it("waits as long as a timer can when the time-out is longer than that", async () => {
    const table = new RequestTable(1);
    const outcome = table.wait(table.nextId(), { timeoutMs: Number.MAX_SAFE_INTEGER });
    await new Promise((resolve) => setTimeout(resolve, 2));
    table.answer(reply(1));
    expect(await outcome).toMatchObject({ type: "answered" });
  });

  it("ends what is open and forgets what was given up when the connection ends", async () => {
    const table = new RequestTable(10);
    const onLateAnswer = vi.fn();
    await table.wait(table.nextId(), { timeoutMs: 1, onLateAnswer });
    const open = table.wait(table.nextId(), { timeoutMs: 20_000, onLateAnswer });
    table.endAll();
    expect(await open).toEqual({ type: "connection_lost" });
    for (const id of [1, 2]) table.answer(reply(id));
    expect(onLateAnswer).not.toHaveBeenCalled();
  });
});
